"""Find the stall counts: each line issues as soon as the fixed latencies before it, on every path, allow.

Forward over the control-flow graph with issue times: at the start of a block the clock is 0, what came before has a
negative time. A stall goes right before the line that needs it; for the first line of a block, to the end of the blocks
before. What only the way into a loop needs is waited for outside of it. Stall counts only grow, and more distance never
breaks a rule, so going round until nothing changes ends.
"""

from __future__ import annotations

from collections.abc import Sequence

from sassir.machine import Machine
from sassir.machine.latency import Matrix
from sassir.schedule.code import Code
from sassir.schedule.effects import Effects
from sassir.schedule.recent import Access, Accesses, Guard, Recent, excludes
from sassir.schedule.scoreboards import Signals
from sassir.translate.shape import members

SIGNAL_TO_WAIT = 2
"""Cycles from a signal to the first wait that sees it (Huerta et al., MICRO 2025)."""


class Stalls:
    """The state of finding stall counts for one kernel."""

    def __init__(self, code: Code, signals: Sequence[Signals], waits: Sequence[int], machine: Machine) -> None:
        self.code, self.signals, self.waits = code, signals, waits
        self.raw, self.war, self.waw, self.waw_guarded = map(_cycles, (machine.raw, machine.war, machine.waw, machine.waw_guarded))
        self.write_reach = [max(*a, *b, *c) for a, b, c in zip(self.raw, self.waw, self.waw_guarded, strict=True)]
        self.read_reach = [max(row) for row in self.war]
        self.stalls = [e.timing.minimum_stall for e in code.effects]
        self.exits = [Recent({}, {}, {}) for _ in code.blocks]

    def run(self) -> list[int]:
        """The stall count of every line; some may be more than one control code can hold."""
        waiting = set(self.code.cfg.order)
        while waiting:
            for b in self.code.cfg.order:
                if b in waiting:
                    waiting.discard(b)
                    waiting |= self._settle(b)
        return self.stalls

    def _settle(self, b: int) -> set[int]:
        """Make the stalls in and before a block long enough; the blocks to look at again."""
        code, again = self.code, set[int]()
        before = code.cfg.predecessors[b]
        often = [p for p in before if code.weights[p] >= code.weights[b]] or before
        entry = Recent({}, {}, {})
        for p in often:
            entry.add(self.exits[p])
        walk = _Walk(self, b, entry)
        walk.run(grow=True)
        for p in before:
            missing = _Walk(self, b, self.exits[p].copy()).run(grow=False)
            if missing:
                self.stalls[self._last_line(p)] += missing
                again.add(p)
        after = walk.exit()
        for p in before:
            if p not in often:
                after.add(self._through(self.exits[p], b, walk.clock))
        if after != self.exits[b]:
            self.exits[b] = after
            again.update(code.cfg.successors[b])
        return again

    def _last_line(self, b: int) -> int:
        """The last line before the end of a block: its own, or for an empty one that of the block before."""
        while not self.code.blocks[b]:
            b = self.code.cfg.predecessors[b][0]
        return self.code.blocks[b][-1]

    def _through(self, before: Recent, b: int, cycles: int) -> Recent:
        """What is left of `before` behind a block that takes so many cycles."""
        written = 0
        for line in self.code.blocks[b]:
            written |= self.code.effects[line].written
        after = before.moved(cycles)
        return Recent(
            {r: group for r, group in after.writes.items() if not written >> r & 1 and any(-a.time < self.write_reach[a.kind] for a in group)},
            {r: group for r, group in after.reads.items() if any(-a.time < self.read_reach[a.kind] for a in group)},
            {s: time for s, time in after.signals.items() if -time < SIGNAL_TO_WAIT},
        )


