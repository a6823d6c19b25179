"""Which general registers an instruction reads in which operand slot."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from sassir.dialect.registers import R
from sassir.dialect.template import Argument, Hole, TemplateAttr


class ReadSlot(NamedTuple):
    """An operand in general registers."""

    slot: int
    """Its place among the operands that are read, predicates aside."""
    first: int
    """Its first register, as a place among the values read."""
    width: int
    kept: bool
    """It is marked for the operand cache."""


@cache
def read_slots(template: TemplateAttr) -> tuple[ReadSlot, ...]:
    """The operands in general registers that the text shows."""
    remaining = iter(template.data.holes)
    found: list[ReadSlot] = []
    slot = first = 0
    for argument in template.data.arguments:
        holes = [next(remaining) for name in argument.registers if name is None]
        for hole in holes:
            if hole.reads and hole.file == R.FILE:
                found.append(ReadSlot(slot, first, hole.width, ".reuse" in argument.template))
            first += hole.width if hole.reads else 0
        slot += not (_is_predicate(argument, holes) or any(hole.writes for hole in holes) or argument is template.data.arguments[0])
    return tuple(found)


def _is_predicate(argument: Argument, holes: list[Hole]) -> bool:
    return any(hole.file in ("P", "UP") for hole in holes) or any(name in ("PT", "UPT") for name in argument.registers)
