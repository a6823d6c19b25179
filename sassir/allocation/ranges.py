"""Live ranges: where in the code, block behind block, a register is needed."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable

from xdsl.ir import SSAValue

from sassir.analysis.liveness import Liveness
from sassir.dialect import internals

Range = tuple[int, int]
"""From the first position on, up to the second one. Operation i reads its operands before position 2i + 1 and writes its results
there, so that a result can take the register of an operand that dies."""


class Ranges:
    """Disjoint ranges in order."""

    __slots__ = ("ranges",)

    def __init__(self, ranges: Iterable[Range] = ()) -> None:
        self.ranges = list(ranges)

    def copy(self) -> Ranges:
        """The same ranges, to be changed alone."""
        return Ranges(self.ranges)

    def append(self, start: int, end: int) -> None:
        """Add a range behind all others."""
        ranges = self.ranges
        if ranges and ranges[-1][1] == start:
            ranges[-1] = (ranges[-1][0], end)
        else:
            ranges.append((start, end))

    def add(self, other: Ranges) -> None:
        """Add ranges that meet none of these."""
        if len(other.ranges) > len(self.ranges):
            self.ranges, others = list(other.ranges), self.ranges
        else:
            others = other.ranges
        for item in others:
            insort(self.ranges, item)

    def meets(self, other: Ranges) -> bool:
        """Whether some position is in both."""
        few, many = (self.ranges, other.ranges) if len(self.ranges) < len(other.ranges) else (other.ranges, self.ranges)
        if not few or few[-1][1] <= many[0][0] or many[-1][1] <= few[0][0]:
            return False
        i = 0
        for start, end in few:
            i = bisect_left(many, (start,), i)
            if (i and many[i - 1][1] > start) or (i < len(many) and many[i][0] < end):
                return True
        return False


def live_ranges(liveness: Liveness) -> dict[SSAValue, Ranges]:
    """The ranges of every value, with the blocks as they lie in memory."""
    blocks = liveness.flow.blocks
    found: dict[SSAValue, Ranges] = {}
    for block in blocks:
        found.update({value: Ranges() for value in (*block.args, *[r for op in internals.operations(block) for r in op.results])})
    at = 0
    for b, block in enumerate(blocks):
        start: dict[SSAValue, int] = dict.fromkeys((*liveness.live_in[b], *block.args), at)
        end: dict[SSAValue, int] = {}
        for op in internals.operations(block):
            at += 2
            for value in internals.operands(op):
                end[value] = at - 1
            for value in op.results:
                start[value] = at - 1
        at += 1
        out = liveness.live_out[b]
        for value, first in start.items():
            found[value].append(first, at if value in out else end.get(value, first + 1))
    return found
