"""Find the stall counts: each line issues as soon as the fixed latencies before it, on every path, allow.

Forward over the control-flow graph with issue times: at the start of a block the clock is 0, what came before has a
negative time. A stall goes right before the line that needs it; for the first line of a block, to the end of the blocks
before. What only the way into a loop needs is waited for outside of it. Stall counts only grow, and more distance never
breaks a rule, so going round until nothing changes ends.
"""

from __future__ import annotations

from functools import cache

from sassir.machine import Machine
from sassir.machine.latency import Matrix
from sassir.schedule.code import Code
from sassir.schedule.effects import Effects
from sassir.schedule.recent import Access, Guard, Recent, excludes, later

LONGEST = 15
"""The largest stall count."""


def find_stalls(code: Code, machine: Machine) -> list[int]:
    """The stall count of every line; more than `LONGEST` where no instruction is there to wait longer."""
    finder = _Finder(code, machine)
    waiting = set(code.cfg.order)
    while waiting:
        for b in code.cfg.order:
            if b in waiting:
                waiting.discard(b)
                waiting |= finder.settle(b)
    return finder.stalls


_QUIET = Recent({}, {}, {})
"""Nothing happened."""


class _Latencies:
    """The matrices as plain numbers, and how far each row and column reaches."""

    def __init__(self, machine: Machine) -> None:
        self.raw, self.war, self.waw, self.waw_guarded = map(_cycles, (machine.raw, machine.war, machine.waw, machine.waw_guarded))
        self.write_reach = [max(*a, *b, *c) for a, b, c in zip(self.raw, self.waw, self.waw_guarded, strict=True)]
        self.read_after = [max(row) for row in self.raw]
        """By row, the cycles after which whatever reads the register may come."""
        self.read_reach = [max(row) for row in self.war]


def _cycles(matrix: Matrix) -> list[list[int]]:
    return [[cell.cycles for cell in row] for row in matrix]


@cache
def _latencies(machine: Machine) -> _Latencies:
    return _Latencies(machine)


class _Finder:
    def __init__(self, code: Code, machine: Machine) -> None:
        self.code, self.latencies = code, _latencies(machine)
        self.stalls = [e.kind.timing.usual_stall for e in code.effects]
        self.exits = [_QUIET for _ in code.blocks]

    def settle(self, b: int) -> set[int]:
        """Make the stalls in and before a block long enough; the blocks to look at again."""
        code, again = self.code, set[int]()
        before = code.cfg.predecessors[b]
        often = [p for p in before if code.weights[p] >= code.weights[b]] or before
        entry = _QUIET
        for p in often:
            entry = entry.and_also(self.exits[p])
        walk = _Walk(self, b, entry)
        while not walk.run():
            walk = _Walk(self, b, entry)
        for p in before:
            missing, since = _Walk(self, b, self.exits[p]).missing()
            if missing:
                for q in code.filled([p]):
                    self._lengthen(q, missing, since)
                    again.add(q)
        after = walk.exit()
        for p in before:
            if p not in often:
                after = after.and_also(walk.behind(self.exits[p]))
        if after != self.exits[b]:
            self.exits[b] = after
            again.update(code.cfg.successors[b])
        return again

    def _lengthen(self, b: int, cycles: int, since: int) -> None:
        """Let a block end later, by longer stalls from the end up to `since`, which is a time counted from there."""
        block, time = self.code.blocks[b], 0
        for line in reversed(block):
            time -= self.stalls[line]
            if not cycles or time < since:
                break
            more = min(cycles, max(0, LONGEST - self.stalls[line]))
            self.stalls[line] += more
            cycles -= more
        self.stalls[block[-1]] += cycles


