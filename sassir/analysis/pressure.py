"""How many registers of each file are occupied at once.

A value is one register, so that a wide operand counts as many times as it is wide. Gaps that alignment enforces are not
counted, nor is what a kernel finds in its registers when it starts: nobody put it there.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from xdsl.ir import SSAValue

from sassir.analysis.liveness import Liveness
from sassir.dialect import internals
from sassir.dialect.registers import FILES, file_of

Occupied = dict[str, int]
"""Registers by file: `{"R": 40, "P": 3}`; a file that is not in use is absent."""


class Pressure(NamedTuple):
    """The most registers that are occupied at once."""

    peak: Occupied
    """In the whole kernel."""
    by_block: list[Occupied]
    """In each block."""


def pressure(liveness: Liveness) -> Pressure:
    """The pressure of a kernel. An operation occupies what is live before it, and what is live behind it with all its results."""
    by_block = [_highest(liveness, b) for b in range(len(liveness.flow.blocks))]
    peak: Occupied = {}
    for highest in by_block:
        _raise(peak, highest)
    return Pressure(peak, by_block)


def _highest(liveness: Liveness, b: int) -> Occupied:
    flow = liveness.flow
    undefined = frozenset(flow.blocks[0].args if not flow.cfg.predecessors[0] else ())
    live = liveness.live_out[b].difference(undefined)
    now: Occupied = dict.fromkeys(FILES, 0)
    highest: Occupied = {}
    _add(now, live, highest)
    for op in reversed(internals.operations(flow.blocks[b])):
        if dead := [r for r in op.results if r not in live]:
            _add(now, dead, highest)
        for result in op.results:
            now[file_of(result)] -= 1
        live.difference_update(op.results)
        if new := {v for v in internals.operands(op) if v not in live and v not in undefined}:
            _add(now, new, highest)
            live |= new
    _add(now, [a for a in flow.blocks[b].args if a not in live and a not in undefined], highest)
    return highest


def _add(now: Occupied, values: Iterable[SSAValue], highest: Occupied) -> None:
    """More values are in registers `now`, and so perhaps more than ever."""
    for value in values:
        file = file_of(value)
        now[file] += 1
        if now[file] > highest.get(file, 0):
            highest[file] = now[file]


def _raise(highest: Occupied, other: Occupied) -> None:
    for file, count in other.items():
        if count > highest.get(file, 0):
            highest[file] = count
