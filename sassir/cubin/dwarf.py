"""What every DWARF section is made of: numbers of fixed and of variable length, and addresses that a relocation fills in."""

from __future__ import annotations

from typing import NamedTuple

from sassir.cubin.elf import take
from sassir.cubin.places import Places


class Base(NamedTuple):
    """What a relocated address in a debug section points to."""

    offset: int
    """Offset in the code section."""
    places: Places | None
    """How that section moved; None when it did not."""
    symbol_moved: int
    """New value of the symbol minus its old one."""

    def moved(self, offset: int) -> int:
        """Where what was at this code offset is now."""
        return self.places.nearest(offset) if self.places else offset

    def rewritten(self, address: int) -> int:
        """What to store in place of this address: 0 stays, as the relocation holds all of it then."""
        return (address + self.moved(self.offset) - self.offset - self.symbol_moved) % (1 << 64) if address else 0


class Cursor:
    """Reads forward through bytes. Raises ContainerError at their end."""

    def __init__(self, data: bytes, position: int, where: str) -> None:
        self.data, self.position, self.where = data, position, where

    @property
    def more(self) -> bool:
        """There are bytes left."""
        return self.position < len(self.data)

    def read(self, size: int) -> bytes:
        """The next bytes."""
        value = take(self.data, self.position, size, "the next operation", self.where)
        self.position += size
        return value

    def number(self, size: int) -> int:
        """A little-endian number."""
        return int.from_bytes(self.read(size), "little")

    def leb(self) -> int:
        """A number in LEB128, as unsigned."""
        return self._leb()[0]

    def signed_leb(self) -> int:
        """A number in LEB128, as signed."""
        value, width = self._leb()
        return value - (value >> width - 1 << width)

    def _leb(self) -> tuple[int, int]:
        """A number in LEB128 and how many bits it was given."""
        value = width = 0
        while True:
            byte = self.number(1)
            value |= (byte & 0x7F) << width
            width += 7
            if byte < 0x80:
                return value, width


def signed_leb(value: int) -> bytes:
    """A number in signed LEB128."""
    out = bytearray()
    while not -0x40 <= value < 0x40:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*out, value & 0x7F))
