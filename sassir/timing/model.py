"""From one warp to many: what the lines of a block, a loop or a kernel need of each unit, and what their warps wait for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import NormalDist
from typing import NamedTuple

from sassir.machine.hierarchy import SCHEDULERS, SECTOR, Hierarchy
from sassir.timing import reasons
from sassir.timing.network import Solution, Unit, solve
from sassir.timing.profile import Profile
from sassir.timing.warp import CONSTANT, LSU, Alone

ISSUE, SECOND, MEMORY, START = "issue", "L2", "DRAM", "block start"
_COMMON = frozenset({LSU, CONSTANT, SECOND, MEMORY})
"""What all warps of a multiprocessor have in common; the issue slot and the pipes are those of a scheduler."""
_THROTTLES = {ISSUE: reasons.NOT_SELECTED, CONSTANT: reasons.MIO, SECOND: reasons.MEMORY, MEMORY: reasons.MEMORY, START: reasons.LAUNCH}
BUSY = 0.8
"""A unit that is busy for this share of the time is what limits."""
Cycles = dict[str, float]


class Part(NamedTuple):
    """A basic block, a loop or the whole kernel."""

    name: str
    runs: float
    """How often a warp goes through it: executions of a block, iterations of a loop, 1 for the kernel."""
    alone: float
    """Cycles of one run, for one warp by itself."""
    resident: float
    """Cycles of one run, for each warp, when all resident warps are under way."""
    utilisation: Cycles
    """Share of that time in which a unit is busy, 0 to 1; of a block its part in that of the kernel."""
    stalls: Cycles
    """Cycles of one run by reason; their sum is `resident`."""
    bound: str
    """What limits it: a unit, or `latency`."""


class Model:
    """One kernel with one profile, `resident` warps of it on a multiprocessor, `block` warps in a block."""

    def __init__(self, alone: Alone, profile: Profile, hierarchy: Hierarchy, resident: float, block: int) -> None:
        self.alone, self.profile, self.hierarchy = alone, profile, hierarchy
        self.resident, self.block = resident, block
        self.lines = range(len(alone.lines))
        self.needs = self._needs(self.lines)
        self.cycles = sum(self._stalls(self.lines).values())
        """Of one warp by itself."""

    def whole(self) -> tuple[Part, Solution]:
        """The kernel: blocks that follow each other."""
        solution = self.blocks(self.resident)
        waiting = dict(solution.waiting)
        waiting[START] += solution.cycles - self.cycles - sum(waiting.values())  # the start itself, and the last warp of a block
        part = self._part("kernel", self.lines, 1.0, waiting)
        return part._replace(utilisation=solution.utilisation, bound=_bound(solution.utilisation)), solution

    def blocks(self, resident: float) -> Solution:
        """The time from the start of a block to the start of the next in its place, with so many warps resident."""
        overheads = self.hierarchy.overheads
        units = self._units(self.needs, resident)
        units[START] = Unit(overheads.block_interval, resident / self.block)
        return solve(self.cycles + overheads.block_start, units, overheads.skew * _largest(self.block))

    def loop(self, name: str, lines: Sequence[int], runs: float) -> Part:
        """The iterations of a loop in their steady state: all resident warps are in it."""
        solution = solve(sum(self._stalls(lines).values()), self._units(self._needs(lines), self.resident))
        return self._part(name, lines, runs, solution.waiting)

    def piece(self, name: str, lines: Sequence[int], runs: float, solution: Solution) -> Part:
        """A block within the kernel, whose `solution` it is: the wait for a unit goes to the lines that need it."""
        needs = self._needs(lines)
        shares = {unit: cycles / self.needs[unit] for unit, cycles in needs.items() if cycles}
        waiting = {unit: solution.waiting[unit] * share for unit, share in shares.items()}
        busy = {unit: solution.utilisation[unit] * share for unit, share in shares.items()}
        most = max(busy, key=lambda unit: busy[unit])
        bound = most if solution.utilisation[most] >= BUSY else "latency"
        return self._part(name, lines, runs, waiting)._replace(utilisation=busy, bound=bound)

    def places(self, most: int = 10) -> list[tuple[int, str, float, int | None]]:
        """The longest waits of one warp in all executions: line, reason, cycles, the line that is waited for."""
        found = [
            (line, stall.reason, stall.cycles * often, stall.cause)
            for line, often in enumerate(self.profile.executions)
            for stall in self.alone.lines[line]
            if often and stall.reason not in (reasons.SELECTED, reasons.WAIT)
        ]
        return sorted(found, key=lambda place: -place[2])[:most]

    def _part(self, name: str, lines: Sequence[int], runs: float, waiting: Mapping[str, float]) -> Part:
        stalls, needs = self._stalls(lines), self._needs(lines)
        alone = sum(stalls.values())
        cycles = alone + sum(waiting.values())
        for unit, time in waiting.items():
            reason = self._throttle(unit, lines)
            stalls[reason] = stalls.get(reason, 0.0) + time
        busy = {unit: need.cycles * need.sharers / cycles for unit, need in self._units(needs, self.resident).items()}
        ordered = {reason: time / runs for reason, time in sorted(stalls.items(), key=lambda item: -item[1]) if time}
        return Part(name, runs, alone / runs, cycles / runs, busy, ordered, _bound(busy))

    def _stalls(self, lines: Iterable[int]) -> Cycles:
        """Cycles by reason of one warp by itself, the slowest of its block, in all executions."""
        total: Cycles = {}
        for line in lines:
            often = self.profile.slowest[line]
            for stall in self.alone.lines[line] if often else ():
                total[stall.reason] = total.get(stall.reason, 0.0) + often * stall.cycles
        return total

    def _needs(self, lines: Iterable[int]) -> Cycles:
        """Cycles by unit that one warp needs in all executions."""
        needs: Cycles = {}
        for line in lines:
            often = self.profile.executions[line]
            for unit, cycles in self._line(line) if often else ():
                needs[unit] = needs.get(unit, 0.0) + often * cycles
        return needs

    def _line(self, line: int) -> Iterable[tuple[str, float]]:
        """What one execution needs."""
        work, traffic = self.alone.work[line], self.profile.traffic.get(line)
        yield ISSUE, work.reading
        yield (work.unit, work.passes) if work.unit else (work.pipe, work.interval)
        if traffic is not None and traffic.sectors:
            moved = traffic.sectors * SECTOR
            yield SECOND, moved / self.hierarchy.second_rate
            yield MEMORY, moved * traffic.memory / self.hierarchy.memory_rate

    def _units(self, needs: Cycles, resident: float) -> dict[str, Unit]:
        return {unit: Unit(cycles, max(1.0, resident if unit in _COMMON else resident / SCHEDULERS)) for unit, cycles in needs.items()}

    def _throttle(self, unit: str, lines: Iterable[int]) -> str:
        """The name of waiting for other warps at a unit."""
        if unit != LSU:
            return _THROTTLES.get(unit, reasons.MATH)
        far = near = 0.0
        for line in lines:
            work = self.alone.work[line]
            if work.unit == LSU:
                cycles = self.profile.executions[line] * work.passes
                far, near = (far + cycles, near) if work.reason == reasons.LONG else (far, near + cycles)
        return reasons.LG if far > near else reasons.MIO


def _largest(count: int) -> float:
    """The expected largest of `count` normal deviates (Blom, 1958)."""
    return NormalDist().inv_cdf((count - 0.375) / (count + 0.25)) if count > 1 else 0.0


def _bound(busy: Mapping[str, float]) -> str:
    """The busiest unit, if it is busy most of the time."""
    busiest = max(busy, key=lambda unit: busy[unit], default="latency")
    return busiest if busy.get(busiest, 0.0) >= BUSY else "latency"
