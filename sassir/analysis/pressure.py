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
from sassir.dialect.registers import file_of

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
    undefined = flow.blocks[0].args if not flow.cfg.predecessors[0] else ()
    live = liveness.live_out[b].difference(undefined)
    now: Occupied = {}
    _add(now, live, 1)
    highest = dict(now)
    op = flow.blocks[b].last_op
    while op is not None:
        dead = [r for r in op.results if r not in live]
        _add(now, dead, 1)
        _raise(highest, now)
        _add(now, op.results, -1)
        live.difference_update(op.results)
        new = {v for v in internals.operands(op) if v not in live}.difference(undefined)
        _add(now, new, 1)
        live |= new
        _raise(highest, now)
        op = op.prev_op
    _add(now, [a for a in flow.blocks[b].args if a not in live and a not in undefined], 1)
    _raise(highest, now)
    return highest


def _add(occupied: Occupied, values: Iterable[SSAValue], count: int) -> None:
    for value in values:
        file = file_of(value)
        occupied[file] = occupied.get(file, 0) + count


def _raise(highest: Occupied, other: Occupied) -> None:
    for file, count in other.items():
        if count > highest.get(file, 0):
            highest[file] = count
