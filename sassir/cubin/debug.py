"""DWARF of moved code: call frames and line tables keep pointing at the code they described.

Addresses go through `Places.nearest`: exact where instructions kept their order; where instructions of two lines were mixed, each
takes the line of the place it is at now. Rows keep their number, so that NVIDIA's inlining records, which name rows, stay right.
Format: DWARF 2, 6.2 (line number information) and 6.4 (call frame information), as ptxas writes it.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import NamedTuple

from sassir.cubin.elf import take
from sassir.cubin.places import Places
from sassir.errors import ContainerError

FRAMES = ".debug_frame"
LINES = (".debug_line", ".nv_debug_line_sass")

_CIE = 0xFFFFFFFFFFFFFFFF
_ADVANCE_LOC4 = 0x04
_FRAME_OPERANDS = {
    0x00: "", 0x05: "uu", 0x06: "u", 0x07: "u", 0x08: "u", 0x09: "uu", 0x0A: "", 0x0B: "", 0x0C: "uu", 0x0D: "u", 0x0E: "u",
    0x0F: "b", 0x10: "ub", 0x11: "us", 0x12: "us", 0x13: "s", 0x14: "uu", 0x15: "us", 0x16: "ub",
}  # fmt: skip
"""Operands of DW_CFA operations that do not advance: u(LEB), s(LEB), b(lock)."""

_COPY, _ADVANCE_PC, _CONST_ADD_PC, _FIXED_ADVANCE_PC = 1, 2, 8, 9
_END_SEQUENCE, _SET_ADDRESS = 1, 2
_LINE_HEADER = struct.Struct("<IHI")
_LINE_PARAMETERS = struct.Struct("<BBbBB")


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
        value = shift = 0
        while True:
            byte = self.number(1)
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value


def moved_frames(data: bytes, bases: Mapping[int, Base], where: str) -> tuple[bytes, Mapping[int, int]]:
    """`.debug_frame` for moved code, and where in it each relocated address is: the same place.

    `bases` are by the offset of the relocated address. Raises ContainerError for an operation that is not known.
    """
    out = bytearray(data)
    cursor = Cursor(data, 0, where)
    alignment = 0  # of the common entry before: ptxas writes one for each frame, with pointers that miss it in relocatable objects
    while cursor.position < len(data):
        start = cursor.position
        if cursor.number(4) != 0xFFFFFFFF:
            raise ContainerError(f"{where}: 32-bit DWARF at {start:#x}, expected the 64-bit form")
        length = cursor.number(8)
        end = cursor.position + length
        if end > len(data):
            raise ContainerError(f"{where}: the entry at {start:#x} ends at {end:#x}, but the section has {len(data):#x} bytes")
        kind = cursor.number(8)
        if kind == _CIE:
            cursor.number(1)  # version
            while cursor.number(1):  # augmentation, a string
                pass
            alignment = cursor.leb()
        elif cursor.position in bases:
            if not alignment:
                raise ContainerError(f"{where}: the frame at {start:#x} has no common entry with a code alignment before it")
            _move_frame(out, cursor, end, alignment, bases[cursor.position])
        cursor.position = end
    return bytes(out), {offset: offset for offset in bases}


def _move_frame(out: bytearray, cursor: Cursor, end: int, alignment: int, base: Base) -> None:
    """Move one FDE in place; only four-byte advances occur."""
    at = cursor.position
    address, size = cursor.number(8), cursor.number(8)
    old, new = base.offset, base.moved(base.offset)
    struct.pack_into("<QQ", out, at, base.rewritten(address), max(base.moved(old + size) - new, 0))
    while cursor.position < end:
        operation = cursor.number(1)
        if operation == _ADVANCE_LOC4:
            old += cursor.number(4) * alignment
            # Labels may have put blocks into another order; addresses cannot go back.
            advance = max(base.moved(old) - new, 0) // alignment
            struct.pack_into("<I", out, cursor.position - 4, advance)
            new += advance * alignment
        elif operation >> 6 == 2:  # DW_CFA_offset
            cursor.leb()
        elif operation >> 6 != 3:  # DW_CFA_restore has no operand
            if operation not in _FRAME_OPERANDS:
                raise ContainerError(f"{cursor.where}: call frame operation {operation:#x} at {cursor.position - 1:#x} cannot be moved")
            for operand in _FRAME_OPERANDS[operation]:
                value = cursor.leb()
                if operand == "b":
                    cursor.read(value)


def moved_lines(data: bytes, bases: Mapping[int, Base], where: str) -> tuple[bytes, Mapping[int, int]]:
    """A line table section for moved code, and where in it each relocated address is. Raises ContainerError for an unknown version."""
    out = bytearray()
    addresses: dict[int, int] = {}
    cursor = Cursor(data, 0, where)
    while cursor.position < len(data):
        start = cursor.position
        length, version, header_length = _LINE_HEADER.unpack(cursor.read(_LINE_HEADER.size))
        end, program = start + 4 + length, cursor.position + header_length
        if version not in (2, 3) or not program <= end <= len(data):
            raise ContainerError(f"{where}: line table at {start:#x} of version {version}, {length} bytes; cannot be moved")
        table = _LineTable(Cursor(data[:end], cursor.position, where), program, bases, len(out) + program - start)
        body = table.moved()
        out += struct.pack("<I", program - start - 4 + len(body)) + data[start + 4 : program] + body
        addresses |= table.addresses
        cursor.position = end
    if bases.keys() - addresses.keys():
        raise ContainerError(f"{where}: the relocation at {min(bases.keys() - addresses.keys()):#x} is for no address of a line table")
    return bytes(out), addresses


class _LineTable:
    """One line number program: every operation but those that advance the address is kept as it is."""

    def __init__(self, cursor: Cursor, program: int, bases: Mapping[int, Base], position: int) -> None:
        self.scale, _, _, self.line_range, self.opcode_base = _LINE_PARAMETERS.unpack(cursor.read(_LINE_PARAMETERS.size))
        if not (self.scale and self.line_range and self.opcode_base > _FIXED_ADVANCE_PC):
            raise ContainerError(f"{cursor.where}: a line table that does not advance; cannot be moved")
        self.operands = cursor.read(self.opcode_base - 1)
        self.cursor, self.bases, self.position = cursor, bases, position
        self.addresses: dict[int, int] = {}
        cursor.position = program

    def moved(self) -> bytes:
        """The program with its addresses moved."""
        cursor, out = self.cursor, bytearray()
        base, old, new = Base(0, None, 0), 0, 0

        def row(*operation: int) -> None:
            nonlocal new
            # Labels may have put blocks into another order; addresses cannot go back.
            advance = max(base.moved(old) - new, 0) // self.scale
            new += advance * self.scale
            out.extend((_ADVANCE_PC, *_uleb(advance), *operation) if advance else operation)

        while cursor.position < len(cursor.data):
            start = cursor.position
            operation = cursor.number(1)
            if operation >= self.opcode_base:
                advance, line = divmod(operation - self.opcode_base, self.line_range)
                old += advance * self.scale
                row(self.opcode_base + line)
            elif operation == 0:
                size = cursor.leb()
                extended = cursor.read(size)
                if extended[:1] == bytes((_END_SEQUENCE,)):
                    row(*cursor.data[start : cursor.position])
                elif extended[:1] == bytes((_SET_ADDRESS,)) and size == 9:
                    at = cursor.position - size + 1
                    if at not in self.bases:
                        raise ContainerError(f"{cursor.where}: the address at {at:#x} has no relocation that tells whose code it is")
                    base = self.bases[at]
                    old, new = base.offset, base.moved(base.offset)
                    self.addresses[at] = self.position + len(out) + at - start
                    out += cursor.data[start:at] + base.rewritten(int.from_bytes(extended[1:], "little")).to_bytes(8, "little")
                else:
                    out += cursor.data[start : cursor.position]
            elif operation == _ADVANCE_PC:
                old += cursor.leb() * self.scale
            elif operation == _CONST_ADD_PC:
                old += (255 - self.opcode_base) // self.line_range * self.scale
            elif operation == _FIXED_ADVANCE_PC:
                old += cursor.number(2)
            elif operation == _COPY:
                row(operation)
            else:
                for _ in range(self.operands[operation - 1]):
                    cursor.leb()
                out += cursor.data[start : cursor.position]
        return bytes(out)


def _uleb(value: int) -> bytes:
    """Unsigned LEB128."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*out, value))
