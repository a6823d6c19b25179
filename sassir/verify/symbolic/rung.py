"""The symbolic rung of the ladder."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from sassir.asm.instruction import Instruction
from sassir.cubin.cubin import Cubin
from sassir.dialect.facts import Dim3, KernelFacts
from sassir.machine.constant_bank import constant_bank
from sassir.translate.cubin import read_program
from sassir.translate.facts import launch_facts
from sassir.verify.differential import OutOfTimeError
from sassir.verify.ladder import Pair
from sassir.verify.report import Check, Layer, summarise
from sassir.verify.symbolic import terms
from sassir.verify.symbolic.accesses import SlotError
from sassir.verify.symbolic.memory import Apart, distinct, of_different_buffers
from sassir.verify.symbolic.run import UnknownError
from sassir.verify.symbolic.side import Results, Side
from sassir.verify.symbolic.walk import NotProvenError, Walk

NAME = "symbolic"


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
        if _constant_banks(original) != _constant_banks(candidate):
            yield Check("constant memory", "undecided", "the two files do not have the same content in their constant banks")
            return
        before, after = _code(pair.original.cubin), _code(pair.candidate)
        pointers = _pointers(pair, original.arch) if pair.noalias else {}
        for kernel, code in before.items():
            facts = pair.assumptions[kernel].relied() if pair.assumptions and kernel in pair.assumptions else KernelFacts()
            if kernel not in after:
                yield Check(kernel, "fails", "the candidate does not have it")
            elif code == after[kernel]:
                yield Check(kernel, "holds", "the same code")
            else:
                apart = of_different_buffers(pointers[kernel]) if kernel in pointers else distinct
                yield prove(kernel, original.arch, (code, after[kernel]), facts, apart, self.seconds)


def prove(
    kernel: str, arch: str, codes: tuple[tuple[Instruction, ...], tuple[Instruction, ...]], facts: KernelFacts, apart: Apart, seconds: float
) -> Check:
    """The verdict on one kernel: it holds, or is undecided and says why."""
    from sassir.verify.symbolic.solver import Solver

    results: Results = {}
    words = known_words(facts, arch)
    original, candidate = (Side(name, arch, c, words, results) for name, c in zip(("original", "candidate"), codes, strict=True))
    cells = {space: 8 * min(original.cells[space], candidate.cells[space]) for space in original.cells}
    solver = Solver(seconds, cells, _bounds(facts))
    stack = original.constant(0, constant_bank(arch).stack)
    try:
        try:
            points = Walk((original, candidate), solver, apart, stack).run()
        except SlotError:
            points = Walk((original, candidate), solver, apart, None).run()
    except (NotProvenError, UnknownError, OutOfTimeError) as error:
        return Check(kernel, "undecided", str(error))
    return Check(kernel, "holds", f"{points} pairs of places")


def known_words(facts: KernelFacts, arch: str) -> dict[int, int]:
    """The words of constant bank 0 that facts tell, by byte offset."""
    bank = constant_bank(arch)
    sizes = ((bank.block, facts.block), (bank.grid, facts.grid))
    return dict(facts.words) | {first + 4 * i: n for first, dim3 in sizes for i, n in enumerate(dim3 or ())}


def _bounds(facts: KernelFacts) -> Mapping[str, int]:
    """What special registers stay below."""
    found: dict[str, int] = {}
    sizes: tuple[tuple[str, Dim3 | None], ...] = (("TID", facts.block), ("CTAID", facts.grid))
    for name, dim3 in sizes:
        found |= {f"SR_{name}.{axis} 0": n for axis, n in zip("XYZ", dim3 or (), strict=False)}
    return found


def _code(cubin: bytes) -> dict[str, tuple[Instruction, ...]]:
    return {function.name: tuple([line.instruction for line in function.lines]) for function in read_program(cubin).functions}


def _constant_banks(cubin: Cubin) -> dict[str, bytes]:
    """Their content, but for what the driver fills in and jump tables, which indirect branches alone read."""
    filled = (".nv.constant0", ".nv.constant2")
    banks = [s for s in cubin.elf.sections if s.name.startswith(".nv.constant") and not s.name.startswith(filled)]
    return {section.name: cubin.elf.content(section) for section in banks}


def _pointers(pair: Pair, arch: str) -> dict[str, frozenset[terms.Term]]:
    """The low words of the pointers that each kernel takes in every launch."""
    found: dict[str, frozenset[terms.Term]] = {}
    for launch in pair.launches:
        for kernel, facts in launch_facts(launch, pair.stated, arch).items():
            here = frozenset([terms.variable(f"c[0x0][{p.offset:#x}]", 32) for p in facts.pointers])
            found[kernel] = here & found.get(kernel, here)
    return found
