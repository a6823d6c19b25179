"""Sets of registers as bits of an integer, by register number, and what fits into them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from sassir import isa
from sassir.dialect.registers import FILES, REGISTERS, number_of
from sassir.errors import TranslationError

MOST_REGISTERS = 255
"""The highest register count of a kernel."""
PREDICATES = 7


class AllocationError(TranslationError):
    """Values that do not fit into the registers they may have."""


class NoRoomError(AllocationError):
    """There are enough registers of a file, but groups in a row do not fit into them."""

    def __init__(self, message: str, file: str = "") -> None:
        super().__init__(message)
        self.file = file


def uniform_registers(arch: str) -> int:
    """How many uniform registers an architecture has: 63, from sm_100 on 80 (Mesa NAK; ptxas 13.5 uses no higher one)."""
    return 80 if int("".join(c for c in arch if c.isdigit())) >= 100 else 63


fixed = number_of
"""The register that a value must have; None for one that is free."""


def file_bits(file: str, count: int) -> int:
    """The first `count` registers of a file."""
    return span(FILES[file].FIRST, count)


def span(first: int, width: int) -> int:
    """`width` registers from `first` on."""
    return ((1 << width) - 1) << first


def lowest(registers: int) -> int:
    """The lowest register of a set that is not empty."""
    return (registers & -registers).bit_length() - 1


def members(registers: int) -> Iterator[int]:
    """The registers of a set, ascending."""
    while registers:
        yield lowest(registers)
        registers &= registers - 1


def is_aligned(first: int, width: int) -> bool:
    """Whether a group of this width may begin at register `first`."""
    return (first - REGISTERS[first].FIRST) % isa.alignment(width) == 0


def starts(free: int, file: str, width: int, alignment: int, phase: int = 0) -> int:
    """Where `width` free registers of a file begin, at numbers n in the file with n + phase a multiple of `alignment`."""
    first, count = FILES[file].FIRST, FILES[file].COUNT
    fit = free >> first & (1 << count) - 1
    have = 1
    while have < width:
        step = min(have, width - have)
        fit &= fit >> step
        have += step
    return (fit & _multiples(count, alignment, phase)) << first


@cache
def _multiples(count: int, alignment: int, phase: int) -> int:
    return sum(1 << n for n in range(count) if (n + phase) % alignment == 0)
