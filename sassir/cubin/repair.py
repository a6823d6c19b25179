"""Repair: make everything in a cubin that refers to code agree with code that moved.

| what | how |
|---|---|
| symbols of the section | value and size |
| relocations that patch the code | follow their instruction, go with it |
| relocations to places in the code | addend |
| nv.info attributes with code offsets | entries follow their instruction, go with it; new ones where they have to be listed |
| counts of registers, barriers, stack | attributes or section header |
| jump and function tables in constant bank 2 | each word, if all words are known places |
| `.debug_frame` | address ranges and advances |
| `.debug_line`, `.nv_debug_line_sass` | rows, in the new order of the instructions |
| `.nv_debug_info_reg_sass` (`-G`) | refused |

`.nv.capmerc` and `.nv.merc` sections stay as they are: they describe code of their own (the form that is finished for
another SM of the family), which this does not change.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from sassir.asm.instruction import INSTRUCTION_BYTES
from sassir.cubin.attribute_kinds import INDIRECT_BRANCH_TARGETS
from sassir.cubin.attribute_repair import moved_attributes
from sassir.cubin.code import Code, CodeSection, is_code
from sassir.cubin.dwarf import Base
from sassir.cubin.elf import SHT_SYMTAB, SYMBOL, Section, Symbol, entries, located
from sassir.cubin.frames import FRAMES, moved_frames
from sassir.cubin.lines import LINES, moved_lines
from sassir.cubin.nvinfo import SHT_NV_INFO, indirect_branches, read_attributes, write_attributes
from sassir.cubin.places import Places
from sassir.cubin.relocation import Relocation, write_relocations
from sassir.cubin.resources import check_counts, header, with_barriers, with_counts
from sassir.errors import ContainerError

if TYPE_CHECKING:
    from sassir.cubin.cubin import Cubin

OTHER_FORM = ".nv.capmerc"
"""The code for other SMs of the family, in sections of sm_100 and newer."""
_REGISTERS_OF_VARIABLES = ".nv_debug_info_reg_sass"
"""Which register holds a variable, from which instruction to which: nothing can follow that."""


class Repaired(NamedTuple):
    """What has to change in a file with new code, by section index."""

    contents: dict[int, bytes]
    headers: dict[int, Section]


def repaired(cubin: Cubin, code: Mapping[int, Code]) -> Repaired:
    """Everything that has to change with this code, the code included. Raises ContainerError, naming it, if something cannot."""
    elf, repair = cubin.elf, _Repair(cubin, code)
    contents = {index: new.data for index, new in code.items()}
    for section in elf.sections:
        content = repair.content(section)
        if content is not None:
            contents[section.index] = content
    if repair.moved:
        contents |= repair.debug()
    contents |= repair.relocations()
    changed = {index: content for index, content in contents.items() if content != elf.content(elf.sections[index])}
    return Repaired(changed, {index: header(cubin, elf.sections[index], new.resources) for index, new in code.items()})


def immovable(cubin: Cubin) -> str | None:
    """Why no code of the cubin can move; None where nothing is known that forbids it."""
    if any(section.name == _REGISTERS_OF_VARIABLES for section in cubin.elf.sections):
        return f"{_REGISTERS_OF_VARIABLES}: code with full debug information cannot move; compile with -lineinfo, not -G"
    return None


def bound_to_other_form(cubin: Cubin) -> str | None:
    """Why changed code of a relocatable object could not be linked; None where it can.

    Seen: nvlink 13.0 writes exits of sm_120 code to other places, or to none, once the code is another one than its other form.
    """
    if cubin.relocatable and any(section.name.startswith(OTHER_FORM) for section in cubin.elf.sections):
        return f"{OTHER_FORM}: the linker goes by this other form of a relocatable object, which stays as it is; optimise the linked file"
    return None


class _Repair:
    """One kind of section a method; `every` has the places of all new code, `moved` of that which is not only patched."""

    def __init__(self, cubin: Cubin, code: Mapping[int, Code]) -> None:
        self.cubin, self.code = cubin, code
        self.sections = {section.index: section for section in cubin.code}
        for index in code.keys() - self.sections.keys():
            raise ContainerError(f"{cubin.where}: section {index} holds no code; code sections are {sorted(self.sections)}")
        for index, new in code.items():
            check_counts(cubin, self.sections[index], new.resources)
        self.every = {index: Places(self.sections[index], new, cubin.where) for index, new in code.items()}
        self.moved = {index: places for index, places in self.every.items() if not places.unmoved}
        self.addresses: dict[int, Mapping[int, int]] = {}
        """Of debug sections: where the addresses that relocations fill in went."""

    def content(self, section: Section) -> bytes | None:
        """Attributes, tables and symbols; None for a section that is none of them."""
        content, owner = self.cubin.elf.content(section), section.info
        if section.type == SHT_NV_INFO and owner in self.every:
            with located(self.every[owner].name):
                attributes = moved_attributes(read_attributes(content), self.every[owner], self.code[owner])
                return write_attributes(with_barriers(self.cubin, attributes, self.code[owner].resources.barriers))
        if section.name == ".nv.info":
            counted = {index: new.resources for index, new in self.code.items()}
            return write_attributes(with_counts(self.cubin, read_attributes(content), counted))
        if section.name.startswith(".nv.constant2") and owner in self.moved:
            return _constants(content, section.name, self.sections[owner], self.moved[owner])
        if section.type == SHT_SYMTAB:
            return _symbols(self.cubin, section, self.moved)
        return None

    def debug(self) -> dict[int, bytes]:
        """Call frames and line tables."""
        if reason := immovable(self.cubin):
            raise ContainerError(f"{self.cubin.where}: {reason}")
        contents: dict[int, bytes] = {}
        for section in self.cubin.elf.sections:
            where = f"{self.cubin.where}: {section.name}"
            if section.name in (FRAMES, *LINES):
                repair = moved_frames if section.name == FRAMES else moved_lines
                bases = _bases(self.cubin, section, self.moved)
                contents[section.index], self.addresses[section.index] = repair(self.cubin.elf.content(section), bases, where)
        return contents

    def relocations(self) -> dict[int, bytes]:
        """Every relocation section; needs to know what became of the debug sections."""
        contents: dict[int, bytes] = {}
        for index, relocations in self.cubin.relocations.items():
            patched = self.cubin.elf.sections[index].info
            if patched in self.every:
                relocations = _following(relocations, self.every[patched])
            elif patched in self.addresses:
                relocations = [r._replace(offset=self.addresses[patched][r.offset]) for r in relocations]
            contents[index] = write_relocations(_with_addends(self.cubin, patched, relocations, self.moved))
        return contents


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
