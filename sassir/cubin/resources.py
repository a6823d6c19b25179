"""Counts of registers, barriers and stack: where the toolkits keep them, and how they follow new code.

| count | kept in |
|---|---|
| registers | REGCOUNT of the function; with ABI 7 on sm_75 to sm_89 also bits 24-31 of `sh_info` of the code section |
| barriers | with ABI 7 bits 20-26 of `sh_flags` of the code section, with ABI 8 NUM_BARRIERS of the kernel |
| stack | FRAME_SIZE of the function; MIN_STACK_SIZE, which includes what it calls |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from sassir.cubin.attribute_kinds import FRAME_SIZE, MIN_STACK_SIZE, NUM_BARRIERS, REGCOUNT
from sassir.cubin.code import CodeSection, Resources
from sassir.cubin.elf import Section
from sassir.cubin.nvinfo import Attribute, Format, SymbolValue, decode
from sassir.errors import ContainerError

if TYPE_CHECKING:
    from sassir.cubin.cubin import Cubin

_OLD_ABI = 7
_REGISTERS_SHIFT = 24
_BARRIERS_SHIFT, _BARRIERS_MASK = 20, 0x7F


def counts(cubin: Cubin, section: CodeSection) -> Resources:
    """What the file says of the function at the start of `section`; None where it says nothing."""
    values = function_values(cubin, section)
    listed = next((a.number for a in section.attributes if a.id == NUM_BARRIERS), None)
    header = cubin.elf.sections[section.index].flags >> _BARRIERS_SHIFT & _BARRIERS_MASK
    return Resources(values.get(REGCOUNT), header if listed is None else listed, values.get(FRAME_SIZE))


def function_values(cubin: Cubin, section: CodeSection) -> Mapping[int, int]:
    """The attributes of the whole file that are about the function at the start of `section`: values by number of the attribute."""
    return cubin.symbol_values.get(section.head.symbol, {}) if section.head else {}


def header_registers(section: Section) -> int:
    """The register count in the header of a code section; 0 where the toolkit does not keep it there."""
    return section.info >> _REGISTERS_SHIFT


def check_counts(cubin: Cubin, section: CodeSection, new: Resources) -> None:
    """Raise ContainerError for a count that the file has no place for, or that a kernel which may call this function does not cover."""
    where, old = f"{cubin.where}: {section.name}", counts(cubin, section)
    callers = [s for s in cubin.code if s.head and s.head.entry and section.head and not section.head.entry]
    for i, name in enumerate(Resources._fields):
        before, after = old[i], new[i]
        if after is None:
            continue
        if before is None:
            raise ContainerError(f"{where}: the new code has {after} {name}, but the file does not count them")
        for caller in callers if after > before else ():
            room = counts(cubin, caller)[i]
            if room is None or room < after or name == "stack":
                raise ContainerError(f"{where}: the new code has {after} {name}, more than {caller.name}, which may call it, has room for")


def with_counts(cubin: Cubin, attributes: tuple[Attribute, ...], new: Mapping[int, Resources]) -> tuple[Attribute, ...]:
    """The attributes of the whole file with new counts, by section index."""
    sections = {s.head.symbol: s for s in cubin.code if s.index in new and s.head}
    result: list[Attribute] = []
    for attribute in attributes:
        value = _value(attribute)
        if value and value.symbol in sections:
            section = sections[value.symbol]
            registers, _, stack = new[section.index]
            count = {REGCOUNT: registers, FRAME_SIZE: stack}.get(attribute.id)
            if attribute.id == MIN_STACK_SIZE and stack is not None:
                count = value.value + stack - (counts(cubin, section).stack or 0)
            if count is not None:
                attribute = attribute.with_words((value.symbol, count))
        result.append(attribute)
    return tuple(result)


def with_barriers(cubin: Cubin, attributes: tuple[Attribute, ...], barriers: int | None) -> tuple[Attribute, ...]:
    """The attributes of a kernel with a new count of barriers."""
    if barriers is None or cubin.abi == _OLD_ABI:
        return attributes
    others = tuple([a for a in attributes if a.id != NUM_BARRIERS])
    return (*others, Attribute(NUM_BARRIERS, Format.BVAL, bytes((barriers, 0)))) if barriers else others


def header(cubin: Cubin, section: Section, new: Resources) -> Section:
    """The header of a code section with new counts."""
    flags, info = section.flags, section.info
    if new.barriers is not None and cubin.abi == _OLD_ABI:
        flags = flags & ~(_BARRIERS_MASK << _BARRIERS_SHIFT) | new.barriers << _BARRIERS_SHIFT
    if new.registers is not None and header_registers(section):
        info = info & (1 << _REGISTERS_SHIFT) - 1 | new.registers << _REGISTERS_SHIFT
    return replace(section, flags=flags, info=info)


def _value(attribute: Attribute) -> SymbolValue | None:
    value = decode(attribute)
    return value if isinstance(value, SymbolValue) else None
