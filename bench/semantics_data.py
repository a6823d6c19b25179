"""Operands for the test of each instruction: random ones, edge values, values that are hard to round, and all pairs of exponents.

The same bits every time.
"""

from __future__ import annotations

from functools import cache
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint32]

BLOCK, BLOCKS = 1 << 12, 16
"""Lanes that get their operands the same way, and how many such blocks there are; behind them is the grid of exponents."""
LANES = BLOCK * BLOCKS + (1 << 16)
"""Lanes of a test, whole warps."""
SOURCES = 16
"""Words that an instruction may read."""
CONSTANTS = 8
"""Words of constant memory that it may read."""

EDGES = np.array(
    [0, 1, 2, 3, 7, 8, 15, 16, 24, 31, 32, 33, 63, 64, 65, 127, 128, 255, 256, 0x7FFF, 0x8000, 0xFFFF, 0x10000]
    + [0x7FFFFFFE, 0x7FFFFFFF, 0x80000000, 0x80000001, 0x80000002, 0xFFFF0000, 0xFFFF8000, 0xFFFFFF80, 0xFFFFFFFE, 0xFFFFFFFF]
    # singles: denormal, smallest and largest normal, one and its neighbours, infinite, quiet and signalling NaN
    + [sign | x for sign in (0, 1 << 31) for x in (0x7FFFFF, 0x400000, 0x800000, 0x800001, 0x1000000, 0x7F7FFFFF, 0x3F800000)]
    + [sign | x for sign in (0, 1 << 31) for x in (0x3F7FFFFF, 0x3F800001, 0x3F000000, 0x7F800000, 0x7FC00000, 0x7F800001, 0x7FFFFFFF)]
    + [0x4B000000, 0x4B800000, 0x4F000000, 0x4F7FFFFF, 0x4F800000, 0xCF000000, 0x5F000000, 0x5F7FFFFF, 0x5F800000, 0xDF000000]
    # high words of doubles, halves and bfloat16 in pairs
    + [0x3FF00000, 0x3FEFFFFF, 0x7FF00000, 0x7FF80000, 0x7FEFFFFF, 0x00100000, 0x000FFFFF, 0xBFF00000, 0xFFF00001, 0x41E00000]
    + [0x3C003C00, 0x7BFF0400, 0x03FF0001, 0x7C00FC00, 0x7E017C01, 0x80008000, 0x3F803F80, 0x7F7F0080, 0x007F0001, 0x7F80FF80],
    np.uint32,
)


class _Bits:
    """A stream of random words; PCG64's raw stream does not change between releases of numpy."""

    def __init__(self, seed: int) -> None:
        self._generator = np.random.PCG64(seed)

    def words(self, bits: int = 32, count: int = BLOCK) -> Words:
        """Random words of so many low bits."""
        return (self._generator.random_raw(count) >> np.uint64(64 - bits)).astype(np.uint32)

    def exponents(self, first: int, count: int) -> Words:
        """Random numbers from `first` on."""
        return np.uint32(first) + self.words(16) % np.uint32(count)

    def sparse(self, bits: int) -> Words:
        """Words with few ones among the low bits, often at both ends: sums and products of such lie half-way between numbers."""
        result = self.words(bits)
        for _ in range(3):
            result &= self.words(bits)
        ends = self.words(2)
        return result | ends & np.uint32(1) | ends >> np.uint32(1) << np.uint32(bits - 1)


def _pair(low: Words, high: Words) -> Words:
    return low | high << np.uint32(16)


def _number(bits: _Bits, width: int, fraction: Words, exponents: tuple[int, int]) -> Words:
    """Floating-point numbers of `width` bits fraction with a sign; exponents: first and how many."""
    top = 15 if width < 11 else 31
    return bits.words(1) << np.uint32(top) | bits.exponents(*exponents) << np.uint32(width) | fraction


def _bfloat(bits: _Bits, fraction: Words, exponents: tuple[int, int]) -> Words:
    return bits.words(1) << np.uint32(15) | bits.exponents(*exponents) << np.uint32(7) | fraction


def _double(bits: _Bits, sparse: bool, exponents: tuple[int, int], source: int) -> Words:
    """A low word of doubles, or if `source` is odd a high word."""
    if source % 2:
        return _number(bits, 20, bits.sparse(19) if sparse else bits.words(20), exponents)
    return bits.sparse(32) if sparse else bits.words()


def _block(bits: _Bits, index: int, source: int) -> Words:
    """The operands of one block."""
    near, wide = (124, 8), (0, 256)
    match index:
        case 0 | 1:
            return EDGES[bits.words(16) % np.uint32(len(EDGES))]
        case 2:
            return bits.words()
        case 3:
            return bits.words(7) - np.uint32(64)
        case 4:
            return _number(bits, 23, bits.words(23), near)
        case 5:
            return _number(bits, 23, bits.sparse(23), near)
        case 6:
            return _number(bits, 23, bits.words(23), (96, 64))
        case 7:
            return _number(bits, 23, bits.sparse(23), (0, 3) if source % 3 == 2 else (60, 12))
        case 8:
            return _pair(_number(bits, 10, bits.words(10), (12, 7)), _number(bits, 10, bits.sparse(10), (12, 7)))
        case 9:
            return _pair(_number(bits, 10, bits.sparse(10), (0, 31)), _number(bits, 10, bits.words(10), (0, 12)))
        case 10:
            return _pair(_bfloat(bits, bits.words(7), near), _bfloat(bits, bits.sparse(7), near))
        case 11:
            return _pair(_bfloat(bits, bits.words(7), wide), _bfloat(bits, bits.sparse(7), (50, 30)))
        case 12:
            return _double(bits, False, (1019, 8), source)
        case 13:
            return _double(bits, True, (1019, 8), source)
        case 14:
            return _double(bits, False, (0, 2047), source)
        case _:
            return _double(bits, True, (490, 30) if source < 4 else (0, 30), source)


def _grid(bits: _Bits, source: int) -> Words:
    """Random singles whose exponents go through all pairs in the first two sources; in every third one they are random."""
    pair = np.arange(1 << 16, dtype=np.uint32)
    exponents = (pair >> np.uint32(8), pair & np.uint32(0xFF), bits.words(8, len(pair)))[source % 3]
    return bits.words(1, len(pair)) << np.uint32(31) | exponents << np.uint32(23) | bits.words(23, len(pair))


@cache
def operands() -> Words:
    """All sources, of the shape (sources, lanes)."""
    sources: list[Words] = []
    for source in range(SOURCES):
        bits = _Bits(source)
        sources.append(np.concatenate([*(_block(bits, index, source) for index in range(BLOCKS)), _grid(bits, source)]))
    return np.stack(sources)


@cache
def constants(text: str) -> Words:
    """The words of constant memory for this instruction."""
    choices: Any = np.random.PCG64(crc32(text.encode())).random_raw(CONSTANTS)
    return EDGES[choices % len(EDGES)]
