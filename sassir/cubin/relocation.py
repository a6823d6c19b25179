"""Relocations of CUDA ELF files: which symbol goes to which bits of what place."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import NamedTuple

from sassir.cubin.elf import SHT_REL, SHT_RELA, Elf, Section, entries
from sassir.errors import ContainerError

REL = struct.Struct("<QQ")
RELA = struct.Struct("<QQq")

_IN_ORDER = """
    NONE 32 64 G32 G64 ABS32_26 TEX_HEADER_INDEX SAMP_HEADER_INDEX SURF_HW_DESC SURF_HW_SW_DESC ABS32_LO_26 ABS32_HI_26 ABS32_23
    ABS32_LO_23 ABS32_HI_23 ABS24_26 ABS24_23 ABS16_26 ABS16_23 TEX_SLOT SAMP_SLOT SURF_SLOT TEX_BINDLESSOFF13_32 TEX_BINDLESSOFF13_47
    CONST_FIELD19_28 CONST_FIELD19_23 TEX_SLOT9_49 6_31 2_47 TEX_BINDLESSOFF13_41 TEX_BINDLESSOFF13_45 FUNC_DESC32_23 FUNC_DESC32_LO_23
    FUNC_DESC32_HI_23 FUNC_DESC_32 FUNC_DESC_64 CONST_FIELD21_26 QUERY_DESC21_37 CONST_FIELD19_26 CONST_FIELD21_23 PCREL_IMM24_26
    PCREL_IMM24_23 ABS32_20 ABS32_LO_20 ABS32_HI_20 ABS24_20 ABS16_20 FUNC_DESC32_20 FUNC_DESC32_LO_20 FUNC_DESC32_HI_20
    CONST_FIELD19_20 BINDLESSOFF13_36 SURF_HEADER_INDEX INSTRUCTION64 CONST_FIELD21_20 ABS32_32 ABS32_LO_32 ABS32_HI_32 ABS47_34
    ABS16_32 ABS24_32 FUNC_DESC32_32 FUNC_DESC32_LO_32 FUNC_DESC32_HI_32 CONST_FIELD19_40 BINDLESSOFF14_40 CONST_FIELD21_38
    INSTRUCTION128 YIELD_OPCODE9_0 YIELD_CLEAR_PRED4_87 32_LO 32_HI UNUSED_CLEAR32 UNUSED_CLEAR64 ABS24_40 ABS55_16_34
    8_0 8_8 8_16 8_24 8_32 8_40 8_48 8_56 G8_0 G8_8 G8_16 G8_24 G8_32 G8_40 G8_48 G8_56
    FUNC_DESC_8_0 FUNC_DESC_8_8 FUNC_DESC_8_16 FUNC_DESC_8_24 FUNC_DESC_8_32 FUNC_DESC_8_40 FUNC_DESC_8_48 FUNC_DESC_8_56
    ABS20_44 SAMP_HEADER_INDEX_0 UNIFIED UNIFIED_32 UNIFIED_8_0 UNIFIED_8_8 UNIFIED_8_16 UNIFIED_8_24 UNIFIED_8_32 UNIFIED_8_40
    UNIFIED_8_48 UNIFIED_8_56 UNIFIED32_LO_32 UNIFIED32_HI_32 ABS56_16_34 CONST_FIELD22_37
"""

NAMES = tuple(_IN_ORDER.split())
"""Names by number, as cuobjdump 13.5 prints them without `R_CUDA_`: kind of value, width, first bit."""


class Relocation(NamedTuple):
    """One entry of a relocation section."""

    offset: int
    """Byte offset in the section that is patched."""
    type: int
    symbol: int
    """Index into the symbol table."""
    symbol_name: str
    addend: int | None
    """None in a REL section, where the patched place holds it."""

    @property
    def type_name(self) -> str:
        """`R_CUDA_ABS32_LO_32`; a number without a name is written `R_CUDA_0x7f`."""
        return f"R_CUDA_{NAMES[self.type] if self.type < len(NAMES) else f'{self.type:#x}'}"


def read_relocations(elf: Elf, section: Section, names: tuple[str, ...]) -> tuple[Relocation, ...]:
    """The entries of a REL or RELA section; `names` are those of the symbols. Raises ContainerError for a damaged section."""
    layout = {SHT_REL: REL, SHT_RELA: RELA}[section.type]
    relocations: list[Relocation] = []
    for offset, info, *addend in entries(elf.content(section), layout, section.name, elf.where):
        symbol = info >> 32
        if symbol >= len(names):
            raise ContainerError(f"{elf.where}: {section.name} refers to symbol {symbol}, but there are {len(names)}")
        relocations.append(Relocation(offset, info & 0xFFFFFFFF, symbol, names[symbol], addend[0] if addend else None))
    return tuple(relocations)


def write_relocations(relocations: Iterable[Relocation]) -> bytes:
    """The bytes of a relocation section; the inverse of `read_relocations`."""
    return b"".join(
        [
            REL.pack(r.offset, r.symbol << 32 | r.type) if r.addend is None else RELA.pack(r.offset, r.symbol << 32 | r.type, r.addend)
            for r in relocations
        ]
    )
