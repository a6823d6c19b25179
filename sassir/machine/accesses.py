"""The registers an instruction reads and writes, each with its line in the latency matrices."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sassir import isa
from sassir.asm.instruction import Instruction
from sassir.asm.operand import ZERO_REGISTERS, Operand, register_file
from sassir.isa.description import kind_of as operand_kind
from sassir.machine.classes import BINDLESS, COLUMNS, ROWS, Axis
from sassir.machine.kinds import UNKNOWN, Classes, Kind


class Access(NamedTuple):
    """One register that an instruction reads or writes."""

    file: str
    number: int
    line: int
    """Its row in the matrices if it is written, its column if it is read."""


class Accesses(NamedTuple):
    """All of them but the guard, in the order of `writes` and `reads` of sassir.translate.shape."""

    writes: tuple[Access, ...]
    reads: tuple[Access, ...]
    problem: str | None
    """Why they are not known (then there are none); None if they are."""


def accesses(instruction: Instruction, kind: Kind) -> Accesses:
    """What an instruction of that kind reads and writes."""
    roles = isa.roles(instruction)
    if roles is None or kind is UNKNOWN:
        return Accesses((), (), f"no table row describes {instruction.name}")
    operands = instruction.operands
    written = {access.operand for access in roles.writes}
    writes = _registers(operands, roles.writes, kind.writes, _places(operands, written), ROWS)
    reads = _registers(operands, roles.reads, kind.reads, _places(operands, set(range(len(operands))) - written), COLUMNS)
    hidden_writes = [_access(name, 0, kind.writes, 0, 0, ROWS) for name in roles.implicit_writes]
    hidden_reads = [_access(name, 0, kind.reads, 0, 0, COLUMNS) for name in roles.implicit_reads]
    return Accesses((*writes, *hidden_writes), (*reads, *hidden_reads), None)


def guard_column(guard: Operand | None) -> int:
    """The column of a guard predicate."""
    return COLUMNS.number[f"{register_file(guard.registers[0]) if guard else 'P'}.guard"]


def _places(operands: Sequence[Operand], members: set[int]) -> list[int]:
    """For each operand, how many of the members before it are no predicates."""
    places: list[int] = []
    count = 0
    for i, operand in enumerate(operands):
        places.append(count)
        count += i in members and operand_kind(operand) != "predicate"
    return places


def _registers(
    operands: Sequence[Operand], group: Iterable[isa.Access], classes: Classes, places: Sequence[int], axis: Axis
) -> list[Access]:
    found: list[Access] = []
    for index, hole, width in sorted(group):
        name = operands[index].registers[hole]
        if name not in ZERO_REGISTERS:
            found += [_access(name, k, classes, places[index], k, axis, operands[index]) for k in range(width)]
    return found


def _access(name: str, offset: int, classes: Classes, place: int, part: int, axis: Axis, operand: Operand | None = None) -> Access:
    file = register_file(name)
    by_part = classes[min(place, len(classes) - 1)] if classes else ("late",)
    line = axis.line(by_part[min(part, len(by_part) - 1)], file)
    if axis is COLUMNS and file == "UR" and operand is not None and operand.template.lstrip("-|~").startswith("cx["):
        line = axis.line(BINDLESS, file)
    return Access(file, int(name[len(file) :]) + offset, line)
