"""What happened shortly before a point of the code, as far as its distance from what follows still matters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Guard(NamedTuple):
    """A guard, and how often its predicate had been written in the block."""

    register: int
    complemented: bool
    generation: int


class Access(NamedTuple):
    """A register access. Times count from the point; they are negative."""

    time: int
    kind: int
    """The row of a write, the column of a read."""
    guard: Guard | None


Accesses = dict[int, tuple[Access, ...]]
"""By register."""


class Recent(NamedTuple):
    """Writes and reads, and what keeps its distance without registers."""

    writes: Accesses
    reads: Accesses
    spaced: dict[str, int]
    """When an instruction of a kind may issue."""

    def and_also(self, other: Recent) -> Recent:
        """With what happened on another path to the same point."""
        return Recent(_joined(self.writes, other.writes), _joined(self.reads, other.reads), _latest(self.spaced, other.spaced))


def _latest(times: Mapping[str, int], others: Mapping[str, int]) -> dict[str, int]:
    return {**times, **{kind: max(time, times.get(kind, time)) for kind, time in others.items()}}


def excludes(first: Guard | None, second: Guard | None) -> bool:
    """No thread meets both guards."""
    if first is None or second is None:
        return False
    return first.register == second.register and first.generation == second.generation and first.complemented != second.complemented


def later(accesses: Accesses, reach: Sequence[int], cycles: int, generations: Mapping[int, int]) -> Accesses:
    """What is left of `accesses` so many cycles later: those whose kind reaches that far."""
    kept: Accesses = {}
    for register, group in accesses.items():
        left = [Access(a.time - cycles, a.kind, _lasting(a.guard, generations)) for a in group if cycles - a.time < reach[a.kind]]
        if left:
            kept[register] = tuple(left)
    return kept


def _lasting(guard: Guard | None, generations: Mapping[int, int]) -> Guard | None:
    """The guard as the next block sees it; None if its predicate has another value there."""
    if guard is None or guard.generation != generations.get(guard.register, 0):
        return None
    return guard._replace(generation=0)


def _joined(accesses: Accesses, others: Accesses) -> Accesses:
    known = dict(accesses)
    for register, group in others.items():
        before = known.get(register)
        if before is None or before == group:
            known[register] = group
        else:
            latest: dict[tuple[int, Guard | None], Access] = {}
            for access in (*before, *group):
                key = access.kind, access.guard
                if key not in latest or latest[key].time < access.time:
                    latest[key] = access
            known[register] = tuple(sorted(latest.values(), key=lambda a: (a.kind, a.guard or ())))
    return known
