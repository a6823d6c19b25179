"""Live ranges as sorted lists agree with sets of positions."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sassir.allocation.ranges import Ranges

Positions = set[int]


def ranges_of(positions: Positions) -> Ranges:
    ranges = Ranges()
    for position in sorted(positions):
        ranges.append(position, position + 1)
    return ranges


def positions_of(ranges: Ranges) -> Positions:
    return {position for start, end in ranges.ranges for position in range(start, end)}


SETS = st.sets(st.integers(0, 40))


@given(SETS, SETS)
def test_two_meet_where_they_share_a_position(a: Positions, b: Positions) -> None:
    assert ranges_of(a).meets(ranges_of(b)) == bool(a & b)


@given(SETS, SETS)
def test_the_sum_of_two_that_do_not_meet(a: Positions, b: Positions) -> None:
    total, other = ranges_of(a), ranges_of(b - a)
    total.add(other)
    assert positions_of(total) == a | b
    assert total.ranges == sorted(total.ranges)
    assert positions_of(other) == b - a
