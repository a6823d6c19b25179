"""Line tables: the source line of each instruction (`.debug_line`), and its line of PTX (`.nv_debug_line_sass`).

An instruction keeps its row wherever it goes; a new one takes that of the instruction before it. So the rows of code that
changed its order are written anew, in the new order.

Format: DWARF 2, 6.2 (line number information), with one operation of NVIDIA's for inlined code: the number of the row in the
sequence that is the place of the call, and the name of the function (`.loc … inlined_at` of PTX).
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from sassir.asm.instruction import INSTRUCTION_BYTES
from sassir.cubin.dwarf import Base, Cursor, signed_leb
from sassir.errors import ContainerError

LINES = (".debug_line", ".nv_debug_line_sass")

_ADDRESS_BYTES = 8
_HEADER = struct.Struct("<IHI")


class _Op(IntEnum):
    """Standard operations (DW_LNS)."""

    COPY = 1
    ADVANCE_PC = 2
    ADVANCE_LINE = 3
    SET_FILE = 4
    SET_COLUMN = 5
    NEGATE_STATEMENT = 6
    SET_BLOCK = 7
    CONST_ADD_PC = 8
    FIXED_ADVANCE_PC = 9


class _Extended(IntEnum):
    """Extended operations (DW_LNE)."""

    END_SEQUENCE = 0x01
    SET_ADDRESS = 0x02
    INLINED = 0x90


class Row(NamedTuple):
    """The source of the code from `address` to the next row."""

    address: int
    """Bytes from the start of the sequence."""
    file: int = 1
    line: int = 1
    column: int = 0
    statement: bool = True
    """A debugger stops here."""
    block: bool = False
    """A basic block begins here."""
    call: int = 0
    """Number in the sequence, from 1, of the row of the call that was inlined; 0: not inlined."""
    function: int = 0
    """What was inlined: offset of its name in `.debug_str`."""


class LineSequence(NamedTuple):
    """Rows of code that lies together."""

    at: int
    """Offset in the section of its relocated address."""
    address: int
    """What is stored there."""
    rows: tuple[Row, ...]
    """By address. Of several at one address the last counts; ptxas puts rows that are only named as calls before it."""
    length: int
    """Bytes of code."""


class Parameters(NamedTuple):
    """How a table packs an advance of address and line into one byte."""

    scale: int
    statement: int
    line_base: int
    line_range: int
    opcode_base: int


_PARAMETERS = struct.Struct("<BBbBB")


class LineTable(NamedTuple):
    """One compilation unit."""

    head: bytes
    """Everything between the parameters and the rows: directories and files."""
    version: int
    parameters: Parameters
    sequences: tuple[LineSequence, ...]


def read_lines(data: bytes, where: str) -> Iterator[LineTable]:
    """The tables of a section. Raises ContainerError, naming the place, for what cannot be read."""
    cursor = Cursor(data, 0, where)
    while cursor.more:
        start = cursor.position
        length, version, header_length = _HEADER.unpack(cursor.read(_HEADER.size))
        end, program = start + 4 + length, cursor.position + header_length
        if version not in (2, 3) or not program <= end <= len(data):
            raise ContainerError(f"{where}: line table at {start:#x} of version {version}, {length} bytes; cannot be read")
        parameters = Parameters(*_PARAMETERS.unpack(cursor.read(_PARAMETERS.size)))
        if not (parameters.scale and parameters.line_range and parameters.opcode_base > _Op.FIXED_ADVANCE_PC):
            raise ContainerError(f"{where}: the line table at {start:#x} does not advance; cannot be read")
        head = data[cursor.position : program]
        yield LineTable(head, version, parameters, tuple(_read_sequences(Cursor(data[:end], program, where), parameters)))
        cursor.position = end


def _read_sequences(cursor: Cursor, parameters: Parameters) -> Iterator[LineSequence]:
    initial = Row(0, statement=bool(parameters.statement))
    row, rows, place = initial, list[Row](), None
    while cursor.more:
        start = cursor.position
        operation = cursor.number(1)
        if operation:
            row = _step(row, operation, cursor, parameters)
            if operation == _Op.COPY or operation >= parameters.opcode_base:
                rows.append(row)
                row = row._replace(block=False)
            continue
        extended = Cursor(cursor.read(cursor.leb()), 0, cursor.where)
        kind = extended.number(1)
        if kind == _Extended.SET_ADDRESS and not rows:
            place = cursor.position - _ADDRESS_BYTES, extended.number(_ADDRESS_BYTES)
        elif kind == _Extended.INLINED:
            row = row._replace(call=extended.leb(), function=extended.leb())
        elif kind == _Extended.END_SEQUENCE and place:
            yield LineSequence(*place, tuple(rows), row.address)
            row, rows, place = initial, [], None
        else:
            raise ContainerError(f"{cursor.where}: the extended line operation {kind:#x} at {start:#x} is not known there")
    if rows or place:
        raise ContainerError(f"{cursor.where}: the line table that ends at {len(cursor.data):#x} ends inside of a sequence")


def _step(row: Row, operation: int, cursor: Cursor, parameters: Parameters) -> Row:
    """The next row after one operation that is not extended."""
    scale, _, line_base, line_range, opcode_base = parameters
    if operation >= opcode_base:
        advance, line = divmod(operation - opcode_base, line_range)
        return row._replace(address=row.address + advance * scale, line=row.line + line + line_base)
    match operation:
        case _Op.COPY:
            return row
        case _Op.ADVANCE_PC:
            return row._replace(address=row.address + cursor.leb() * scale)
        case _Op.CONST_ADD_PC:
            return row._replace(address=row.address + (255 - opcode_base) // line_range * scale)
        case _Op.FIXED_ADVANCE_PC:
            return row._replace(address=row.address + cursor.number(2))
        case _Op.ADVANCE_LINE:
            return row._replace(line=row.line + cursor.signed_leb())
        case _Op.SET_FILE:
            return row._replace(file=cursor.leb())
        case _Op.SET_COLUMN:
            return row._replace(column=cursor.leb())
        case _Op.NEGATE_STATEMENT:
            return row._replace(statement=not row.statement)
        case _Op.SET_BLOCK:
            return row._replace(block=True)
        case _:
            raise ContainerError(f"{cursor.where}: the line operation {operation} at {cursor.position - 1:#x} is not known")


def write_lines(tables: Sequence[LineTable]) -> tuple[bytes, list[int]]:
    """The bytes of a section, and where in it the address of each sequence is. Of what ptxas wrote the very same bytes."""
    out = bytearray()
    addresses: list[int] = []
    for table in tables:
        start = len(out)
        out += bytes(_HEADER.size) + _PARAMETERS.pack(*table.parameters) + table.head
        program = len(out)
        for sequence in table.sequences:
            out += bytes((0, 1 + _ADDRESS_BYTES, _Extended.SET_ADDRESS))
            addresses.append(len(out))
            out += sequence.address.to_bytes(_ADDRESS_BYTES, "little") + _rows(sequence, table.parameters)
        _HEADER.pack_into(out, start, len(out) - start - 4, table.version, program - start - _HEADER.size)
    return bytes(out), addresses


def _rows(sequence: LineSequence, parameters: Parameters) -> bytes:
    """The operations that give these rows. As ptxas does, every number is written as a signed one, which reads the same."""
    scale, statement, line_base, line_range, opcode_base = parameters
    out = bytearray()
    old = Row(0, file=-1, statement=bool(statement))  # the first row names its file
    for row in sequence.rows:
        if (row.call, row.function) != (old.call, old.function):
            operands = signed_leb(row.call) + signed_leb(row.function)
            out += bytes((0, 1 + len(operands), _Extended.INLINED)) + operands
        if row.file != old.file:
            out += bytes((_Op.SET_FILE,)) + signed_leb(row.file)
        if row.column != old.column:
            out += bytes((_Op.SET_COLUMN,)) + signed_leb(row.column)
        if row.statement != old.statement:
            out.append(_Op.NEGATE_STATEMENT)
        if row.block:
            out.append(_Op.SET_BLOCK)
        advance, line = (row.address - old.address) // scale, row.line - old.line
        short = line - line_base + line_range * advance + opcode_base
        if advance and 0 <= line - line_base < line_range and short < 256:
            out.append(short)
        else:
            out += bytes((_Op.ADVANCE_LINE,)) + signed_leb(line) if line or not advance else b""
            out += bytes((_Op.ADVANCE_PC,)) + signed_leb(advance) if advance else b""
            out.append(_Op.COPY)
        old = row
    rest = (sequence.length - old.address) // scale
    return bytes(out) + (bytes((_Op.ADVANCE_PC,)) + signed_leb(rest) if rest else b"") + bytes((0, 1, _Extended.END_SEQUENCE))


def moved_lines(data: bytes, bases: Mapping[int, Base], where: str) -> tuple[bytes, Mapping[int, int]]:
    """A line table section for moved code, and where in it each relocated address is.

    `bases` are by the offset of the relocated address. Raises ContainerError for what cannot be read, and for an address
    without a relocation.
    """
    tables = [*read_lines(data, where)]
    old = [sequence.at for table in tables for sequence in table.sequences]
    for at in (*(at for at in old if at not in bases), *bases.keys() - {*old}):
        raise ContainerError(f"{where}: an address of a line table and a relocation belong together; only one of them is at {at:#x}")
    out, new = write_lines([table._replace(sequences=tuple([_moved(s, bases[s.at]) for s in table.sequences])) for table in tables])
    return out, dict(zip(old, new, strict=True))


def _moved(sequence: LineSequence, base: Base) -> LineSequence:
    places = base.places
    if places is None:
        return sequence
    addresses = [row.address for row in sequence.rows]

    def number(new: int) -> int:
        """Of the row of the instruction at this new offset; 0 for one that was not in the sequence."""
        old = places.origin(new)
        within = -1 if old is None else old - base.offset
        return bisect_right(addresses, within) if 0 <= within < sequence.length else 0

    start, end = base.moved(base.offset), base.moved(base.offset + sequence.length)
    numbers = [number(new) for new in range(start, end, INSTRUCTION_BYTES)]
    relaid, before, last = _Relaid(sequence.rows), 0, next(filter(None, numbers), 0)
    for i, now in enumerate(numbers):
        last = now or last
        if last != before:
            relaid.add(last, INSTRUCTION_BYTES * i)
            before = last
    return sequence._replace(address=base.rewritten(sequence.address), rows=tuple(relaid.rows), length=max(end - start, 0))


class _Relaid:
    """Rows in another order. They are named by their old numbers, from 1."""

    def __init__(self, rows: tuple[Row, ...]) -> None:
        self.old = rows
        self.rows: list[Row] = []
        self.numbers: dict[int, int] = {0: 0}
        """The new number of each old row, where it is first."""

    def add(self, number: int, address: int) -> None:
        """Put a row at this address, and before it the calls that it was inlined through, where they are not there yet."""
        chain = [number]
        while (call := self.old[chain[-1] - 1].call) not in self.numbers and 0 < call < chain[-1]:
            chain.append(call)
        for link in reversed(chain):
            row = self.old[link - 1]
            self.rows.append(row._replace(address=address, call=self.numbers.get(row.call, 0)))
            self.numbers.setdefault(link, len(self.rows))
