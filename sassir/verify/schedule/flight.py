"""What is under way at a point of the code: writes and reads that are not known to be over.

Two kinds. A *fixed* access is over after a number of cycles, so its issue time is kept. A *late* access is over when a
scoreboard says so; late accesses that the same signals end are one set of registers. Where paths meet, every access that
is under way on one of them is, and has the smaller age.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

LONG_AGO = -(1 << 20)
"""A time so far back that every fixed access is over."""
Drain = tuple[tuple[int, int], ...]
"""What DEPBAR waits for: scoreboard, and the most signals that may be outstanding."""


class Condition(NamedTuple):
    """A guard, and how often its predicate had been written in the block: the same value only if that is equal."""

    register: int
    negated: bool
    version: int


def excludes(first: Condition | None, second: Condition | None) -> bool:
    """No thread meets both conditions: guards on the same value, one of them complemented."""
    if first is None or second is None:
        return False
    return first.register == second.register and first.version == second.version and first.negated != second.negated


class Write(NamedTuple):
    """A fixed write that may not be over."""

    time: int
    row: int
    line: int
    condition: Condition | None


class Late(NamedTuple):
    """What late accesses have in common: all that decides when they are over."""

    writes: bool
    """The registers are results that are not there yet; else operands that are not read yet."""
    queue: str | None
    """The queue that keeps them in order."""
    condition: Condition | None
    signals: tuple[tuple[int, int], ...] = ()
    """Scoreboards that tell the end, ascending, each with the signals of its queue since, its own included. Any one tells."""


@cache
def _signalled(late: Late, scoreboard: int, most: int) -> Late:
    """The same after one more signal of its queue; counts above `most` are not told apart."""
    counts = dict(late.signals)
    counts[scoreboard] = min(counts.get(scoreboard, 0) + 1, most)
    return late._replace(signals=tuple(sorted(counts.items())))


@cache
def _is_over(late: Late, waits: tuple[int, ...], drain: Drain) -> bool:
    """Whether it is over once the scoreboards `waits` are clear and DEPBAR has waited for the counts `drain`."""
    return any(s in waits or any(s == d and count > most for d, most in drain) for s, count in late.signals)


class Flight:
    """The state. `clock` is the issue time of the next instruction; at the start of a block it is 0, earlier times are negative."""

    __slots__ = ("clock", "late", "reads", "signalled", "spaced", "unread", "unwritten", "versions", "writes")

    def __init__(self) -> None:
        self.clock = 0
        self.writes: dict[int, tuple[Write, ...]] = {}
        """Fixed writes by register."""
        self.reads: dict[int, int] = {}
        """Issue times of the lines whose operands a writer could still come too close to."""
        self.late: dict[Late, int] = {}
        """Registers of late accesses, as bits."""
        self.unwritten = 0
        """All registers with late results."""
        self.unread = 0
        """All registers with late operands."""
        self.signalled: dict[int, int] = {}
        """When each scoreboard got its newest signal."""
        self.spaced: dict[int, int] = {}
        """Issue times of lines after which some kind of instruction could still come too soon."""
        self.versions: dict[int, int] = {}
        """How often each predicate was written in this block."""

    def start(self, late: Late, registers: int) -> None:
        """A late access begins."""
        self.late[late] = self.late.get(late, 0) | registers
        if late.writes:
            self.unwritten |= registers
        else:
            self.unread |= registers

    def _replace_late(self, late: dict[Late, int]) -> None:
        self.late, self.unwritten, self.unread = {}, 0, 0
        for key, registers in late.items():
            self.start(key, registers)

    def end(self, waits: tuple[int, ...], drain: Drain) -> None:
        """Late accesses end."""
        if self.late:
            self._replace_late({late: registers for late, registers in self.late.items() if not _is_over(late, waits, drain)})

    def pass_barrier(self) -> None:
        """What memory instructions read is read."""
        self._replace_late({late: registers for late, registers in self.late.items() if late.writes or late.queue is None})

    def signal(self, scoreboard: int, queue: str | None, returns: str | None, most: int) -> None:
        """A scoreboard will tell the end of an instruction of `queue`, whose results come by `returns`: of older ones there too."""
        after: dict[Late, int] = {}
        for late, registers in self.late.items():
            if late.queue is not None and late.queue == (returns if late.writes else queue):
                late = _signalled(late, scoreboard, most)
            after[late] = after.get(late, 0) | registers
        self.late = after

    def leave(self, horizon: int) -> Flight:
        """The state for the start of the next block; fixed accesses older than `horizon` cycles are over."""
        now, after = self.clock, Flight()
        oldest = now - horizon
        for register, writes in self.writes.items():
            if kept := tuple([Write(w.time - now, w.row, w.line, self._lasting(w.condition)) for w in writes if w.time > oldest]):
                after.writes[register] = kept
        after.reads = {line: time - now for line, time in self.reads.items() if time > oldest}
        for late, registers in self.late.items():
            if registers:
                after.start(late._replace(condition=self._lasting(late.condition)) if late.condition else late, registers)
        after.signalled = {s: time - now for s, time in self.signalled.items() if time > oldest}
        after.spaced = {line: time - now for line, time in self.spaced.items() if time > oldest}
        return after

    def _lasting(self, condition: Condition | None) -> Condition | None:
        """The condition as the next block sees it; None if its predicate has another value there."""
        if condition is None or condition.version != self.versions.get(condition.register, 0):
            return None
        return condition._replace(version=0)

    def join(self, other: Flight) -> bool:
        """Take in what is under way on another path to this point; False if that changes nothing."""
        changed = _join_newest(self.reads, other.reads) | _join_newest(self.signalled, other.signalled)
        changed |= _join_newest(self.spaced, other.spaced)
        for late, registers in other.late.items():
            if registers & ~self.late.get(late, 0):
                self.start(late, registers)
                changed = True
        for register, writes in other.writes.items():
            known = self.writes.get(register)
            if known != writes:
                joined = writes if known is None else _join_writes(known, writes)
                if joined != known:
                    self.writes[register] = joined
                    changed = True
        return changed

    def copy(self) -> Flight:
        """The same state, to go on from."""
        copy = Flight()
        copy.writes, copy.reads, copy.late, copy.signalled = dict(self.writes), dict(self.reads), dict(self.late), dict(self.signalled)
        copy.unwritten, copy.unread, copy.spaced = self.unwritten, self.unread, dict(self.spaced)
        return copy


def _join_newest(times: dict[int, int], others: dict[int, int]) -> bool:
    """Keep the time that leaves the smaller age."""
    changed = False
    for key, time in others.items():
        if time > times.get(key, LONG_AGO):
            times[key] = time
            changed = True
    return changed


def _join_writes(first: tuple[Write, ...], second: tuple[Write, ...]) -> tuple[Write, ...]:
    newest: dict[tuple[int, int, Condition | None], Write] = {}
    for write in (*first, *second):
        key = write.row, write.line, write.condition
        if key not in newest or write.time > newest[key].time:
            newest[key] = write
    return tuple(sorted(newest.values(), key=lambda w: (w.line, w.row, w.condition or ())))