class _Walk:
    """One walk through a block."""

    def __init__(self, finder: _Finder, b: int, recent: Recent) -> None:
        self.stalls, self.latencies, self.effects = finder.stalls, finder.latencies, finder.code.effects
        self.block, self.leaving = finder.code.blocks[b], b in finder.code.leaving
        self.writes, self.reads, self.spaced = dict(recent.writes), dict(recent.reads), dict(recent.spaced)
        self.generations: dict[int, int] = {}
        self.busy: dict[str, tuple[int, int]] = {}
        """When a pipe takes the next instruction, and when it took the last one. ptxas waits for that as well, whatever stands between:
        what issues sooner waits at dispatch, in front of other warps."""
        self.clock = 0
        self.times: list[int] = []

    def run(self) -> bool:
        """Issue the lines of the block and lengthen stalls inside of it. False if it has to be walked again: an earlier stall grew."""
        for line in self.block:
            facts = self.effects[line]
            guard = self._guard(facts)
            earliest, since = self._earliest(facts, guard)
            if earliest > self.clock and line > self.block[0] and not self._hold(line, earliest - self.clock, since):
                return False
            self._issue(facts, guard)
            self.times.append(self.clock)
            self.clock += self.stalls[line]
        if self.leaving:
            latest, since = max(
                [(a.time + self.latencies.read_after[a.kind], a.time) for g in self.writes.values() for a in g], default=(0, 0)
            )
            if latest > self.clock:
                return self._hold(self.block.stop, latest - self.clock, since)
        return True

    def missing(self) -> tuple[int, int]:
        """How much later the block must start because of what came before it, and the time of the access that decides it."""
        of, missing, writes, reads = self.latencies, (0, 0), self.writes, self.reads
        ends = [a.time + of.write_reach[a.kind] for group in writes.values() for a in group]
        ends += [a.time + of.read_reach[a.kind] for group in reads.values() for a in group]
        end = max([*ends, *self.spaced.values()], default=0)
        for line in self.block:
            if self.clock >= end:
                break
            facts = self.effects[line]
            earliest, since = self._earliest(facts, self._guard(facts))
            missing = max(missing, (earliest - self.clock, since))
            for register, _ in facts.writes:
                if facts.guard is None:
                    writes.pop(register, None)
                self.generations[register] = self.generations.get(register, 0) + 1
            self.clock += self.stalls[line]
        return missing

    def _guard(self, facts: Effects) -> Guard | None:
        return None if facts.guard is None else Guard(*facts.guard, self.generations.get(facts.guard[0], 0))

    def _earliest(self, facts: Effects, guard: Guard | None) -> tuple[int, int]:
        """When the line may issue, and the time of the access that decides it."""
        of, writes, reads = self.latencies, self.writes, self.reads
        earliest = since = max([0, *[time for kind, time in self.spaced.items() if kind in facts.kind.spacing.kinds]])
        free, taken = self.busy.get(facts.kind.timing.pipe, (0, 0))
        if free > earliest:
            earliest, since = free, taken
        for register, column in facts.reads:
            if register in writes:
                for time, row, other in writes[register]:
                    if time + of.raw[row][column] > earliest and not excludes(other, guard):
                        earliest, since = time + of.raw[row][column], time
        for register, row in facts.writes:
            if register in writes:
                for time, first, other in writes[register]:
                    needed = (of.waw if other is None else of.waw_guarded)[first][row]
                    if time + needed > earliest and not excludes(other, guard):
                        earliest, since = time + needed, time
            if register in reads:
                for time, column, _ in reads[register]:
                    if time + of.war[column][row] > earliest:
                        earliest, since = time + of.war[column][row], time
        return earliest, since

    def _hold(self, line: int, cycles: int, since: int) -> bool:
        """Let `line` issue later, by longer stalls of the lines before it, from the one at `since` on. False if not only the last grew."""
        room = LONGEST - self.stalls[line - 1]
        if cycles <= room:
            self.stalls[line - 1] += cycles
            self.clock += cycles
            return True
        for before in range(line - 1, self.block.start - 1, -1):
            if not cycles or self.times[before - self.block.start] < since:
                break
            more = min(cycles, max(0, LONGEST - self.stalls[before]))
            self.stalls[before] += more
            cycles -= more
        self.stalls[line - 1] += cycles
        return False

    def _issue(self, facts: Effects, guard: Guard | None) -> None:
        """The line happens now."""
        of, now, writes, reads = self.latencies, self.clock, self.writes, self.reads
        self.busy[facts.kind.timing.pipe] = now + min(facts.kind.timing.issue, LONGEST), now
        for kind, cycles in facts.kind.spacing.after:
            self.spaced[kind] = max(now + cycles, self.spaced.get(kind, 0))
        for register, column in facts.reads:
            if of.read_reach[column] > 1 and not facts.operands >> register & 1:  # a scoreboard tells when late ones are read
                access = Access(now, column, None)
                if register in reads:
                    reads[register] = (*[a for a in reads[register] if now - a.time < of.read_reach[a.kind]], access)
                else:
                    reads[register] = (access,)
        for register, row in facts.writes:
            access = Access(now, row, guard)
            if guard is None or register not in writes:
                writes[register] = (access,)
            else:
                writes[register] = (*[a for a in writes[register] if now - a.time < of.write_reach[a.kind]], access)
            self.generations[register] = self.generations.get(register, 0) + 1

    def exit(self) -> Recent:
        """What matters behind the block."""
        of = self.latencies
        return Recent(
            later(self.writes, of.write_reach, self.clock, self.generations),
            later(self.reads, of.read_reach, self.clock, self.generations),
            {kind: time - self.clock for kind, time in self.spaced.items() if time > self.clock},
        )

    def behind(self, before: Recent) -> Recent:
        """What of `before` the block matters behind it."""
        of = self.latencies
        replaced = {register for line in self.block if self.effects[line].guard is None for register, _ in self.effects[line].writes}
        kept = {register: group for register, group in before.writes.items() if register not in replaced}
        return Recent(
            later(kept, of.write_reach, self.clock, self.generations),
            later(before.reads, of.read_reach, self.clock, self.generations),
            {kind: time - self.clock for kind, time in before.spaced.items() if time > self.clock},
        )