class _Walk:
    """One walk through a block."""

    def __init__(self, stalls: Stalls, b: int, recent: Recent) -> None:
        self.of, self.block, self.leaving = stalls, stalls.code.blocks[b], b in stalls.code.leaving
        self.recent = recent
        self.generations: dict[int, int] = {}
        self.clock = 0

    def run(self, grow: bool) -> int:
        """Issue the lines of the block. With `grow`, lengthen stalls inside of it; else only look at what came before it.

        The result is how much later the block must start."""
        of, missing = self.of, 0
        for line in self.block:
            facts = of.code.effects[line]
            guard = None if facts.guard is None else Guard(*facts.guard, self.generations.get(facts.guard[0], 0))
            late = self._earliest(line, facts, guard) - self.clock
            if late > 0:
                if grow and line > self.block[0]:
                    of.stalls[line - 1] += late
                    self.clock += late
                else:
                    missing = max(missing, late)
            if grow:
                self._issue(line, facts, guard)
            elif not self._forget(facts):
                break
            self.clock += of.stalls[line]
        if grow and self.leaving:
            self._finish()
        return missing

    def _earliest(self, line: int, facts: Effects, guard: Guard | None) -> int:
        """When the line may issue."""
        of, earliest = self.of, 0
        writes, reads = self.recent.writes, self.recent.reads
        for register, column in facts.reads:
            for access in writes.get(register, ()):
                if access.time + of.raw[access.kind][column] > earliest and not excludes(access.guard, guard):
                    earliest = access.time + of.raw[access.kind][column]
        for register, row in facts.writes:
            for access in writes.get(register, ()):
                needed = (of.waw if access.guard is None else of.waw_guarded)[access.kind][row]
                if access.time + needed > earliest and not excludes(access.guard, guard):
                    earliest = access.time + needed
            for access in reads.get(register, ()):
                earliest = max(earliest, access.time + of.war[access.kind][row])
        if of.waits[line] and self.recent.signals:
            for s in members(of.waits[line]):
                earliest = max(earliest, self.recent.signals.get(s, earliest) + SIGNAL_TO_WAIT)
        return earliest

    def _issue(self, line: int, facts: Effects, guard: Guard | None) -> None:
        """The line happens now."""
        of, now = self.of, self.clock
        writes, reads = self.recent.writes, self.recent.reads
        for register, column in facts.reads:
            if of.read_reach[column] > 1:
                reads[register] = (*[a for a in reads.get(register, ()) if now - a.time < of.read_reach[a.kind]], Access(now, column, None))
        for register, row in facts.writes:
            access = Access(now, row, guard)
            if guard is None:
                writes[register] = (access,)
            else:
                writes[register] = (*[a for a in writes.get(register, ()) if now - a.time < of.write_reach[a.kind]], access)
            self.generations[register] = self.generations.get(register, 0) + 1
        for s in of.signals[line]:
            if s is not None:
                self.recent.signals[s] = now

    def _forget(self, facts: Effects) -> bool:
        """Drop what the line replaces; False if nothing of what came before the block matters any more."""
        recent, now = self.recent, self.clock
        for register, _ in facts.writes:
            if facts.guard is None:
                recent.writes.pop(register, None)
            self.generations[register] = self.generations.get(register, 0) + 1
        return now < 2 or _any_left(recent.writes, self.of.write_reach, now) or _any_left(recent.reads, self.of.read_reach, now)

    def _finish(self) -> None:
        """Before code that is not known, everything must have happened."""
        latest = max([a.time + self.of.write_reach[a.kind] for group in self.recent.writes.values() for a in group], default=0)
        if latest > self.clock:
            self.of.stalls[self.block[-1]] += latest - self.clock
            self.clock = latest

    def exit(self) -> Recent:
        """What matters behind the block."""
        end = self.clock
        writes = _kept(self.recent.writes, self.of.write_reach, end, self.generations)
        reads = _kept(self.recent.reads, self.of.read_reach, end, self.generations)
        return Recent(writes, reads, {s: time - end for s, time in self.recent.signals.items() if end - time < SIGNAL_TO_WAIT})


def _any_left(accesses: Accesses, reach: Sequence[int], now: int) -> bool:
    return any(now - a.time < reach[a.kind] for group in accesses.values() for a in group)


def _kept(accesses: Accesses, reach: Sequence[int], end: int, generations: dict[int, int]) -> Accesses:
    """The accesses that reach beyond `end`, with times from there."""
    kept: Accesses = {}
    for register, group in accesses.items():
        if left := tuple([Access(a.time - end, a.kind, _lasting(a.guard, generations)) for a in group if end - a.time < reach[a.kind]]):
            kept[register] = left
    return kept


def _lasting(guard: Guard | None, generations: dict[int, int]) -> Guard | None:
    """The guard as the next block sees it; None if its predicate has another value there."""
    if guard is None or guard.generation != generations.get(guard.register, 0):
        return None
    return guard._replace(generation=0)


def _cycles(matrix: Matrix) -> list[list[int]]:
    return [[cell.cycles for cell in row] for row in matrix]
