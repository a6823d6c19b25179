"""What an operation asks of the registers of its values."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from sassir.analysis.bonds import accumulator
from sassir.dialect import internals
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.template import TemplateAttr


class Group(NamedTuple):
    """Operands that must be in registers in a row."""

    first: int
    """Index of the first operand."""
    width: int
    result: int | None
    """Index of the first result that is written to the same registers."""
    kept: int | None
    """Index of the first of the operands that say once more what these results keep."""


class Results(NamedTuple):
    """Results that are written to registers in a row."""

    first: int
    width: int
    group: int | None
    """Index of the group of operands whose registers they take over."""


class Demands(NamedTuple):
    """The groups of one operation. A single operand that shares its register with a result is a group too."""

    groups: tuple[Group, ...]
    results: tuple[Results, ...]


def demands(op: SassInstruction) -> Demands:
    """The demands of `op`: they follow from its template, and from whether it is guarded."""
    template = op.template
    reads = len(template.data.read_files)
    guarded = bool(op.results) and len(internals.operands(op)) > reads
    return _demands(template.text, reads + (op.constant_guard is None) if guarded else None, accumulator(op))


@cache
def _demands(text: str, kept: int | None, in_place: int | None) -> Demands:
    """`kept`: index of the first kept value. `in_place`: the hole that is read where the first result is written."""
    groups: list[Group] = []
    results: list[Results] = []
    at = to = 0
    for i, hole in enumerate(TemplateAttr.of(text).data.holes):
        keeping = None if kept is None else kept + to
        tie: int | None = None
        if hole.reads and (hole.writes or hole.width > 1):
            tie = len(groups) if hole.writes else None
            groups.append(Group(at, hole.width, to if hole.writes else None, keeping if hole.writes else None))
            if i == in_place:
                groups[-1] = Group(at, hole.width, 0, None)
                results[0] = results[0]._replace(group=len(groups) - 1)
        elif hole.writes and keeping is not None:
            tie = len(groups)
            groups.append(Group(keeping, hole.width, to, None))
        if hole.writes:
            results.append(Results(to, hole.width, tie))
        at += hole.width * hole.reads
        to += hole.width * hole.writes
    return Demands(tuple(groups), tuple(results))
