"""What an instruction becomes in the dialect, apart from its values: class, template, registers read and written."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute

from sassir import isa
from sassir.asm.instruction import OPAQUE, Instruction
from sassir.asm.operand import HOLE, ZERO_REGISTERS, Operand
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.operations import OpaqueOp, operation_class
from sassir.dialect.registers import NUMBER, REGISTERS, SassRegister
from sassir.dialect.template import ADDRESS, PLACE, READ, READ_WRITE, WRITE, TemplateAttr


class Shape(NamedTuple):
    """All that follows from mnemonic, modifiers and operands; shared by equal instructions."""

    op: type[SassInstruction]
    properties: dict[str, Attribute]
    """Template and modifiers."""
    reads: tuple[int, ...]
    """Register numbers of the operand values."""
    writes: tuple[int, ...]
    """Register numbers of the results."""
    types: tuple[SassRegister, ...]
    """The types of the results."""
    read_set: int
    """The registers read, as bits."""
    write_set: int
    """The registers written, as bits."""
    displacement: int | None
    """Bytes to the place that the instruction names."""
    problem: str | None
    """Why its registers stay text; None if they became values."""


@cache
def shape(mnemonic: str, modifiers: tuple[str, ...], operands: tuple[Operand, ...], mark: str = PLACE) -> Shape:
    """The shape of an instruction.

    `mark` is `^` if its displacement names a place of the function, `&` if its integer operand does, empty if neither.
    """
    op = operation_class(mnemonic, modifiers)
    roles = isa.roles(Instruction(mnemonic, modifiers, operands)) if op is not None else None
    displacement = next((o.displacement for o in operands if o.displacement is not None), None)
    accesses = None if roles is None else _accesses(roles, operands)
    if op is None or roles is None or accesses is None:
        name = ".".join((mnemonic, *modifiers))
        texts = [mark if _marked(o, mark) else o.text for o in operands]
        properties: dict[str, Attribute] = {"template": TemplateAttr.of(", ".join(texts))}
        if mnemonic != OPAQUE:
            properties["modifiers"] = _string(name)
        problem = f"the registers of {name} are not known" if mnemonic != OPAQUE else "no encoder table describes its word"
        return Shape(OpaqueOp, properties, (), (), (), 0, 0, displacement, problem)
    texts = [mark if _marked(operand, mark) else _text(operand, row) for operand, row in zip(operands, accesses, strict=True)]
    hidden = [(READ, n) for n in roles.implicit_reads] + [(WRITE, n) for n in roles.implicit_writes]
    text = ", ".join(texts) + ("; " + " ".join([_hole((access, 1), n) for access, n in hidden]) if hidden else "")
    shown = [(f, n) for o, row in zip(operands, accesses, strict=True) for f, n in zip(row, o.registers, strict=True) if f is not None]
    holes = [(access, NUMBER[n], width) for (access, width), n in shown] + [(access, NUMBER[n], 1) for access, n in hidden]
    reads = [n + k for access, n, width in holes if access != WRITE for k in range(width)]
    writes = [n + k for access, n, width in holes if access != READ for k in range(width)]
    properties = {"template": TemplateAttr.of(text)}
    if modifiers:
        properties["modifiers"] = _string(".".join(modifiers))
    types = tuple([REGISTERS[n] for n in writes])
    return Shape(op, properties, tuple(reads), tuple(writes), types, bits(reads), bits(writes), displacement, None)


_Row = list[tuple[str, int] | None]


def _accesses(roles: isa.Roles, operands: tuple[Operand, ...]) -> list[_Row] | None:
    """Access and width of each register of each operand, None for a zero register; None if a role is missing or impossible."""
    rows: list[_Row] = [[None] * len(o.registers) for o in operands]
    for access, group in ((READ, roles.reads), (WRITE, roles.writes)):
        for i, hole, width in group:
            name = operands[i].registers[hole]
            if name in ZERO_REGISTERS:
                continue
            known = rows[i][hole]
            if known is not None and known[1] != width:
                return None
            if NUMBER[name] - REGISTERS[NUMBER[name]].FIRST + width > REGISTERS[NUMBER[name]].COUNT:
                return None
            rows[i][hole] = (access if known is None else READ_WRITE, width)
    names = [n for o in operands for n in o.registers]
    found = [f for row in rows for f in row]
    return rows if all(f is not None or n in ZERO_REGISTERS for f, n in zip(found, names, strict=True)) else None


def _marked(operand: Operand, mark: str) -> bool:
    return (mark == PLACE and operand.displacement is not None) or (mark == ADDRESS and operand.integer is not None)


def _text(operand: Operand, row: _Row) -> str:
    pieces = operand.template.split(HOLE)
    return pieces[0] + "".join(_hole(f, n) + p for f, n, p in zip(row, operand.registers, pieces[1:], strict=True))


def _hole(found: tuple[str, int] | None, name: str) -> str:
    if found is None:
        return name
    access, width = found
    return f"{access}{REGISTERS[NUMBER[name]].FILE}{width if width > 1 else ''}"


def bits(numbers: Iterable[int]) -> int:
    """A set of registers as bits."""
    result = 0
    for n in numbers:
        result |= 1 << n
    return result


def members(registers: int) -> list[int]:
    """The register numbers in a set, ascending."""
    result: list[int] = []
    while registers:
        low = registers & -registers
        result.append(low.bit_length() - 1)
        registers ^= low
    return result


@cache
def _string(text: str) -> StringAttr:
    return StringAttr(text)
