"""Repair: make everything in a cubin that refers to code agree with code that moved.

| what | how |
|---|---|
| symbols of the section | value and size |
| relocations that patch the code | follow their instruction, go with it |
| relocations to places in the code | addend |
| nv.info attributes with code offsets | entries follow their instruction, go with it |
| jump and function tables in constant bank 2 | each word, if all words are known places |
| `.debug_frame` | address ranges and advances |
| `.debug_line`, `.nv_debug_line_sass` | rows |

`.nv.capmerc` and `.nv.merc` sections stay as they are: they describe code of their own (the form that is finished for
another SM of the family), which this does not change.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from itertools import compress
from typing import TYPE_CHECKING

from sassir.asm.instruction import INSTRUCTION_BYTES
from sassir.cubin.attribute_kinds import COOP_GROUP_INSTR_OFFSETS, COOP_GROUP_MASK_REGIDS, INDIRECT_BRANCH_TARGETS, Payload
from sassir.cubin.code import Code, CodeSection, is_code
from sassir.cubin.debug import FRAMES, LINES, Base, moved_frames, moved_lines
from sassir.cubin.elf import SHT_SYMTAB, SYMBOL, Section, Symbol, entries, located
from sassir.cubin.nvinfo import (
    SHT_NV_INFO,
    Attribute,
    Format,
    IndirectBranch,
    indirect_branches,
    read_attributes,
    with_branches,
    write_attributes,
)
from sassir.cubin.places import Places
from sassir.cubin.relocation import Relocation, write_relocations
from sassir.errors import ContainerError

if TYPE_CHECKING:
    from sassir.cubin.cubin import Cubin

_RECORDS = {
    Payload.OFFSETS: (1, 0),
    Payload.BARRIERS: (4, 0),
    Payload.OFFSET_VALUE: (2, 0),
    Payload.VALUE_OFFSET: (2, 1),
}
"""Words in a record of the payload, and which of them is the code offset."""


def repaired(cubin: Cubin, code: Mapping[int, Code]) -> dict[int, bytes]:
    """New contents, by section index, of every section that has to change with this code. Raises ContainerError if one cannot."""
    elf, sections = cubin.elf, {section.index: section for section in cubin.code}
    for index in code.keys() - sections.keys():
        raise ContainerError(f"{cubin.where}: section {index} holds no code; code sections are {sorted(sections)}")
    contents = {index: new.data for index, new in code.items()}
    every = {index: Places(sections[index], new, cubin.where) for index, new in code.items()}
    moved = {index: places for index, places in every.items() if not places.unmoved}
    for section in elf.sections:
        content, owner = elf.content(section), every.get(section.info)
        if section.type == SHT_NV_INFO and owner:
            with located(owner.name):
                contents[section.index] = write_attributes(_attributes(read_attributes(content), owner))
        elif section.name.startswith(".nv.constant2") and section.info in moved:
            contents[section.index] = _constants(content, section.name, sections[section.info], moved[section.info])
        elif section.type == SHT_SYMTAB:
            contents[section.index] = _symbols(cubin, section, moved)
    addresses: dict[int, Mapping[int, int]] = {}  # of line tables: where their relocated addresses went
    for section in elf.sections if moved else ():
        if section.name in (FRAMES, *LINES):
            repair = moved_frames if section.name == FRAMES else moved_lines
            bases, where = _bases(cubin, section, moved), f"{cubin.where}: {section.name}"
            contents[section.index], addresses[section.index] = repair(elf.content(section), bases, where)
    for index, relocations in cubin.relocations.items():
        patched = elf.sections[index].info
        if patched in every:
            followed = _following(relocations, every[patched])
        else:
            followed = [r._replace(offset=addresses[patched][r.offset]) for r in relocations] if patched in addresses else relocations
        contents[index] = write_relocations(_with_addends(cubin, patched, followed, moved))
    return {index: content for index, content in contents.items() if content != elf.content(elf.sections[index])}


def _attributes(attributes: tuple[Attribute, ...], places: Places) -> tuple[Attribute, ...]:
    """The attributes of a kernel after its code moved; a list that becomes empty goes."""
    coop = [a for a in attributes if a.id == COOP_GROUP_INSTR_OFFSETS]
    kept = [places.instruction(offset) is not None for a in coop for offset in a.words]
    result: list[Attribute] = []
    for attribute in attributes:
        payload = attribute.kind.payload if attribute.kind else None
        if attribute.id == COOP_GROUP_MASK_REGIDS and not all(kept):
            # Parallel to COOP_GROUP_INSTR_OFFSETS: one mask for each of its instructions.
            if len(kept) != len(attribute.words):
                raise ContainerError(f"{places.name}: {len(attribute.words)} warp masks for {len(kept)} instructions")
            new = attribute.with_words(tuple(compress(attribute.words, kept)))
        elif payload in _RECORDS:
            new = attribute.with_words(_records(attribute, *_RECORDS[payload], places))
        elif attribute.id == INDIRECT_BRANCH_TARGETS:
            new = with_branches(attribute, _branches(attribute, places))
        elif places.unmoved or attribute.format is not Format.SVAL or payload not in (Payload.OFFSETS_OTHER, None):
            new = attribute
        else:
            raise ContainerError(f"{places.name}: the code cannot move: attribute {attribute.name} may hold offsets, in an unknown form")
        if new == attribute or new.data:
            result.append(new)
    return tuple(result)


def _records(attribute: Attribute, stride: int, at: int, places: Places) -> tuple[int, ...]:
    words: list[int] = []
    for record in entries(attribute.data, struct.Struct(f"<{stride}I"), f"attribute {attribute.name}", places.name):
        offset = places.instruction(record[at])
        if offset is not None:
            words += (*record[:at], offset, *record[at + 1 :])
    return tuple(words)


def _branches(attribute: Attribute, places: Places) -> tuple[IndirectBranch, ...]:
    branches: list[IndirectBranch] = []
    for branch in indirect_branches(attribute):
        offset = places.instruction(branch.offset)
        if offset is not None:
            targets = tuple([places.place(target, f"the indirect branch at {branch.offset:#x}") for target in branch.targets])
            branches.append(branch._replace(offset=offset, targets=targets))
    return tuple(branches)


def _constants(content: bytes, name: str, section: CodeSection, places: Places) -> bytes:
    """Constant bank 2, which holds jump and function tables for code with indirect branches or calls, and plain constants for other code.

    A table is known by its words: all of them are listed targets, device functions, or 0. (ptxas 11.8 lists 0 for every target on
    sm_90, so its tables are refused.)
    """
    branches = [branch for a in section.attributes if a.id == INDIRECT_BRANCH_TARGETS for branch in indirect_branches(a)]
    functions = {function.offset for function in section.functions if function.offset}
    words = [word for (word,) in entries(content, struct.Struct("<I"), name, places.name)]
    if not branches and functions.isdisjoint(words):
        return content
    known = functions.union({0}, *(branch.targets for branch in branches))
    unknown = [word for word in words if word not in known]
    if unknown:
        raise ContainerError(
            f"{places.name}: the code cannot move: {name} holds {unknown[0]:#x}, neither a listed branch target nor a function, "
            "so it may or may not be a code offset"
        )
    return struct.pack(f"<{len(words)}I", *[places.place(word, name) for word in words])


def _symbols(cubin: Cubin, table: Section, moved: Mapping[int, Places]) -> bytes:
    out = bytearray(cubin.elf.content(table))
    for symbol in cubin.symbols:
        if symbol.section in moved:
            value, size = _extent(symbol, moved[symbol.section])
            struct.pack_into("<QQ", out, SYMBOL.size * symbol.index + 8, value, size)
    return bytes(out)


def _extent(symbol: Symbol, places: Places) -> tuple[int, int]:
    """New value and size of a symbol of moved code."""
    value = places.place(symbol.value, f"symbol {symbol.name!r}")
    end = places.nearest(symbol.value + symbol.size)
    if symbol.size and end < value:
        raise ContainerError(f"{places.name}: symbol {symbol.name!r} would begin at {value:#x} and end at {end:#x}; keep functions whole")
    return value, end - value if symbol.size else 0


def _following(relocations: Iterable[Relocation], places: Places) -> list[Relocation]:
    """The relocations that patch moved code, each at its instruction; without those whose instruction is gone."""
    followed: list[Relocation] = []
    for relocation in relocations:
        within = relocation.offset % INSTRUCTION_BYTES
        offset = places.instruction(relocation.offset - within)
        if offset is not None:
            followed.append(relocation._replace(offset=offset + within))
    return followed


def _with_addends(cubin: Cubin, patched: int, relocations: Iterable[Relocation], moved: Mapping[int, Places]) -> Iterator[Relocation]:
    """The relocations of section `patched`, those to places inside moved code with new addends."""
    section = cubin.elf.sections[patched]
    for relocation in relocations:
        symbol = cubin.symbols[relocation.symbol]
        places = moved.get(symbol.section)
        what = f"the relocation in {section.name} to {symbol.name!r}"
        if places and relocation.addend:
            target = places.place(symbol.value + relocation.addend, what)
            yield relocation._replace(addend=target - _extent(symbol, places)[0])
            continue
        # An addend inside an instruction is an immediate like any other: the caller's.
        if places and relocation.addend is None and not is_code(section) and section.name not in (FRAMES, *LINES):
            offset = section.offset + relocation.offset
            if any(cubin.data[offset : offset + 8]):
                raise ContainerError(f"{places.name}: {what} keeps its addend in the patched bytes; the code cannot move")
        yield relocation


def _bases(cubin: Cubin, section: Section, moved: Mapping[int, Places]) -> dict[int, Base]:
    """What each relocated address of a debug section points to. An addend not in the relocation is in the address itself."""
    content = cubin.elf.content(section)
    bases: dict[int, Base] = {}
    for relocation in (r for i, group in cubin.relocations.items() if cubin.elf.sections[i].info == section.index for r in group):
        symbol = cubin.symbols[relocation.symbol]
        places = moved.get(symbol.section)
        addend = relocation.addend
        if addend is None:
            addend = int.from_bytes(content[relocation.offset : relocation.offset + 8], "little")
        shift = _extent(symbol, places)[0] - symbol.value if places else 0
        bases[relocation.offset] = Base(symbol.value + addend, places, shift)
    return bases
