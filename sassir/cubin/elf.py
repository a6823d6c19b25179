"""ELF as NVIDIA uses it: 64 bits, little endian. Strict about bounds; whatever is not replaced keeps its bytes.

Layout and names of fields: System V ABI, chapter 4 (elf.h). Cubins give no addresses; only file offsets matter.
"""

from __future__ import annotations

import struct
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from sassir.errors import ContainerError

MAGIC = b"\x7fELF"
HEADER = struct.Struct("<4sBBBBB7xHHIQQQIHHHHHH")
SECTION_HEADER = struct.Struct("<IIQQQQIIQQ")
PROGRAM_HEADER = struct.Struct("<IIQQQQQQ")
SYMBOL = struct.Struct("<IBBHQQ")

ET_REL = 1
SHT_NULL, SHT_PROGBITS, SHT_SYMTAB, SHT_RELA, SHT_NOBITS, SHT_REL = 0, 1, 2, 4, 8, 9
SHT_CUDA_GLOBAL, SHT_CUDA_LOCAL, SHT_CUDA_SHARED, SHT_CUDA_MERCURY_SHARED = 0x70000007, 0x70000009, 0x7000000A, 0x70000015
SHF_ALLOC, SHF_EXECINSTR = 0x2, 0x4
SHN_XINDEX = 0xFFFF
STT_FUNC = 2

_NO_BYTES = {SHT_NULL, SHT_NOBITS, SHT_CUDA_GLOBAL, SHT_CUDA_LOCAL, SHT_CUDA_SHARED, SHT_CUDA_MERCURY_SHARED}
"""Types of sections that only have a size: memory that starts uninitialised."""

_MOST_ALIGNMENT = 1 << 16


@dataclass(frozen=True, slots=True)
class Section:
    """One section header, with its name looked up."""

    index: int
    name: str
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry_size: int

    @property
    def file_size(self) -> int:
        """Bytes it occupies in the file."""
        return 0 if self.type in _NO_BYTES else self.size

    @property
    def end(self) -> int:
        """File offset behind its last byte."""
        return self.offset + self.file_size


class Segment(NamedTuple):
    """One program header."""

    type: int
    flags: int
    offset: int
    virtual_address: int
    physical_address: int
    file_size: int
    memory_size: int
    alignment: int


@dataclass(frozen=True, slots=True)
class Symbol:
    """One symbol. `section` is an ELF section index (0: defined elsewhere)."""

    index: int
    name: str
    type: int
    other: int
    section: int
    value: int
    size: int


