"""Cubin: one compiled device file, its code sections as bytes, and the way back."""

from __future__ import annotations

import struct
import warnings
from collections.abc import Mapping
from functools import cached_property
from typing import NamedTuple

from sassir.asm.instruction import INSTRUCTION_BYTES
from sassir.cubin.code import Code, CodeFunction, CodeSection, is_code
from sassir.cubin.elf import ET_REL, SHT_REL, SHT_RELA, SHT_SYMTAB, STT_FUNC, Elf, Section, Symbol, string, take
from sassir.cubin.nvinfo import SHT_NV_INFO, Attribute, SymbolValue, decode, read_attributes
from sassir.cubin.relocation import Relocation, read_relocations
from sassir.cubin.repair import repaired
from sassir.cubin.shared import grown
from sassir.errors import ContainerError, SassirWarning

EM_CUDA = 190
STO_CUDA_ENTRY = 0x10

_ABI_ACCELERATED_FLAG = {7: 0x800, 8: 0x8}
_COMPAT_ACCELERATED = 0x09
_NOTE_HEADER = struct.Struct("<III")
_TOOL_OFFSETS = struct.Struct("<6I")


_STALE = (
    "changed for {arch} alone; the form for other SMs of the family (.nv.capmerc) is the original's, so they run the original code. "
    "Whether the driver compares the two was not tested on hardware"
)


class Toolkit(NamedTuple):
    """Who made the file."""

    tool: str
    """`ptxas`, `nvlink`; empty when the file does not say."""
    version: str
    """`Cuda compilation tools, release 13.0, V13.0.88`, or the toolkit number of an old header, `11.8`."""
    options: str
    """`-arch sm_90 -m 64`; empty when the file does not say."""


