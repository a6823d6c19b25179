"""Where code is: the section of a kernel, and those of functions that it may call, one behind the other.

The code of a kernel has the addresses from 0 on; a function in a section of its own those from the number of the section times 2^32 on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from sassir.asm.instruction import INSTRUCTION_BYTES
from sassir.cubin.code import CodeSection, words
from sassir.cubin.relocation import Relocation
from sassir.errors import EmulationError

_SECTION = 32
"""The bits of an address in a section."""


class Stretch(NamedTuple):
    """The code of one section among all code of a kernel."""

    name: str
    start: int
    """The place of its first instruction."""
    length: int
    address: int


class Stretches:
    """The sections of a kernel's code: places to addresses and back."""

    def __init__(self, sections: Mapping[int, CodeSection]) -> None:
        """`sections` by the high word of their addresses; the kernel, at 0, comes first."""
        self._by_high: dict[int, Stretch] = {}
        start = 0
        for high, section in sections.items():
            count = len(section.data) // INSTRUCTION_BYTES
            self._by_high[high] = Stretch(section.kernel, start, count, high << _SECTION)
            start += count

    def place(self, address: int) -> int | None:
        """The instruction at an address; None where there is none."""
        found = self._by_high.get(address >> _SECTION)
        place, rest = divmod(address - found.address, INSTRUCTION_BYTES) if found is not None else (0, 1)
        return found.start + place if found is not None and not rest and place < found.length else None

    def of(self, place: int) -> Stretch:
        """The section of an instruction."""
        return next(found for found in self._by_high.values() if place < found.start + found.length)

    def address(self, place: int) -> int:
        """The address of an instruction."""
        found = self.of(place)
        return found.address + INSTRUCTION_BYTES * (place - found.start)


def function_address(section: CodeSection, offset: int) -> int:
    """The address of code of a section."""
    own = section.head is not None and section.head.entry
    return offset if own else (section.index << _SECTION) + offset


def linked_words(section: CodeSection, address: Callable[[Relocation], int]) -> list[int]:
    """The instruction words of a section with what the driver fills in: `address` of each relocation. Raises EmulationError."""
    code = list(words(section))
    for relocation in section.relocations:
        place, within = divmod(relocation.offset, INSTRUCTION_BYTES)
        fill = _FIELDS.get(relocation.type_name)
        if fill is None or within:
            raise EmulationError(f"{section.name}: {relocation.type_name} of {relocation.symbol_name} is not known to the emulator")
        code[place] |= fill(address(relocation))
    return code


def _bits(value: int, count: int, first: int) -> int:
    return (value & (1 << count) - 1) << first


_FIELDS: Mapping[str, Callable[[int], int]] = {
    "R_CUDA_ABS32_LO_32": lambda value: _bits(value, 32, 32),
    "R_CUDA_ABS32_HI_32": lambda value: _bits(value >> 32, 32, 32),
    "R_CUDA_ABS47_34": lambda value: _bits(value >> 2, 47, 34),
    "R_CUDA_ABS55_16_34": lambda value: _bits(value >> 2, 8, 16) | _bits(value >> 10, 47, 34),
}
"""What is put where a word has zeros. A call counts in units of four bytes."""
