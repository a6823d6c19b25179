"""Sections, program headers and symbols: everything lies where its header says, inside the file, alone."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from sassir.asm.instruction import INSTRUCTION_BYTES
from sassir.cubin.code import is_code
from sassir.cubin.elf import (
    ET_REL,
    HEADER,
    PROGRAM_HEADER,
    SECTION_HEADER,
    SHF_ALLOC,
    SHT_CUDA_SHARED,
    SHT_REL,
    SHT_RELA,
    SHT_SYMTAB,
    STT_FUNC,
    Elf,
    Section,
    Symbol,
)
from sassir.findings import Finding
from sassir.verify.container.subject import ELF_RULES, SEEN

_PT_LOAD = 1
_SHN_RESERVED = 0xFF00
_MERCURY = (".nv.merc.", ".nv.capmerc.")
"""Sections for other SMs: some are a second header for the bytes of a plain section."""


def section_findings(elf: Elf) -> Iterator[Finding]:
    """Bounds, overlaps, alignments, links and sizes of the sections."""
    yield from _overlaps(elf)
    for section in elf.sections:
        align = section.alignment
        if align & (align - 1):
            yield _finding("section-alignment", section, f"its alignment is {align}, expected a power of two")
        elif section.file_size and align and section.offset % align:
            yield _finding("section-alignment", section, f"it begins at {section.offset:#x}, expected a multiple of {align}")
        if section.link >= len(elf.sections):
            yield _finding("section-link", section, f"it is linked to section {section.link}, but there are {len(elf.sections)}")
        if section.type in (SHT_REL, SHT_RELA) and not 0 < section.info < len(elf.sections):
            yield _finding("section-link", section, f"it patches section {section.info}, but there are {len(elf.sections)}")
        if is_code(section) and (section.size % INSTRUCTION_BYTES or not section.size):
            yield _finding("code-size", section, f"it has {section.size} bytes, expected whole instructions of {INSTRUCTION_BYTES}")
        elif is_code(section) and align and section.size % align:
            message = f"it has {section.size:#x} bytes; NVIDIA's tools fill code with NOPs up to a multiple of {align}"
            yield Finding("code-padding", section.name, None, message, SEEN, error=False)


def _overlaps(elf: Elf) -> Iterator[Finding]:
    parts = [(s.offset, s.end, s.name) for s in elf.sections if not s.name.startswith(_MERCURY)]
    parts += [
        (0, HEADER.size, "the ELF header"),
        (elf.section_table, elf.section_table + SECTION_HEADER.size * len(elf.sections), "the section headers"),
        (elf.segment_table, elf.segment_table + PROGRAM_HEADER.size * len(elf.segments), "the program headers"),
    ]
    end, before = 0, ""
    for start, stop, name in sorted(part for part in parts if part[0] < part[1]):
        if start < end:
            message = f"{name} begins at {start:#x}, inside of {before}, which ends at {end:#x}"
            yield Finding("section-overlap", name, None, message, ELF_RULES)
        if stop > end:
            end, before = stop, name


def segment_findings(elf: Elf) -> Iterator[Finding]:
    """Program headers begin and end with sections, inside the file, and every section that is loaded is in one."""
    starts, ends = {s.offset for s in elf.sections} | {elf.segment_table}, {s.end for s in elf.sections}
    ends.add(elf.segment_table + PROGRAM_HEADER.size * len(elf.segments))
    for i, segment in enumerate(elf.segments):
        end = segment.offset + segment.file_size
        what = f"program header {i} covers {segment.offset:#x} to {end:#x}"
        if end > len(elf.data):
            yield Finding("segment-bounds", f"program header {i}", None, f"{what}, but the file has {len(elf.data):#x} bytes", ELF_RULES)
        elif segment.file_size and (segment.offset not in starts or end not in ends):
            yield Finding("segment-bounds", f"program header {i}", None, f"{what}, expected the bounds of sections", SEEN)
        if segment.memory_size < segment.file_size:
            yield Finding("segment-bounds", f"program header {i}", None, f"{what}, but only {segment.memory_size:#x} in memory", ELF_RULES)
    loads = [(s.offset, s.offset + s.file_size) for s in elf.segments if s.type == _PT_LOAD]
    for section in elf.sections if loads else ():
        loaded = section.flags & SHF_ALLOC and section.file_size and not section.name.startswith(_MERCURY)
        if loaded and not any(a <= section.offset and section.end <= b for a, b in loads):
            yield _finding("segment-missing", section, "no program header that is loaded covers it")


def symbol_findings(elf: Elf) -> Iterator[Finding]:
    """Every symbol lies in its section; functions are whole instructions, and device functions do not overlap."""
    for table in elf.sections:
        if table.type == SHT_SYMTAB:
            for symbol in elf.symbols(table):
                yield from _symbol(elf, symbol)
            yield from _functions(elf, elf.symbols(table))


def _symbol(elf: Elf, symbol: Symbol) -> Iterator[Finding]:
    if not symbol.section or symbol.section >= _SHN_RESERVED:
        return
    if symbol.section >= len(elf.sections):
        message = f"symbol {symbol.index} is in section {symbol.section}, but there are {len(elf.sections)}"
        yield Finding("symbol-section", symbol.name, None, message, ELF_RULES)
        return
    section = elf.sections[symbol.section]
    # The linker places the shared memory of a relocatable object: until then the value is an alignment, as for common symbols of ELF.
    start = 0 if elf.type == ET_REL and section.type == SHT_CUDA_SHARED else symbol.value
    if start + symbol.size > section.size:
        message = f"it is at {start:#x} to {start + symbol.size:#x} of {section.name}, which has {section.size:#x} bytes"
        yield Finding("symbol-outside-section", symbol.name, None, message, ELF_RULES)
    elif symbol.type == STT_FUNC and (symbol.value | symbol.size) % INSTRUCTION_BYTES:
        message = f"it begins at {symbol.value:#x} and has {symbol.size:#x} bytes, expected whole instructions"
        yield Finding("symbol-boundary", symbol.name, None, message, SEEN)


def _functions(elf: Elf, symbols: tuple[Symbol, ...]) -> Iterator[Finding]:
    by_section: dict[int, list[Symbol]] = {}
    for symbol in symbols:
        if symbol.type == STT_FUNC and 0 < symbol.section < len(elf.sections) and is_code(elf.sections[symbol.section]):
            by_section.setdefault(symbol.section, []).append(symbol)
    for index, functions in by_section.items():
        section = elf.sections[index]
        heads = [f for f in functions if f.value == 0]
        if heads and max(f.size for f in heads) != section.size:
            message = f"it has {heads[0].size:#x} bytes, but the code of {section.name} {section.size:#x}"
            yield Finding("symbol-size", heads[0].name, None, message, SEEN)
        inner = sorted((f for f in functions if f.value), key=lambda f: f.value)
        for first, second in pairwise(inner):
            if first.value + first.size > second.value:
                message = f"it begins at {second.value:#x}, inside of {first.name}, which ends at {first.value + first.size:#x}"
                yield Finding("symbol-overlap", second.name, None, message, SEEN)


def _finding(rule: str, section: Section, message: str) -> Finding:
    return Finding(rule, section.name, None, message, ELF_RULES)
