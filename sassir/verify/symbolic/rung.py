"""The symbolic rung of the ladder."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from sassir.cubin.cubin import Cubin
from sassir.dialect.facts import Dim3, KernelFacts
from sassir.errors import SemanticsError
from sassir.machine.constant_bank import constant_bank
from sassir.translate.facts import launch_facts
from sassir.verify.differential import OutOfTimeError
from sassir.verify.ladder import Pair
from sassir.verify.report import Check, Layer, summarise
from sassir.verify.symbolic import terms
from sassir.verify.symbolic.accesses import SlotError
from sassir.verify.symbolic.kernels import Kernel, read_kernels, shared_data
from sassir.verify.symbolic.memory import Apart, distinct, of_different_buffers
from sassir.verify.symbolic.run import UnknownError
from sassir.verify.symbolic.side import Results, Side
from sassir.verify.symbolic.walk import NotProvenError, Walk

NAME = "symbolic"
LARGEST_BLOCK: Dim3 = (1024, 1024, 64)
LARGEST_GRID: Dim3 = (0x7FFFFFFF, 0xFFFF, 0xFFFF)
"""CUDA C++ Programming Guide, compute capabilities."""


class SymbolicRung(NamedTuple):
    """Tries for so many seconds to prove that each kernel of the candidate does what the original's does."""

    seconds: float

    def __call__(self, pair: Pair) -> Layer:
        """See `sassir.verify.ladder.Rung`."""
        if importlib.util.find_spec("z3") is None:
            return Layer(NAME, "skipped", "z3 is not installed; install it with `pip install sassir[symbolic]`")
        layer = summarise(NAME, self._checks(pair), "kernels are proven equal")
        proven = all(check.verdict == "holds" for check in layer.checks)
        return layer if proven or layer.verdict == "fails" else layer._replace(verdict="undecided")

    def _checks(self, pair: Pair) -> Iterator[Check]:
        original, candidate = Cubin.read(pair.original.cubin), Cubin.read(pair.candidate)
        before, after = read_kernels(original), read_kernels(candidate)
        same_data = shared_data(original, before) == shared_data(candidate, after)
        pointers = _pointers(pair, original.arch) if pair.noalias else {}
        for name, kernel in before.items():
            facts = pair.assumptions[name].relied() if pair.assumptions and name in pair.assumptions else KernelFacts()
            if name not in after:
                yield Check(name, "fails", "the candidate does not have it")
            elif not same_data or kernel.data != after[name].data:
                yield Check(name, "undecided", "variables or constant banks of the two files start with other content")
            elif kernel == after[name]:
                yield Check(name, "holds", "the same code")
            else:
                apart = of_different_buffers(pointers[name]) if name in pointers else distinct
                yield prove(name, original.arch, (kernel, after[name]), facts, apart, self.seconds)


def prove(name: str, arch: str, kernels: tuple[Kernel, Kernel], facts: KernelFacts, apart: Apart, seconds: float) -> Check:
    """The verdict on one kernel, whose data is equal: it holds, or is undecided and says why."""
    from sassir.verify.symbolic.solver import Solver

    results: Results = {}
    words = known_words(facts, arch)
    original, candidate = (Side(side, arch, k, words, results) for side, k in zip(("original", "candidate"), kernels, strict=True))
    cells = {space: 8 * min(original.cells[space], candidate.cells[space]) for space in original.cells}
    solver = Solver(seconds, cells, _bounds(facts))
    by_pointer = original.reaches_local or candidate.reaches_local
    stack = None if by_pointer else original.constant(0, constant_bank(arch).stack)
    try:
        try:
            points = Walk((original, candidate), solver, apart, stack).run()
        except SlotError:
            points = Walk((original, candidate), solver, apart, None).run()
    except (NotProvenError, UnknownError, OutOfTimeError, SemanticsError) as error:
        return Check(name, "undecided", str(error))
    return Check(name, "holds", f"{points} pairs of places")


def known_words(facts: KernelFacts, arch: str) -> dict[int, int]:
    """The words of constant bank 0 that facts tell, by byte offset."""
    bank = constant_bank(arch)
    sizes = ((bank.block, facts.block), (bank.grid, facts.grid))
    return dict(facts.words) | {first + 4 * i: n for first, dim3 in sizes for i, n in enumerate(dim3 or ())}


def _bounds(facts: KernelFacts) -> Mapping[str, range]:
    """Which numbers special registers and words of the parameters can be."""
    found = {f"c[0x0][{known.offset:#x}]": range(known.low, known.high + 1) for known in facts.ranges}
    found["SR_LANEID 0"] = range(32)
    for name, extents in (("TID", facts.block or LARGEST_BLOCK), ("CTAID", facts.grid or LARGEST_GRID)):
        found |= {f"SR_{name}.{axis} 0": range(n) for axis, n in zip("XYZ", extents, strict=True)}
    return found


def _pointers(pair: Pair, arch: str) -> dict[str, frozenset[terms.Term]]:
    """The low words of the pointers that each kernel takes in every launch."""
    found: dict[str, frozenset[terms.Term]] = {}
    for launch in pair.launches:
        for kernel, facts in launch_facts(launch, pair.stated, arch).items():
            here = frozenset([terms.variable(f"c[0x0][{p.offset:#x}]", 32) for p in facts.pointers])
            found[kernel] = here & found.get(kernel, here)
    return found
