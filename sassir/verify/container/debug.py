"""Call frames and line tables: ranges inside the code, addresses on instructions."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from typing import NamedTuple

from sassir.asm.instruction import INSTRUCTION_BYTES
from sassir.cubin.code import is_code
from sassir.cubin.elf import Section
from sassir.cubin.frames import FRAMES, Frame, read_frames
from sassir.cubin.lines import LINES, LineSequence, read_lines
from sassir.errors import ContainerError
from sassir.findings import Finding
from sassir.verify.container.subject import SEEN, Subject

_DWARF = "DWARF 2, 6.2 (lines) and 6.4 (call frames)"


class _Range(NamedTuple):
    """Code that a debug section is about."""

    at: int
    """Offset of its relocated address."""
    address: int
    size: int
    places: list[int]
    """Offsets inside that are named too."""


def debug_findings(subject: Subject) -> Iterator[Finding]:
    """Every frame and every line belongs to instructions of the section that its relocation names."""
    for section in subject.elf.sections:
        content, name = subject.elf.content(section), section.name
        try:
            if name == FRAMES:
                for frame in read_frames(content, name):
                    yield from _check(subject, section, "frame-range", _frame(frame))
            elif name in LINES:
                for sequence in [s for table in read_lines(content, name) for s in table.sequences]:
                    places = [row.address for row in sequence.rows]
                    yield from _check(subject, section, "line-range", _Range(sequence.at, sequence.address, sequence.length, places))
                    yield from _calls(section, sequence)
        except ContainerError as error:
            yield Finding("debug-form", name, None, str(error), _DWARF)


def _frame(frame: Frame) -> _Range:
    # The frame of a function that the linker took out has no size, but still its rules.
    places = [*accumulate(advance.bytes for advance in frame.advances)] if frame.size else []
    return _Range(frame.at, frame.address, frame.size, places)


def _check(subject: Subject, section: Section, rule: str, range: _Range) -> Iterator[Finding]:
    relocation = subject.patches.get(section.index, {}).get(range.at)
    if relocation is None and section.name == FRAMES:
        return  # of a function that the linker took out
    if relocation is None:
        yield Finding(rule, section.name, None, f"the address at {range.at:#x} has no relocation that tells whose code it is", SEEN)
        return
    symbol = subject.cubin.symbols[relocation.symbol]
    if not 0 < symbol.section < len(subject.elf.sections) or not is_code(subject.elf.sections[symbol.section]):
        return  # of a function that is not in this file
    code = subject.elf.sections[symbol.section]
    start = symbol.value + (range.address if relocation.addend is None else relocation.addend)
    if start + range.size > code.size or (start | range.size) % INSTRUCTION_BYTES:
        message = f"the entry at {range.at:#x} is for {start:#x} to {start + range.size:#x} of {code.name}, which has {code.size:#x} bytes"
        yield Finding(rule, section.name, None, message, _DWARF)
    for place in range.places:
        if not 0 <= place <= range.size or place % INSTRUCTION_BYTES:
            message = f"the entry at {range.at:#x} names {start + place:#x} of {code.name}, no instruction of its {range.size:#x} bytes"
            yield Finding(rule, section.name, None, message, _DWARF)


def _calls(section: Section, sequence: LineSequence) -> Iterator[Finding]:
    for number, row in enumerate(sequence.rows, 1):
        if row.call >= number:
            message = f"row {number} of the lines at {sequence.at:#x} is inlined at row {row.call}, which does not come before it"
            yield Finding("line-call", section.name, None, message, SEEN)
