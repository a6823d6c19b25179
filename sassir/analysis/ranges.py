"""Ranges of values: what a register or predicate can hold, and how instructions carry ranges on.

A word is an interval of unsigned numbers; one that may wrap around, or may be negative as well as positive, is not known.
A predicate is an interval of 0 and 1. Exact results on known values come from `sassir.isa.semantics`; here are the few
instructions through which a range survives: index arithmetic, comparisons, selections.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

WORD_BITS = 32
LARGEST = (1 << WORD_BITS) - 1
LARGEST_SIGNED = LARGEST >> 1


class Range(NamedTuple):
    """The numbers from `low` to `high`, both included."""

    low: int
    high: int

    @property
    def value(self) -> int | None:
        """The number, if it is only one."""
        return self.low if self.low == self.high else None

    def join(self, other: Range) -> Range:
        """The smallest range that holds both."""
        inside = self.low <= other.low and other.high <= self.high
        return self if inside else Range(min(self.low, other.low), max(self.high, other.high))


WORD = Range(0, LARGEST)
FLAG = Range(0, 1)


def exactly(value: int) -> Range:
    """The range of one unsigned word."""
    return Range(value & LARGEST, value & LARGEST)


def word(low: int, high: int) -> Range:
    """The words that the integers from `low` to `high` are modulo 2³², if that is one interval of them, else every word."""
    turns = low >> WORD_BITS
    return Range(low & LARGEST, high & LARGEST) if turns == high >> WORD_BITS else WORD


def add(*terms: Range) -> Range:
    """The sum, if it wraps around for all or none; terms may be negative."""
    return word(sum(t.low for t in terms), sum(t.high for t in terms))


def multiply_add(a: Range, b: Range, c: Range) -> Range:
    """a b + c, if it wraps around for all or none; operands may be negative."""
    products = [x * y for x in a for y in b]
    return word(min(products) + c.low, max(products) + c.high)


def shift_left(a: Range, count: Range) -> Range:
    """a << count for a known count, if no bit is lost."""
    return WORD if count.value is None else word(a.low << min(count.value, 64), a.high << min(count.value, 64))


def shift_right(a: Range, count: Range) -> Range:
    """The logical shift."""
    return Range(a.low >> min(count.high, WORD_BITS), a.high >> min(count.low, WORD_BITS))


def bitwise_and(a: Range, b: Range) -> Range:
    """At most the smaller of the two."""
    return Range(0, min(a.high, b.high))


def bitwise_or(a: Range, b: Range) -> Range:
    """At least the larger of the two, and no more bits than they have."""
    return Range(max(a.low, b.low), (1 << (a.high | b.high).bit_length()) - 1)


Compare = Callable[[Range, Range], "bool | None"]


def _less(a: Range, b: Range) -> bool | None:
    return True if a.high < b.low else False if a.low >= b.high else None


def _equal(a: Range, b: Range) -> bool | None:
    if a.high < b.low or b.high < a.low:
        return False
    return True if a.value is not None and a.value == b.value else None


def _not(found: bool | None) -> bool | None:
    return None if found is None else not found


COMPARISONS: dict[str, Compare] = {
    "LT": _less,
    "GE": lambda a, b: _not(_less(a, b)),
    "GT": lambda a, b: _less(b, a),
    "LE": lambda a, b: _not(_less(b, a)),
    "EQ": _equal,
    "NE": lambda a, b: _not(_equal(a, b)),
}
"""Whether a comparison holds for all, for no (False), or for some (None) numbers of two ranges."""


def compare(name: str, a: Range, b: Range, signed: bool) -> Range:
    """The predicate that a comparison gives."""
    if signed:
        shifted = [_as_signed(a), _as_signed(b)]
        if None in shifted:
            return FLAG
        a, b = [r for r in shifted if r is not None]
    found = COMPARISONS[name](a, b)
    return FLAG if found is None else Range(int(found), int(found))


COMPLEMENT = {"LT": "GE", "GE": "LT", "GT": "LE", "LE": "GT", "EQ": "NE", "NE": "EQ"}
MIRROR = {"LT": "GT", "GT": "LT", "GE": "LE", "LE": "GE", "EQ": "EQ", "NE": "NE"}
"""The comparison that holds when the first does not, and the same with the operands exchanged."""


def restrict(a: Range, name: str, b: Range, signed: bool) -> Range:
    """What is left of `a` where the comparison with `b` holds; `a` itself where that is no interval, or nothing."""
    if signed and max(a.high, b.high) > LARGEST_SIGNED:
        return a
    match name:
        case "LT":
            low, high = a.low, min(a.high, b.high - 1)
        case "LE":
            low, high = a.low, min(a.high, b.high)
        case "GT":
            low, high = max(a.low, b.low + 1), a.high
        case "GE":
            low, high = max(a.low, b.low), a.high
        case "EQ":
            low, high = max(a.low, b.low), min(a.high, b.high)
        case _:
            return a
    return Range(low, high) if low <= high else a


def _as_signed(a: Range) -> Range | None:
    """The range read as signed numbers; None if it reaches over the sign."""
    if a.high <= LARGEST_SIGNED:
        return a
    return Range(a.low - (1 << WORD_BITS), a.high - (1 << WORD_BITS)) if a.low > LARGEST_SIGNED else None


def joined(words: Sequence[Range]) -> Range:
    """Words as one number, the lowest first."""
    low, high = (sum(word[end] << WORD_BITS * i for i, word in enumerate(words)) for end in (0, 1))
    return Range(low, high)


def lower_and_upper(product: Range) -> tuple[Range, Range]:
    """The two words of a range of 64-bit numbers."""
    if product.high >> (2 * WORD_BITS):
        return WORD, WORD
    upper = Range(product.low >> WORD_BITS, product.high >> WORD_BITS)
    lower = Range(product.low & LARGEST, product.high & LARGEST) if upper.value is not None else WORD
    return lower, upper
