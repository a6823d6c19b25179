"""Words bit by bit: each bit a number, not known, or a copy of a bit of some value; sums and products of such words."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from sassir.analysis.ranges import LARGEST, WORD_BITS

Word = Sequence[int]
"""32 bits, the lowest first. A bit is 0 or 1, `UNKNOWN`, or stands for the bit of a value, which is a number from `COPY` on."""

UNKNOWN = 2
COPY = WORD_BITS
"""Bit i of the value number n (from 1 on) is 32 n + i."""
NOTHING: Word = (UNKNOWN,) * WORD_BITS
"""A word of which nothing is known."""


@cache
def number(value: int) -> Word:
    """The bits of a number."""
    return tuple([value >> i & 1 for i in range(WORD_BITS)])


ZERO = number(0)


def trailing_zeros(value: int) -> int:
    """How many of the low bits of a number are 0; 32 for 0."""
    return (value & -value).bit_length() - 1 if value & LARGEST else WORD_BITS


def low_bits(word: Word) -> tuple[int, int]:
    """How many of the lowest bits are known, and the number that they are."""
    count = value = 0
    while count < WORD_BITS and word[count] < UNKNOWN:
        value |= word[count] << count
        count += 1
    return count, value


def common(a: Word, b: Word) -> Word:
    """What two words have in common."""
    return a if a == b else tuple([x if x == y else UNKNOWN for x, y in zip(a, b, strict=True)])


def add(a: Word, b: Word) -> Word:
    """The sum, modulo 2³². A bit is known where at most one of the two and the carry is not a number."""
    if a == ZERO or b == ZERO:
        return b if a == ZERO else a
    found: list[int] = []
    carry = 0
    for x, y in zip(a, b, strict=True):
        others = (x >= UNKNOWN) + (y >= UNKNOWN) + (carry >= UNKNOWN)
        if not others:
            found.append((x + y + carry) & 1)
            carry = (x + y + carry) >> 1
        elif others == 1:
            ones = (x == 1) + (y == 1) + (carry == 1)
            found.append(UNKNOWN if ones == 1 else max(x, y, carry))
            carry = UNKNOWN if ones == 1 else ones >> 1
        else:
            found.append(UNKNOWN)
            carry = UNKNOWN
    return found


def negated(word: Word) -> Word:
    """0 less a number."""
    count, value = low_bits(word)
    return [*number(-value & LARGEST)[:count], *NOTHING[count:]]


def shifted(word: Word, by: int) -> Word:
    """A number times 2 to the power of `by`."""
    return [*(0,) * by, *word][:WORD_BITS] if by else word


def multiply(a: Word, b: Word) -> Word:
    """The product, modulo 2³²: exact times a power of two, else its low bits."""
    (count, low), (other_count, other_low) = low_bits(a), low_bits(b)
    for word, counted, factor in ((a, other_count, other_low), (b, count, low)):
        if counted == WORD_BITS and factor.bit_count() == 1:
            return shifted(word, trailing_zeros(factor))
    known = min(count + trailing_zeros(other_low | 1 << other_count), other_count + trailing_zeros(low | 1 << count), WORD_BITS)
    return [*number(low * other_low & LARGEST)[:known], *NOTHING[known:]]


def combine(table: int, a: Word, b: Word, c: Word) -> Word:
    """What LOP3 makes of three words with a truth table, whose entry is 4 a + 2 b + c."""
    found: list[int] = []
    for three in zip(a, b, c, strict=True):
        others = list(dict.fromkeys([bit for bit in three if bit >= COPY]))
        codes = [bit if bit < UNKNOWN else 2 + others.index(bit) if bit >= COPY else 5 + k for k, bit in enumerate(three)]
        code = _looked_up(table, *codes)
        found.append(code if code < 2 else others[code - 2] if code < 5 else UNKNOWN)
    return found


@cache
def _looked_up(table: int, a: int, b: int, c: int) -> int:
    """What bit a truth table gives for bits that are 0, 1 or, from 2 on, variables; 5 if that is none of them."""
    variables = sorted({x for x in (a, b, c) if x > 1})
    rows = [dict(zip(variables, [row >> k & 1 for k in range(len(variables))], strict=True)) for row in range(1 << len(variables))]
    outcomes = [table >> (r.get(a, a) << 2 | r.get(b, b) << 1 | r.get(c, c)) & 1 for r in rows]
    if len(set(outcomes)) == 1:
        return outcomes[0]
    return next((v for v in variables if outcomes == [r[v] for r in rows]), 5)
