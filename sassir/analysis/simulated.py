"""Loops that go by numbers known from the start, in whatever way: `for (d = 128; d > 0; d >>= 1)`. They are counted by running them."""

from __future__ import annotations

from typing import NamedTuple

from xdsl.ir import SSAValue

from sassir.analysis.counted import home
from sassir.analysis.folding import fold
from sassir.analysis.propagation import Propagation
from sassir.analysis.region_loops import RegionLoop
from sassir.dialect import internals
from sassir.dialect.edges import decides, forwarded
from sassir.dialect.instruction import SassBranch, SassInstruction

TRIPS_LIMIT = 64
"""Counting stops here."""


class SimulatedLoop(NamedTuple):
    """A loop whose only latch goes back `trips` - 1 times each time it is entered."""

    loop: RegionLoop
    latch: SassBranch
    """A guarded BRA; one of its two successors is the header."""
    trips: int


def simulated_loop(loop: RegionLoop, known: Propagation) -> SimulatedLoop | None:
    """How often `loop` runs; None if that does not follow from known numbers alone, or is more than `TRIPS_LIMIT` times."""
    latch = loop.latches[0].last_op if len(loop.latches) == 1 else None
    if latch is None or not decides(latch) or latch.guard is None or known.range(latch.guard).value is not None:
        return None
    back = list(latch.successors).index(loop.header)
    following: dict[SSAValue, SSAValue] = dict(zip(loop.header.args, forwarded(latch)[back], strict=True))
    state = _start(loop, known)
    goes_on = (back == 0) == (latch.unless is None)
    for trips in range(1, TRIPS_LIMIT + 1):
        run = _Iteration(loop, known, state)
        flag = run.value(latch.guard)
        if flag is None:
            return None
        if bool(flag) != goes_on:
            return SimulatedLoop(loop, latch, trips)
        state = {argument: found for argument in state if (found := run.value(following[argument])) is not None}
    return None


def _start(loop: RegionLoop, known: Propagation) -> dict[SSAValue, int]:
    """The arguments of the header that have one known value when the loop is entered."""
    entered: dict[SSAValue, set[int | None]] = {}
    for block in loop.header.predecessors():
        last = block.last_op
        if block in loop.blocks or block not in known.reached or last is None:
            continue
        for successor, values in zip(last.successors, forwarded(last), strict=False):
            if successor is loop.header:
                for argument, value in zip(loop.header.args, values, strict=True):
                    entered.setdefault(argument, set()).add(known.range(value).value)
    return {argument: found for argument, values in entered.items() if len(values) == 1 and (found := next(iter(values))) is not None}


class _Iteration:
    """One run through the loop, as far as its values follow from those of the header's arguments."""

    def __init__(self, loop: RegionLoop, known: Propagation, state: dict[SSAValue, int]) -> None:
        self.loop = loop
        self.known = known
        self._values: dict[SSAValue, int | None] = dict(state)

    def value(self, wanted: SSAValue) -> int | None:
        """What `wanted` is in this iteration; None if that is not known."""
        work = [wanted]
        while work:
            value = work[-1]
            missing = [v for v in self._needed(value) if v not in self._values]
            if missing:
                work += missing
                continue
            work.pop()
            if value not in self._values:
                self._compute(value)
        return self._values[wanted]

    def _needed(self, value: SSAValue) -> tuple[SSAValue, ...]:
        op = value.owner
        inside = isinstance(op, SassInstruction) and home(value) in self.loop.blocks and value not in self._values
        return internals.operands(op) if inside and isinstance(op, SassInstruction) and self.known.range(value).value is None else ()

    def _compute(self, value: SSAValue) -> None:
        op, number = value.owner, self.known.range(value).value
        if number is not None or not isinstance(op, SassInstruction) or home(value) not in self.loop.blocks:
            self._values[value] = number
            return
        found = None
        if op.guard is None and op.constant_guard is None:
            found = fold(op, [self._values[v] for v in op.reads], self.known.constant, self.known.arch)
        self._values.update(zip(op.results, found or [None] * len(op.results), strict=True))
