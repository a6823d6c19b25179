"""The rows of the instruction table, found by mnemonic and modifiers."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from sassir.machine.instructions import OVERRIDES, TABLE

Classes = tuple[tuple[str, ...], ...]
"""Latency classes by operand, and by register of its group; the last one of each holds for all further."""


class Kind(NamedTuple):
    """One row of the instruction table."""

    pipe: str
    writes: Classes
    """By operand written that is not a predicate."""
    reads: Classes
    """By operand read that is not a predicate."""
    late: frozenset[str]
    """Which of `w`, `r`, `u`, `p`, `g` apply."""
    queue: str | None
    """Operands are read in the order of issue within this queue."""
    result_queue: str | None
    """Results arrive in the order of issue within this queue."""


UNKNOWN = Kind("unknown", (), (), frozenset("wru"), None, None)
"""What is assumed of an instruction that no row describes."""

_Rows = dict[str, dict[frozenset[str], Kind]]


@cache
def kind_of(arch: str, mnemonic: str, modifiers: tuple[str, ...]) -> Kind:
    """The row for an instruction of this mnemonic and these modifiers on an architecture of OVERRIDES; `UNKNOWN` if there is none."""
    rows = _rows(arch).get(mnemonic, {})
    fitting = [needed for needed in rows if needed.issubset(modifiers)]
    return rows[max(fitting, key=len)] if fitting else UNKNOWN


@cache
def _rows(arch: str) -> _Rows:
    rows = parse(TABLE)
    for mnemonic, group in parse(OVERRIDES[arch]).items():
        rows[mnemonic] = rows[mnemonic] | group
    return rows


def own_classes(arch: str) -> set[str]:
    """The classes of what an architecture's own rows write."""
    kinds = [kind for group in parse(OVERRIDES[arch]).values() for kind in group.values()]
    return {name for kind in kinds for group in kind.writes for name in group}


def parse(table: str) -> _Rows:
    """The rows of a table text by mnemonic and modifiers needed. Raises ValueError naming the line of a malformed or second row."""
    rows: _Rows = {}
    for line in table.strip().splitlines():
        if not line or line.startswith("#"):
            continue
        try:
            pipe, writes, reads, late, queues, names = (column.strip() for column in line.split("|"))
            queue, _, results = queues.partition("/")
            kind = Kind(pipe, _classes(writes), _classes(reads), frozenset(late.split()), queue or None, results or None)
        except ValueError as error:
            raise ValueError(f"table row {line!r}: {error}") from error
        for name in names.split():
            mnemonic, *modifiers = name.split(".")
            if frozenset(modifiers) in rows.setdefault(mnemonic, {}):
                raise ValueError(f"table row {line!r}: a second row for {name}")
            rows[mnemonic][frozenset(modifiers)] = kind
    return rows


def _classes(column: str) -> Classes:
    return tuple(tuple(word.split("/")) for word in column.split())
