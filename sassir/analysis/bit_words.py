"""Words bit by bit: each bit a number, a copy of a bit of some value, or not known; sums and products of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from xdsl.ir import SSAValue

from sassir.analysis.ranges import LARGEST, WORD_BITS


class Copy(NamedTuple):
    """A bit that is equal to bit `place` of `value`."""

    value: SSAValue
    place: int


Bit = int | Copy | None
"""0, 1, a copy, or not known."""
Word = Sequence[Bit]
"""32 bits, the lowest first."""

UNKNOWN: Word = (None,) * WORD_BITS


def number(value: int) -> Word:
    """The bits of a number."""
    return tuple([value >> i & 1 for i in range(WORD_BITS)])


def trailing_zeros(value: int) -> int:
    """How many of the low bits of a number are 0; 32 for 0."""
    return (value & -value).bit_length() - 1 if value & LARGEST else WORD_BITS


def low_bits(word: Word) -> tuple[int, int]:
    """How many of the lowest bits are known, and the number that they are."""
    count = next((i for i, bit in enumerate(word) if not isinstance(bit, int)), WORD_BITS)
    return count, sum([bit << i for i, bit in enumerate(word[:count]) if isinstance(bit, int)])


def add(a: Word, b: Word) -> Word:
    """The sum, modulo 2³². A bit is known where at most one of the two and the carry is not a number."""
    found: list[Bit] = []
    carry: Bit = 0
    for terms in zip(a, b, strict=True):
        three = (*terms, carry)
        others = [t for t in three if not isinstance(t, int)]
        ones = sum([t for t in three if isinstance(t, int)])
        if not others:
            found.append(ones & 1)
            carry = ones >> 1
        elif len(others) == 1:
            found.append(None if ones == 1 else others[0])
            carry = ones >> 1 if ones != 1 else None
        else:
            found.append(None)
            carry = None
    return found


def negated(word: Word) -> Word:
    """0 less a number."""
    count, value = low_bits(word)
    return [*number(-value)[:count], *UNKNOWN[count:]]


def shifted(word: Word, by: int) -> Word:
    """A number times 2 to the power of `by`."""
    return [*(0,) * by, *word][:WORD_BITS]


def multiply(a: Word, b: Word) -> Word:
    """The product, modulo 2³²: exact times a power of two, else its low bits."""
    (count, low), (other_count, other_low) = low_bits(a), low_bits(b)
    for word, counted, factor in ((a, other_count, other_low), (b, count, low)):
        if counted == WORD_BITS and factor.bit_count() == 1:
            return shifted(word, trailing_zeros(factor))
    known = min(count + trailing_zeros(other_low | 1 << other_count), other_count + trailing_zeros(low | 1 << count), WORD_BITS)
    return [*number(low * other_low)[:known], *UNKNOWN[known:]]


def combine(table: int, a: Word, b: Word, c: Word) -> Word:
    """What LOP3 makes of three words with a truth table, whose entry is 4 a + 2 b + c."""
    found: list[Bit] = []
    for three in zip(a, b, c, strict=True):
        others = list(dict.fromkeys([t for t in three if isinstance(t, Copy)]))
        codes = [t if isinstance(t, int) else 2 + others.index(t) if isinstance(t, Copy) else 5 + k for k, t in enumerate(three)]
        code = _looked_up(table, *codes)
        found.append(code if code is None or code < 2 else others[code - 2] if code < 5 else None)
    return found


@cache
def _looked_up(table: int, a: int, b: int, c: int) -> int | None:
    """What bit a truth table gives for bits that are 0, 1 or, from 2 on, variables; None if that is none of them."""
    variables = sorted({x for x in (a, b, c) if x > 1})
    rows = [dict(zip(variables, [row >> k & 1 for k in range(len(variables))], strict=True)) for row in range(1 << len(variables))]
    outcomes = [table >> (r.get(a, a) << 2 | r.get(b, b) << 1 | r.get(c, c)) & 1 for r in rows]
    if len(set(outcomes)) == 1:
        return outcomes[0]
    return next((v for v in variables if outcomes == [r[v] for r in rows]), None)
