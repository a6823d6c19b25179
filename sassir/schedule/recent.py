"""What happened shortly before a point of the code, as far as its distance from what follows still matters."""

from __future__ import annotations

from typing import NamedTuple


class Guard(NamedTuple):
    """A guard, and how often its predicate had been written in this block."""

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
    """Accesses, and when each scoreboard got its last signal."""

    writes: Accesses
    reads: Accesses
    signals: dict[int, int]

    def copy(self) -> Recent:
        """The same, to go on from."""
        return Recent(dict(self.writes), dict(self.reads), dict(self.signals))

    def moved(self, cycles: int) -> Recent:
        """The same so many cycles later."""
        return Recent(_moved(self.writes, cycles), _moved(self.reads, cycles), {s: time - cycles for s, time in self.signals.items()})

    def add(self, other: Recent) -> None:
        """Take in what happened on another path to the same point."""
        _add(self.writes, other.writes)
        _add(self.reads, other.reads)
        for s, time in other.signals.items():
            self.signals[s] = max(time, self.signals.get(s, time))


def excludes(first: Guard | None, second: Guard | None) -> bool:
    """No thread meets both guards."""
    if first is None or second is None:
        return False
    return first.register == second.register and first.generation == second.generation and first.complemented != second.complemented


def _moved(accesses: Accesses, cycles: int) -> Accesses:
    return {register: tuple([a._replace(time=a.time - cycles) for a in group]) for register, group in accesses.items()}


def _add(known: Accesses, others: Accesses) -> None:
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
