"""Ranges: what is left of them through arithmetic, carries, comparisons and branches, checked against enumeration."""

from __future__ import annotations

from itertools import product

import pytest

from sassir.analysis import ranges
from sassir.analysis.ranges import FLAG, LARGEST, WORD, Range
from sassir.analysis.transfer import TRANSFER, carry, special_register

SMALL = [Range(0, 0), Range(0, 5), Range(3, 3), Range(7, 12), Range(LARGEST - 2, LARGEST), Range(LARGEST, LARGEST)]


def _members(found: Range) -> range:
    return range(found.low, found.high + 1)


@pytest.mark.parametrize(("a", "b"), list(product(SMALL, SMALL)))
def test_sums_and_carries_hold_for_every_pair(a: Range, b: Range) -> None:
    total, carried = ranges.add(a, b), carry([], [a, b])
    for x, y in product(_members(a), _members(b)):
        assert total.low <= (x + y & LARGEST) <= total.high
        assert carried.low <= (x + y > LARGEST) <= carried.high


def test_which_of_two_carries_a_sum_of_three_sets_is_not_told() -> None:
    large = Range(LARGEST, LARGEST)
    assert carry([], [large, large, Range(0, 0)]) == Range(1, 1)
    assert carry([], [large, Range(1, 1), Range(1, 1)]) == FLAG
    assert carry([], [Range(1, 1), Range(1, 1), Range(1, 1)]) == Range(0, 0)


@pytest.mark.parametrize("name", ["LT", "LE", "GT", "GE", "EQ", "NE"])
@pytest.mark.parametrize("signed", [False, True])
def test_comparisons_and_what_they_leave(name: str, signed: bool) -> None:
    def number(x: int) -> int:
        return x - (LARGEST + 1) if signed and x > ranges.LARGEST_SIGNED else x

    holds = {"LT": int.__lt__, "LE": int.__le__, "GT": int.__gt__, "GE": int.__ge__, "EQ": int.__eq__, "NE": int.__ne__}[name]
    for a, b in product(SMALL, SMALL):
        found, left = ranges.compare(name, a, b, signed), ranges.restrict(a, name, b, signed)
        for x, y in product(_members(a), _members(b)):
            truth = holds(number(x), number(y))
            assert found.low <= truth <= found.high
            assert not truth or left.low <= x <= left.high


def test_a_64_bit_comparison_by_its_upper_words() -> None:
    def compare(a: Range, b: Range, lower: Range) -> Range:
        result = TRANSFER["ISETP"](["LT", "U32", "AND", "EX"], [a, b, Range(1, 1), lower])
        assert result is not None
        return result[0]

    same, more = Range(2, 2), Range(3, 9)
    assert compare(same, more, FLAG) == Range(1, 1)
    assert compare(more, same, FLAG) == Range(0, 0)
    assert compare(same, same, Range(1, 1)) == Range(1, 1)
    assert compare(Range(2, 3), more, FLAG) == FLAG


def test_bitwise_complement_and_mask() -> None:
    lop3 = TRANSFER["LOP3"]
    zero = Range(0, 0)
    assert lop3(["LUT"], [zero, Range(1, 5), zero, Range(0x33, 0x33)]) == (Range(LARGEST - 5, LARGEST - 1),)
    assert lop3(["LUT"], [WORD, Range(7, 7), zero, Range(0xC0, 0xC0)]) == (Range(0, 7),)


def test_special_registers_follow_the_launch() -> None:
    assert special_register("SR_TID.X", (256, 1, 1), None) == Range(0, 255)
    assert special_register("SR_CTAID.Y", None, (8, 3, 1)) == Range(0, 2)
    assert special_register("SR_TID.Z", None, None) == Range(0, 63)
    assert special_register("SR_CLOCKLO", None, None) == WORD


@pytest.mark.parametrize("shift", [1, 2, 31])
def test_the_upper_word_of_a_shifted_sum(shift: int) -> None:
    numbers = [Range(0, 5), Range(1 << 30, (1 << 30) + 3), Range(LARGEST - 2, LARGEST)]
    for a, b, carried in product(numbers, [Range(0, 0), Range(7, 9)], [Range(0, 0), FLAG]):
        signed = TRANSFER["LEA"](["HI", "X", "SX32"], [a, b, Range(shift, shift), carried])
        joined = TRANSFER["LEA"](["HI", "X"], [a, b, Range(0, 1), Range(shift, shift), carried])
        assert joined is not None
        assert (signed is None) == (a.high > ranges.LARGEST_SIGNED)
        for x, y, c in product(_members(a), _members(b), _members(carried)):
            for found, uppers in ((signed, [0]), (joined, [0, 1])):
                for upper in uppers if found is not None else ():
                    word = (((upper << 32) + x) << shift >> 32) + y + c & LARGEST
                    assert found is not None
                    assert found[0].low <= word <= found[0].high