class Cubin:
    """A cubin that was checked while it was read; `data` is the file, verbatim."""

    def __init__(self, elf: Elf) -> None:
        self.elf = elf

    @classmethod
    def read(cls, data: bytes, where: str = "<bytes>") -> Cubin:
        """Read a cubin. Raises ContainerError, with the reason and the place, for everything that is not a sound one."""
        elf = Elf.read(data, where)
        if elf.machine != EM_CUDA:
            raise ContainerError(f"{where}: ELF machine {elf.machine}, expected {EM_CUDA} (NVIDIA CUDA); not a cubin")
        if elf.abi_version not in _ABI_ACCELERATED_FLAG:
            raise ContainerError(f"{where}: cubin ABI version {elf.abi_version}; sassir knows 7 (CUDA up to 12) and 8 (CUDA 13)")
        cubin = cls(elf)
        elf.check_alone(section.index for section in cubin.code)
        for section in cubin.code:
            if len(section.data) % INSTRUCTION_BYTES:
                raise ContainerError(f"{where}: {section.name} has {len(section.data)} bytes, not a multiple of {INSTRUCTION_BYTES}")
        _ = cubin.file_attributes, cubin.arch  # what is damaged there must show now, not later
        return cubin

    @property
    def data(self) -> bytes:
        """The file."""
        return self.elf.data

    @property
    def where(self) -> str:
        """What messages call the file."""
        return self.elf.where

    @property
    def abi(self) -> int:
        """ELF ABI version: 7 or 8."""
        return self.elf.abi_version

    @property
    def relocatable(self) -> bool:
        """It has yet to be linked (`nvcc -dc`)."""
        return self.elf.type == ET_REL

    @cached_property
    def arch(self) -> str:
        """`sm_90`, `sm_90a`, `sm_100f`: SM number from the ELF flags, letter from wherever the toolkit of the file put it.

        `a`: ELF flag 0x800 (ABI 7), ELF flag 0x8 (ABI 8, CUDA 12.8 and 12.9), `.nv.compat` attribute 9 (CUDA 13). `f` is only
        in the options in `.note.nv.tkinfo`; the code of such a file does not differ from that of the plain SM.
        """
        flags = self.elf.flags
        number = flags & 0xFF if self.abi == 7 else flags >> 8 & 0xFF
        flagged = flags & _ABI_ACCELERATED_FLAG[self.abi]
        if flagged or any(a.id == _COMPAT_ACCELERATED and a.number == 1 for a in self.compatibility):
            return f"sm_{number}a"
        return f"sm_{number}f" if f"sm_{number}f" in self.toolkit.options.split() else f"sm_{number}"

    @cached_property
    def toolkit(self) -> Toolkit:
        """Tool, version and options, from `.note.nv.tkinfo`, or the version alone from an ABI 7 header."""
        for section in self.elf.named(".note.nv.tkinfo"):
            return _read_toolkit(self.elf, section)
        major, minor = divmod(self.elf.version, 10)
        return Toolkit("", f"{major}.{minor}" if self.abi == 7 else "", "")

    @cached_property
    def compatibility(self) -> tuple[Attribute, ...]:
        """The attributes of `.nv.compat`; their numbers are not those of nv.info."""
        return tuple([a for s in self.elf.named(".nv.compat") for a in read_attributes(self.elf.content(s), f"{self.where}: .nv.compat")])

    @cached_property
    def file_attributes(self) -> tuple[Attribute, ...]:
        """The attributes of the whole file: register counts, frame and stack sizes of every function."""
        return tuple([a for s in self.elf.named(".nv.info") for a in read_attributes(self.elf.content(s), f"{self.where}: .nv.info")])

    @cached_property
    def symbol_values(self) -> Mapping[int, Mapping[int, int]]:
        """Of these, the ones with one number for one function: by its symbol, and by the number of the attribute."""
        found: dict[int, dict[int, int]] = {}
        for attribute in self.file_attributes:
            value = decode(attribute)
            if isinstance(value, SymbolValue):
                found.setdefault(value.symbol, {})[attribute.id] = value.value
        return found

    @cached_property
    def symbol_section(self) -> Section | None:
        """The section of the symbol table; None when the file has no symbols."""
        tables = [s for s in self.elf.sections if s.type == SHT_SYMTAB]
        if len(tables) > 1:
            raise ContainerError(f"{self.where}: {len(tables)} symbol tables, expected one")
        return tables[0] if tables else None

    @cached_property
    def symbols(self) -> tuple[Symbol, ...]:
        """The symbol table."""
        return self.elf.symbols(self.symbol_section) if self.symbol_section else ()

    @cached_property
    def relocations(self) -> Mapping[int, tuple[Relocation, ...]]:
        """Relocations by the index of their REL or RELA section."""
        names = tuple([s.name for s in self.symbols])
        sections = [s for s in self.elf.sections if s.type in (SHT_REL, SHT_RELA)]
        for section in sections:
            if section.info >= len(self.elf.sections):
                raise ContainerError(f"{self.where}: {section.name} patches section {section.info}, which does not exist")
        return {section.index: read_relocations(self.elf, section, names) for section in sections}

    @cached_property
    def code(self) -> tuple[CodeSection, ...]:
        """The code sections, in file order."""
        return tuple([self._code_section(section) for section in self.elf.sections if is_code(section)])

    def rebuild(self, code: Mapping[int, Code]) -> bytes:
        """The file with new code for some sections, by section index; without any, the very same bytes.

        Everything in the file that refers to the code is made to agree: see `sassir.cubin.repair`. Not repaired, because they
        are inside the instructions: branch displacements, BRX bases and return addresses held as immediates; the caller
        adjusts them or refuses. Raises ContainerError, naming what it is, when something cannot follow the code. Warns
        (SassirWarning) when the file also holds the code in the form for other SMs (`.nv.capmerc`), which stays as it is.
        """
        if not code:
            return self.data
        data = self.elf.replaced(*repaired(self, code))
        for index in [i for i, new in code.items() if new.shared]:
            data = grown(Elf.read(data, self.where), self.elf.sections[index], self.arch, code[index].shared)
        names = {section.name for section in self.elf.sections}
        changed = [s for s in self.code if s.index in code and code[s.index].data != s.data]
        if stale := [s.kernel for s in changed if f".nv.capmerc{s.name}" in names]:
            warnings.warn(f"{self.where}: {', '.join(stale)}: {_STALE.format(arch=self.arch)}", SassirWarning, stacklevel=2)
        return data

    def _code_section(self, section: Section) -> CodeSection:
        # All that belongs to a section is found by its index: names may be empty or equal, and an orphan `.nv.info.k` may remain.
        elf = self.elf
        relocations = [r for i, group in self.relocations.items() if elf.sections[i].info == section.index for r in group]
        infos = [s for s in elf.sections if s.type == SHT_NV_INFO and s.info == section.index]
        attributes = [a for s in infos for a in read_attributes(elf.content(s), f"{self.where}: {s.name}")]
        functions = self._functions(section)
        return CodeSection(section.index, section.name, elf.content(section), functions, tuple(relocations), tuple(attributes))

    def _functions(self, section: Section) -> tuple[CodeFunction, ...]:
        functions = [
            CodeFunction(s.name, s.value, s.size, s.index, bool(s.other & STO_CUDA_ENTRY))
            for s in self.symbols
            if s.type == STT_FUNC and s.section == section.index
        ]
        for function in functions:
            if function.offset + function.size > section.size:
                raise ContainerError(
                    f"{self.where}: function {function.name} ends at {function.offset + function.size:#x}, "
                    f"but {section.name} has {section.size:#x} bytes"
                )
        return tuple(sorted(functions, key=lambda f: (f.offset, not f.entry)))


def _read_toolkit(elf: Elf, section: Section) -> Toolkit:
    """The first note of `.note.nv.tkinfo` (the linker's, where there are several).

    Layout, from files of CUDA 12.9 to 13.5: note header (sizes of owner and description, type), owner, u32 version of the note,
    u32 offsets of five strings (object, tool, version, build, options), the strings.
    """
    where = f"{elf.where}: {section.name}"
    content = elf.content(section)
    owner, size, _ = _NOTE_HEADER.unpack(take(content, 0, _NOTE_HEADER.size, "the note header", where))
    description = take(content, _NOTE_HEADER.size + owner, size, "the note", where)
    _, _, tool, version, _, options = _TOOL_OFFSETS.unpack(take(description, 0, _TOOL_OFFSETS.size, "the table of strings", where))
    strings = description[_TOOL_OFFSETS.size :]
    return Toolkit(*[string(strings, at, "the tool", where).strip() for at in (tool, version, options)])
