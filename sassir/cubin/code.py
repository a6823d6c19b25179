"""Code of a cubin, as it is found and as it is given back."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sassir.asm.instruction import Instruction
from sassir.cubin.elf import SHF_EXECINSTR, SHT_PROGBITS, Section
from sassir.cubin.nvinfo import Attribute
from sassir.cubin.relocation import Relocation


class CodeFunction(NamedTuple):
    """A kernel or device function inside a code section. `offset` and `size` in bytes."""

    name: str
    offset: int
    size: int
    symbol: int
    entry: bool
    """It can be launched."""


@dataclass(frozen=True, slots=True)
class CodeSection:
    """One `.text.k`: a kernel with the device functions behind it, or one relocatable device function."""

    index: int
    """ELF section index, its only unique name."""
    name: str
    """`.text.k`"""
    data: bytes
    functions: tuple[CodeFunction, ...]
    """By offset."""
    relocations: tuple[Relocation, ...]
    """Those that patch this section."""
    attributes: tuple[Attribute, ...]
    """Its own `.nv.info.k`; empty when there is none."""

    @property
    def head(self) -> CodeFunction | None:
        """The function it begins with: the kernel, if it has one."""
        return next((f for f in self.functions if f.offset == 0), None)

    @property
    def kernel(self) -> str:
        """The section name without `.text.`"""
        return self.name.removeprefix(".text.")


class Resources(NamedTuple):
    """What a kernel needs, for it and the device functions behind it. None: as much as before."""

    registers: int | None = None
    """Per thread, the two that the hardware keeps the program counter in included."""
    barriers: int | None = None
    """Named barriers, counted up to the highest in use."""
    stack: int | None = None
    """Bytes of the kernel's own stack frame."""


class Code(NamedTuple):
    """New code of one section."""

    data: bytes
    """Whole 16-byte words."""
    moved: Mapping[int, int]
    """Old to new byte offset of each instruction that is still there."""
    labels: Mapping[int, int] = {}
    """Old to new byte offset of places control can come to. Needed only where instructions were added or taken away right before one."""
    instructions: Sequence[Instruction] = ()
    """The same code, decoded. Without it, the instructions that attributes list are taken to be what they were."""
    renamed: bool = False
    """The instructions that were there before use other registers now."""
    resources: Resources = Resources()
    shared: int = 0
    """Bytes of static shared memory to add."""


def words(section: CodeSection) -> tuple[int, ...]:
    """The 128-bit instruction words of a code section."""
    return tuple([high << 64 | low for low, high in struct.iter_unpack("<QQ", section.data)])


def is_code(section: Section) -> bool:
    """It holds instructions."""
    return section.type == SHT_PROGBITS and bool(section.flags & SHF_EXECINSTR)