class Elf(NamedTuple):
    """An ELF file whose headers all lie inside it. Nothing is implied about what the sections hold."""

    data: bytes
    where: str
    os_abi: int
    abi_version: int
    type: int
    machine: int
    version: int
    flags: int
    section_table: int
    segment_table: int
    sections: tuple[Section, ...]
    segments: tuple[Segment, ...]

    @classmethod
    def read(cls, data: bytes, where: str = "<bytes>") -> Elf:
        """Read the headers. Raises ContainerError, naming the first thing that is wrong."""
        if not data:
            raise ContainerError(f"{where}: the file is empty")
        if data[:4] != MAGIC[: len(data)]:
            raise ContainerError(f"{where}: not an ELF file: it starts with {data[:4].hex(' ')}, expected {MAGIC.hex(' ')}")
        header = take(data, 0, HEADER.size, "the ELF header", where)
        _, bits, order, _, os_abi, abi_version, kind, machine, version, _, phoff, shoff, flags, _, *counts = HEADER.unpack(header)
        phentsize, phnum, shentsize, shnum, names = counts
        if (bits, order) != (2, 1):
            raise ContainerError(f"{where}: expected a 64-bit little-endian ELF file, found class {bits}, byte order {order}")
        if shoff == 0:
            raise ContainerError(f"{where}: the ELF file has no section headers, so its code cannot be found; use an unstripped file")
        if shentsize != SECTION_HEADER.size:
            raise ContainerError(f"{where}: section headers of {shentsize} bytes, expected {SECTION_HEADER.size}")
        if phnum and phentsize != PROGRAM_HEADER.size:
            raise ContainerError(f"{where}: program headers of {phentsize} bytes, expected {PROGRAM_HEADER.size}")
        # With too many sections for the header, section 0 holds the numbers (System V ABI, "extended section numbering").
        first = SECTION_HEADER.unpack(take(data, shoff, SECTION_HEADER.size, "the first section header", where))
        shnum = shnum or first[5]
        name_section: int = first[6] if names == SHN_XINDEX else names
        table = take(data, shoff, shnum * SECTION_HEADER.size, f"the table of {shnum} section headers", where)
        raw: list[tuple[int, ...]] = list(SECTION_HEADER.iter_unpack(table))
        if not 0 < name_section < len(raw):
            raise ContainerError(f"{where}: section names are said to be in section {name_section}, but there are {len(raw)} sections")
        strings = take(data, raw[name_section][4], raw[name_section][5], "the section names", where)
        sections = tuple([Section(i, string(strings, r[0], f"section {i}", where), *r[1:]) for i, r in enumerate(raw)])
        for section in sections:
            take(data, section.offset, section.file_size, f"section {section.index} ({section.name})", where)
        segments = take(data, phoff, phnum * PROGRAM_HEADER.size, f"the table of {phnum} program headers", where)
        return cls(
            data, where, os_abi, abi_version, kind, machine, version, flags, shoff, phoff, sections,
            tuple([Segment(*fields) for fields in PROGRAM_HEADER.iter_unpack(segments)]),
        )  # fmt: skip

    def content(self, section: Section) -> bytes:
        """The bytes of a section in the file; empty for NOBITS."""
        return self.data[section.offset : section.end]

    def named(self, name: str) -> tuple[Section, ...]:
        """Every section of that name, in file order."""
        return tuple([section for section in self.sections if section.name == name])

    def symbols(self, table: Section) -> tuple[Symbol, ...]:
        """The symbols of a symbol table. Raises ContainerError for a damaged table."""
        if not 0 < table.link < len(self.sections):
            raise ContainerError(f"{self.where}: {table.name} names section {table.link} for its strings, which does not exist")
        strings = self.content(self.sections[table.link])
        records = entries(self.content(table), SYMBOL, table.name, self.where)
        return tuple(
            [
                Symbol(i, string(strings, name, f"symbol {i}", self.where), info & 15, other, section, value, size)
                for i, (name, info, other, section, value, size) in enumerate(records)
            ]
        )

    def check_alone(self, indices: Iterable[int]) -> None:
        """Raise ContainerError when one of these sections or a header shares bytes with anything else, so that it could not change alone.

        (Other sections may: some `.nv.merc` sections are a second header for the bytes of a plain one.)
        """
        headers = (
            (0, HEADER.size, -1, "the ELF header"),
            (self.section_table, self.section_table + SECTION_HEADER.size * len(self.sections), -1, "the section headers"),
            (self.segment_table, self.segment_table + PROGRAM_HEADER.size * len(self.segments), -1, "the program headers"),
        )
        parts = [(s.offset, s.end, s.index, f"section {s.index} ({s.name})") for s in self.sections]
        alone = {-1, *indices}
        last_end, last_index, last_name = 0, 0, ""
        for start, end, index, name in sorted([part for part in (*headers, *parts) if part[0] < part[1]]):
            if start < last_end and (index in alone or last_index in alone):
                raise ContainerError(f"{self.where}: {last_name} and {name} overlap at byte {start:#x}: damaged")
            last_end, last_index, last_name = max((last_end, last_index, last_name), (end, index, name))

    def replaced(self, contents: Mapping[int, bytes], headers: Mapping[int, Section] = MappingProxyType({})) -> bytes:
        """The file with new contents, and new flags and info in the header, for some sections; the rest keeps its bytes and its alignment.

        What stands behind a section that changes its size moves by a multiple of the largest alignment of the file, so no part loses
        its own. Section sizes, all file offsets and the program headers are made to agree. Raises ContainerError for an
        alignment that is no power of two.
        """
        self.check_alone(contents)
        step = self._alignment()
        shifts: list[tuple[int, int, int]] = []  # of each new content: old end, new end, shift of what follows
        out = bytearray()
        done = shift = 0
        for section in sorted((self.sections[index] for index in contents), key=lambda s: s.offset):
            out += self.data[done : section.offset]
            out += contents[section.index]
            shift = -(-(len(out) - section.end) // step) * step
            shifts.append((section.end, len(out), shift))
            out += bytes(section.end + shift - len(out))
            done = section.end
        out += self.data[done:]

        def start(offset: int) -> int:
            return offset + next((by for end, _, by in reversed(shifts) if end <= offset), 0)

        def finish(offset: int) -> int:
            return next((new for end, new, _ in shifts if end == offset), start(offset))

        section_table, segment_table = start(self.section_table), start(self.segment_table)
        struct.pack_into("<QQ", out, 32, segment_table, section_table)
        for section in self.sections:
            offset = section.offset if section.index in contents and not section.file_size else start(section.offset)
            size = len(contents.get(section.index, b"")) if section.index in contents else section.size
            at = section_table + SECTION_HEADER.size * section.index
            struct.pack_into("<QQ", out, at + 24, offset, size)
            header = headers.get(section.index, section)
            struct.pack_into("<Q", out, at + 8, header.flags)
            struct.pack_into("<I", out, at + 44, header.info)
        for i, segment in enumerate(self.segments):
            offset = start(segment.offset)
            size = finish(segment.offset + segment.file_size) - offset if segment.file_size else 0
            fields = segment._replace(offset=offset, file_size=size, memory_size=segment.memory_size + size - segment.file_size)
            PROGRAM_HEADER.pack_into(out, segment_table + PROGRAM_HEADER.size * i, *fields)
        return bytes(out)

    def _alignment(self) -> int:
        largest = 8
        for section in self.sections:
            align = section.alignment
            if align & (align - 1) or align > _MOST_ALIGNMENT:
                raise ContainerError(f"{self.where}: {section.name} has the alignment {align}, expected a power of two")
            if section.file_size:
                largest = max(largest, align)
        return largest


@contextmanager
def located(where: str) -> Generator[None]:
    """Put a place before the message of any ContainerError raised inside."""
    try:
        yield
    except ContainerError as error:
        raise error.at(where) from None


def take(data: bytes, offset: int, size: int, what: str, where: str) -> bytes:
    """`size` bytes at `offset`. Raises ContainerError, naming `what`, when they are not all there."""
    if offset < 0 or size < 0 or offset + size > len(data):
        raise ContainerError(
            f"{where}: {what} should be at bytes {offset:#x} to {offset + size:#x}, but there are only {len(data):#x}: truncated or damaged"
        )
    return data[offset : offset + size]


def entries(data: bytes, layout: struct.Struct, what: str, where: str) -> list[tuple[int, ...]]:
    """All records of a table. Raises ContainerError when its size is no multiple of the record's."""
    if len(data) % layout.size:
        raise ContainerError(f"{where}: {what} has {len(data)} bytes, not a multiple of its {layout.size}-byte entries")
    return list(layout.iter_unpack(data))


def string(table: bytes, offset: int, what: str, where: str) -> str:
    """The NUL-terminated name at `offset`. Raises ContainerError when it runs out of the table or is not UTF-8."""
    end = table.find(b"\0", offset)
    if offset > len(table) or (end < 0 and offset):
        raise ContainerError(f"{where}: the name of {what} lies outside the string table")
    try:
        return table[offset : max(end, offset)].decode()
    except UnicodeDecodeError:
        raise ContainerError(f"{where}: the name of {what} is not text") from None
