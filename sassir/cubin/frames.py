"""`.debug_frame` of moved code: the ranges of call frames, and the places inside where their rules change.

Format: DWARF 2, 6.4 (call frame information), as ptxas writes it: 64-bit entries, addresses by relocation.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from sassir.asm import INSTRUCTION_BYTES
from sassir.cubin.dwarf import Base, Cursor
from sassir.errors import ContainerError

FRAMES = ".debug_frame"

_CIE = 0xFFFFFFFFFFFFFFFF
_ADVANCE_LOC4 = 0x04
_HALF = 1 << 31
"""Advances are 32-bit numbers of bytes: what is more goes back."""
_OPERANDS = {
    0x00: "", 0x05: "uu", 0x06: "u", 0x07: "u", 0x08: "u", 0x09: "uu", 0x0A: "", 0x0B: "", 0x0C: "uu", 0x0D: "u", 0x0E: "u",
    0x0F: "b", 0x10: "ub", 0x11: "us", 0x12: "us", 0x13: "s", 0x14: "uu", 0x15: "us", 0x16: "ub",
}  # fmt: skip
"""Operands of DW_CFA operations that do not advance: u(LEB), s(LEB), b(lock)."""


class Advance(NamedTuple):
    """One DW_CFA_advance_loc4."""

    at: int
    """Offset of its operand in the section."""
    bytes: int
    """How far it goes on in the code; ptxas also goes back."""


class Frame(NamedTuple):
    """One frame description entry."""

    at: int
    """Offset in the section of its relocated address; its size follows."""
    address: int
    size: int
    alignment: int
    """Bytes of code in one unit of an advance."""
    advances: tuple[Advance, ...]


def read_frames(data: bytes, where: str) -> Iterator[Frame]:
    """The entries of a `.debug_frame`, in order. Raises ContainerError, naming the place, for what cannot be read."""
    cursor = Cursor(data, 0, where)
    alignment = 0  # of the common entry before: ptxas writes one for each frame, with pointers that miss it in relocatable objects
    while cursor.more:
        start = cursor.position
        if cursor.number(4) != 0xFFFFFFFF:
            raise ContainerError(f"{where}: 32-bit DWARF at {start:#x}, expected the 64-bit form")
        length = cursor.number(8)
        end = cursor.position + length
        if end > len(data):
            raise ContainerError(f"{where}: the entry at {start:#x} ends at {end:#x}, but the section has {len(data):#x} bytes")
        if cursor.number(8) == _CIE:
            cursor.number(1)  # version
            while cursor.number(1):  # augmentation, a string
                pass
            alignment = cursor.leb()
        elif not alignment:
            raise ContainerError(f"{where}: the frame at {start:#x} has no common entry with a code alignment before it")
        else:
            at = cursor.position
            yield Frame(at, cursor.number(8), cursor.number(8), alignment, tuple(_advances(cursor, end, alignment)))
        cursor.position = end


def _advances(cursor: Cursor, end: int, alignment: int) -> Iterator[Advance]:
    """The advances up to `end`; only four-byte ones occur."""
    while cursor.position < end:
        at = cursor.position
        operation = cursor.number(1)
        if operation == _ADVANCE_LOC4:
            yield Advance(at + 1, (cursor.number(4) * alignment + _HALF) % (2 * _HALF) - _HALF)
        elif operation >> 6 == 2:  # DW_CFA_offset
            cursor.leb()
        elif operation >> 6 != 3:  # DW_CFA_restore has no operand
            if operation not in _OPERANDS:
                raise ContainerError(f"{cursor.where}: call frame operation {operation:#x} at {at:#x} cannot be moved")
            for operand in _OPERANDS[operation]:
                value = cursor.leb()
                if operand == "b":
                    cursor.read(value)


def moved_frames(data: bytes, bases: Mapping[int, Base], where: str) -> tuple[bytes, Mapping[int, int]]:
    """`.debug_frame` for moved code, and where in it each relocated address is: the same place.

    Rules change where the first instruction behind their change that is left is now; where none is, or it left the function, at
    the last instruction of the frame. `bases` are by the offset of the relocated address. Raises ContainerError for an operation
    that is not known.
    """
    out = bytearray(data)
    for frame in read_frames(data, where):
        base = bases.get(frame.at)
        if base is None or base.places is None:
            continue
        old, new = base.offset, base.moved(base.offset)
        end = old + frame.size
        size = max(base.moved(end) - new, 0)
        struct.pack_into("<QQ", out, frame.at, base.rewritten(frame.address), size)
        start, last = new, new + max(size - INSTRUCTION_BYTES, 0)
        for at, advance in frame.advances:
            old += advance
            left = base.places.left_of(old, end)
            place = left if left is not None and start <= left <= last else last
            struct.pack_into("<I", out, at, (place - new) % (2 * _HALF) // frame.alignment)
            new = place
    return bytes(out), {offset: offset for offset in bases}
