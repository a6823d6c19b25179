"""A dry run of one block of a kernel: what each of its threads computes, as far as that follows from its place in the block.

All threads go side by side, a value is an array. What comes from memory, from other lanes or from outside of the kernel is not
known, and a branch that depends on it is taken both ways. The part of the code with the lowest address goes first, so that
threads come together again. For estimates only: the block is the first of its grid, and a loop is left after `TURNS` turns, unless
they are what is asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import zip_longest
from math import prod
from typing import NamedTuple, TypeGuard

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Block, Operation, SSAValue

from sassir.analysis.arguments import arguments
from sassir.analysis.folding import fold_lanes
from sassir.analysis.propagation import Propagation
from sassir.dialect import internals
from sassir.dialect.edges import decides, forwarded, own_operands, terminators
from sassir.dialect.facts import Dim3
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.operations import KernelOp
from sassir.dialect.registers import UP, P
from sassir.isa.semantics.evaluator import Array, Flags

TURNS = 16
"""How often a block of code runs at most."""
WARP = 32
ALL_TURNS = 4096
"""How often blocks of code run at most, all together, where all turns are asked for."""

Lookup = Callable[[SSAValue], "Array | None"]
"""What the threads have for a value: one entry each, or one for all; None if that is not known."""
Visit = Callable[[SassInstruction, Lookup, Flags, Flags], None]
"""Takes an operation, the values before it, the threads that run it or may do so, and those that come there, whatever its guard says."""


class Passes(NamedTuple):
    """Where the threads of a dry run went."""

    edges: Mapping[tuple[Block, Block], int]
    """How many of them went from one block of code to the other, all times together."""
    undecided: frozenset[Block]
    """Blocks that end in a branch that depends on what is not known."""
    runs: Mapping[Block, NDArray[np.int64]]
    """How often each warp ran a block of code; only blocks that one ran."""


def dry_passes(kernel: KernelOp, known: Propagation, threads: Dim3) -> Passes | None:
    """Where one block of `threads` goes in `kernel`; None if blocks of code run more than `ALL_TURNS` times."""
    run = _DryRun(kernel, known, threads, (), lambda op, lookup, active, reached: None, all_turns=True)
    if not run.run():
        return None
    edges = {(run.blocks[a], run.blocks[b]): threads for (a, b), threads in run.edges.items()}
    return Passes(edges, frozenset([run.blocks[b] for b in run.undecided]), {run.blocks[b]: often for b, often in run.by_warp.items()})


def dry_run(kernel: KernelOp, known: Propagation, threads: Dim3, watched: Collection[SassInstruction], visit: Visit) -> None:
    """Run `kernel` with one block of `threads`, and let `visit` see the operations `watched` as often as they run."""
    _DryRun(kernel, known, threads, watched, visit, all_turns=False).run()


class _DryRun:
    def __init__(
        self, kernel: KernelOp, known: Propagation, threads: Dim3, watched: Collection[SassInstruction], visit: Visit, all_turns: bool
    ) -> None:
        self.known = known
        self.all_turns = all_turns
        """A loop whose end is known runs to its end."""
        self.watched = watched
        self.visit = visit
        self.size = prod(threads)
        self.special = _special_registers(threads)
        self.blocks = list(kernel.body.blocks)
        needed = _needed(kernel, watched)
        self.steps = [[op for op in block.ops if _matters(op, watched, needed) and op is not block.last_op] for block in self.blocks]
        self.number = {block: i for i, block in enumerate(self.blocks)}
        self.values: dict[SSAValue, Array] = {}
        self.arriving: dict[int, Flags] = {0: np.ones(self.size, np.bool_)}
        """The threads that are at the start of a block."""
        self.runs: Counter[int] = Counter()
        self.edges: Counter[tuple[int, int]] = Counter()
        self.undecided: set[int] = set()
        self.by_warp: dict[int, NDArray[np.int64]] = {}
        self.first_lanes = np.arange(0, self.size, WARP)

    def run(self) -> bool:
        """Run to the end; False if that would take too long, which a run of at most `TURNS` turns never does."""
        left = ALL_TURNS
        while self.arriving:
            if self.all_turns and not left:
                return False
            left -= 1
            number = min(self.arriving)
            active = self.arriving.pop(number)
            self.runs[number] += 1
            warps = np.logical_or.reduceat(active, self.first_lanes).astype(np.int64)
            self.by_warp[number] = self.by_warp.get(number, 0) + warps
            self._run(self.blocks[number], number, active)
        return True

    def _run(self, block: Block, number: int, active: Flags) -> None:
        for op in self.steps[number]:
            self._step(op, active)
        last = block.last_op
        if last is None:
            return
        edges = [(self.number[s], values) for s, values in zip(last.successors, forwarded(last), strict=False)]
        taken = self._taken(last, number, len(edges), active)
        endless = self.all_turns and number not in self.undecided
        tired = [target <= number and self.runs[target] >= TURNS and not endless for target, _ in edges]
        rest = np.logical_or.reduce([np.zeros(self.size, np.bool_), *[t for t, stop in zip(taken, tired, strict=True) if stop]])
        for (target, values), threads, stop in zip(edges, taken, tired, strict=True):
            if not stop and (threads | rest).any():
                self.edges[number, target] += int((threads | rest).sum())
                self._send(target, values, threads | rest)

    def _taken(self, last: Operation, number: int, edges: int, active: Flags) -> list[Flags]:
        """The threads that go along each edge."""
        holds = self._guard(last) if decides(last) else None
        if holds is None and edges > 1:
            self.undecided.add(number)
        return [active] * edges if holds is None else [active & holds, active & ~holds]

    def _send(self, target: int, values: Sequence[SSAValue], threads: Flags) -> None:
        passed = [self.lookup(value) for value in values]
        for argument, value in zip_longest(self.blocks[target].args, passed):  # what code of another section leaves is not known
            self._set(argument, value, threads)
        waiting = self.arriving.get(target)
        self.arriving[target] = threads if waiting is None else waiting | threads

    def _step(self, op: SassInstruction, active: Flags) -> None:
        if op.constant_guard is not None and self.known.guard(op) is False:
            return
        holds = self._guard(op)
        if op in self.watched:
            self.visit(op, self.lookup, active if holds is None else active & holds, active)
        kept = iter(op.kept)
        for result, value in zip(op.results, self._results(op), strict=True):
            before = next(kept, None)
            old = None if before is None else self.lookup(before)
            if value is not None and old is not None and holds is not None:
                value = np.where(holds, value, old)
            self._set(result, value, active)

    def _results(self, op: SassInstruction) -> Sequence[Array | None]:
        if op.MNEMONIC in ("S2R", "S2UR"):
            return [self.special.get(arguments(op)[1].text)]
        found = fold_lanes(op, [self.lookup(v) for v in op.reads], self.known.constant, self.known.arch)
        return found if found is not None else [None] * len(op.results)

    def _set(self, value: SSAValue, now: Array | None, threads: Flags) -> None:
        before = self.values.get(value)
        if now is None:
            self.values.pop(value, None)
        else:
            self.values[value] = now if before is None else np.where(threads, now, before)

    def lookup(self, value: SSAValue) -> Array | None:
        number = self.known.range(value).value
        if number is None:
            return self.values.get(value)
        return np.array([number]).astype(np.bool_ if isinstance(value.type, P | UP) else np.uint32)

    def _guard(self, op: Operation) -> Flags | None:
        """The threads whose guard holds; None if that is not known, or there is none."""
        assert isinstance(op, SassInstruction)
        found = None if op.guard is None else self.lookup(op.guard)
        return None if found is None else np.broadcast_to(found.astype(np.bool_) ^ (op.unless is not None), (self.size,))


def _matters(op: Operation, watched: Collection[SassInstruction], needed: set[SSAValue]) -> TypeGuard[SassInstruction]:
    return isinstance(op, SassInstruction) and (op in watched or not needed.isdisjoint(op.results))


def _needed(kernel: KernelOp, watched: Iterable[SassInstruction]) -> set[SSAValue]:
    """The values that the watched operations and the branches follow from."""
    passed: dict[SSAValue, list[SSAValue]] = {}
    needed: set[SSAValue] = {v for op in watched for v in internals.operands(op)}
    for last in terminators(kernel.body):
        needed.update(own_operands(last))
        for successor, values in zip(last.successors, forwarded(last), strict=False):
            for argument, value in zip(successor.args, values, strict=False):
                passed.setdefault(argument, []).append(value)
    work = [*needed]
    while work:
        value = work.pop()
        owner = value.owner
        sources = passed.get(value, []) if isinstance(owner, Block) else internals.operands(owner)
        work += [v for v in sources if v not in needed]
        needed.update(sources)
    return needed


def _special_registers(threads: Dim3) -> dict[str, NDArray[np.uint32]]:
    thread = np.arange(prod(threads), dtype=np.uint32)
    x, y, z = [np.uint32(n) for n in threads]
    zero = np.zeros(1, np.uint32)
    of_the_block = [f"SR_{name}.{axis}" for name in ("CTAID", "CLUSTERID", "CLUSTER_CTAID") for axis in "XYZ"]
    return {
        "SR_TID.X": thread % x,
        "SR_TID.Y": thread // x % y,
        "SR_TID.Z": thread // (x * y) % z,
        "SR_LANEID": thread % np.uint32(32),
        **dict.fromkeys([*of_the_block, "SR_CgaCtaId", "SRZ"], zero),
    }
