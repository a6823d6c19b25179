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

    @property
    def template(self) -> TemplateAttr:
        """The template among the properties."""
        template = self.properties["template"]
        assert isinstance(template, TemplateAttr)
        return template


@cache
def shape(mnemonic: str, modifiers: tuple[str, ...], operands: tuple[Operand, ...], mark: str = PLACE) -> Shape:
    """The shape of an instruction.

    `mark` is `^` if its displacement names a place of the function, `&` if its integer operand does, empty if neither.
    """
    op = operation_class(mnemonic, modifiers)
    roles = isa.roles(Instruction(mnemonic, modifiers, operands))
    rows = None if roles is None else _accesses(roles, operands)
    if op is None or roles is None or rows is None:
        return _opaque(mnemonic, modifiers, operands, mark)
    texts = [mark if _marked(operand, mark) else _text(operand, row) for operand, row in zip(operands, rows, strict=True)]
    hidden = [(n, (READ, 1)) for n in roles.implicit_reads] + [(n, (WRITE, 1)) for n in roles.implicit_writes]
    text = ", ".join(texts) + ("; " + " ".join([_hole(name, access) for name, access in hidden]) if hidden else "")
    shown = [pair for operand, row in zip(operands, rows, strict=True) for pair in zip(operand.registers, row, strict=True)]
    holes = [(NUMBER[name], *access) for name, access in shown + hidden if access is not None]
    reads = [n + k for n, access, width in holes if access != WRITE for k in range(width)]
    writes = [n + k for n, access, width in holes if access != READ for k in range(width)]
    types = tuple([REGISTERS[n] for n in writes])
    properties = _properties(text, modifiers)
    return Shape(op, properties, tuple(reads), tuple(writes), types, bits(reads), bits(writes), _displacement(operands), None)


@cache
def with_held(template: TemplateAttr, files: tuple[str, ...]) -> TemplateAttr:
    """The template with one more hidden hole for each of some registers, of these files, that the instruction reads."""
    holes = " ".join([READ + file for file in files])
    return TemplateAttr.of(f"{template.text} {holes}" if "; " in template.text else f"{template.text}; {holes}")


def _opaque(mnemonic: str, modifiers: tuple[str, ...], operands: tuple[Operand, ...], mark: str) -> Shape:
    """The shape of an instruction whose registers stay text."""
    name = () if mnemonic == OPAQUE else (mnemonic, *modifiers)
    problem = f"the registers of {'.'.join(name)} are not known" if name else "no encoder table describes its word"
    properties = _properties(", ".join([mark if _marked(o, mark) else o.text for o in operands]), name)
    return Shape(OpaqueOp, properties, (), (), (), 0, 0, _displacement(operands), problem)


def _properties(template: str, modifiers: tuple[str, ...]) -> dict[str, Attribute]:
    properties: dict[str, Attribute] = {"template": TemplateAttr.of(template)}
    if modifiers:
        properties["modifiers"] = _string(".".join(modifiers))
    return properties


def _displacement(operands: tuple[Operand, ...]) -> int | None:
    return next((o.displacement for o in operands if o.displacement is not None), None)


_Access = tuple[str, int] | None
"""`$`, `=` or `$=` and a width; None for a zero register."""
_Row = list[_Access]


def _accesses(roles: isa.Roles, operands: tuple[Operand, ...]) -> list[_Row] | None:
    """What happens to each register of each operand; None if a role is missing or impossible."""
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
    return pieces[0] + "".join(_hole(n, a) + p for n, a, p in zip(operand.registers, row, pieces[1:], strict=True))


def _hole(name: str, found: _Access) -> str:
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
