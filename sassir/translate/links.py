"""What the linker or the driver fills in: the relocations that patch code.

The file has a placeholder there, mostly 0, which says nothing about the value. So that nobody takes the 0 of `MOV R20, 0x0`
for a constant, the operand gets the mark `@`, and the instruction a property that says what comes there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

from sassir.asm.instruction import INSTRUCTION_BYTES, Instruction
from sassir.asm.operand import Operand
from sassir.cubin.code import CodeSection
from sassir.dialect.template import LINKED

_RETURN = "return_"


def return_labels(section: CodeSection) -> dict[str, int]:
    """A label for each place of the section whose address a relocation puts into its code, for a callee to return to."""
    functions = {f.symbol: f.offset for f in section.functions}
    places = sorted({functions[r.symbol] + r.addend for r in section.relocations if r.symbol in functions and r.addend})
    return {f"{_RETURN}{place:x}": place for place in places}


def read_links(section: CodeSection, labels: Mapping[str, int]) -> dict[int, str]:
    """What is filled into each instruction, by its offset: `ABS32_LO_32 vprintf`, with a label for a place of the section itself."""
    names = {place: name for name, place in labels.items()}
    functions = {f.symbol: f.offset for f in section.functions}
    links: dict[int, list[str]] = {}
    for r in section.relocations:
        place = functions[r.symbol] + r.addend if r.symbol in functions and r.addend else None
        symbol = names.get(place) if place is not None else None
        if symbol is None:
            symbol = r.symbol_name + (f"{r.addend:+#x}" if r.addend else "")
        links.setdefault(r.offset - r.offset % INSTRUCTION_BYTES, []).append(f"{r.type_name.removeprefix('R_CUDA_')} {symbol}")
    return {offset: ", ".join(parts) for offset, parts in links.items()}


def linked_place(link: str, labels: Mapping[str, int]) -> int | None:
    """The place of the section itself whose address is filled in; None if it is of something else."""
    return labels.get(link.partition(" ")[2])


def marked(instruction: Instruction, link: str) -> Instruction | None:
    """The instruction with `@` before the operand that is filled in; None if that is not known.

    Unchanged if it is a part of the word that no operand shows.
    """
    find = _field(link.partition(" ")[0])
    if find is None:
        return None
    operands = instruction.operands
    found = [i for i, operand in enumerate(operands) if find(operand)]
    if len(found) > 1:
        return None
    return instruction._replace(operands=tuple([_mark(o) if i in found else o for i, o in enumerate(operands)]))


def unmarked(operand: Operand) -> Operand:
    """The operand as the file has it."""
    if operand.template.startswith(LINKED):
        return Operand.of(operand.template.removeprefix(LINKED), operand.registers)
    return operand


@cache
def _mark(operand: Operand) -> Operand:
    return Operand.of(LINKED + operand.template, operand.registers)


@cache
def _field(type_name: str) -> Callable[[Operand], bool] | None:
    """Which operand a relocation of this type patches, by its name: kind of value, width, first bit."""
    value, _, first_bit = type_name.rpartition("_")
    if value.startswith("CONST_FIELD"):
        return lambda operand: operand.constant is not None
    if value.startswith("YIELD"):
        return lambda operand: False
    if first_bit in ("40", "44"):
        return lambda operand: "[" in operand.template and operand.constant is None
    if first_bit in ("32", "34"):
        return lambda operand: operand.integer is not None
    return None
