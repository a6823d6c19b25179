"""One warp by itself: when each line issues, and what it waits for.

Control codes say all that the hardware obeys (stall counts, scoreboards), so no dependence is looked at again: a walk over each
block with the times at which its scoreboards become clear. A block is entered as its most frequent predecessor leaves it; after
three rounds a loop is in its steady state.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from sassir.analysis.cfg import Cfg
from sassir.asm.instruction import Instruction
from sassir.dialect.read_slots import read_slots
from sassir.dialect.registers import R
from sassir.machine import Machine
from sassir.machine.costs import Cost, product_cycles
from sassir.machine.hierarchy import Hierarchy
from sassir.machine.register_file import Read, RegisterFile
from sassir.machine.scoreboards import SIGNAL_DISTANCE
from sassir.timing import reasons
from sassir.timing.profile import Profile, Traffic
from sassir.translate.flow import Flow
from sassir.verify.schedule.accesses import WARPGROUP, Accesses, find_accesses
from sassir.verify.schedule.rules import DRAIN_CYCLES

ROUNDS = 3
LSU, CONSTANT = "lsu", "constant cache"
"""Units of the multiprocessor, where instructions queue up behind their issue."""
_BRANCHES = frozenset({"BRA", "BREAK", "BRX", "BRXU", "BSYNC", "CALL", "JMP", "RET"})
_FAR = frozenset({"ATOM", "ATOMG", "LD", "LDG", "LDGSTS", "LDL", "RED", "REDG", "ST", "STG", "STL"})
_NO_TRAFFIC = Traffic(1.0, 0.0, 0.0, 0.0)


class Stall(NamedTuple):
    """Cycles that a line waits before it issues, or issues in."""

    reason: str
    cycles: float
    cause: int | None
    """The line that is waited for; None where there is none."""


class Work(NamedTuple):
    """What is known of one line before any clock runs."""

    stall: int
    waits: tuple[int, ...]
    drain: tuple[tuple[int, int], ...]
    signals: tuple[tuple[int, float], ...]
    """Scoreboards (`WARPGROUP` for a group of products), each with the cycles until it is told."""
    reason: str
    """Of those who wait for these signals."""
    pipe: str
    interval: float
    """Cycles of that pipe."""
    reading: float
    """Cycles in which the register file gives its operands; nothing else issues in the meantime."""
    unit: str
    """The unit of the multiprocessor that it queues up for behind its issue; empty for others."""
    passes: float
    """Cycles of that unit."""
    extra: tuple[str, float]
    """What it waits on top of the stall count: at a barrier, for the target of a branch."""


class State(NamedTuple):
    """What is under way at the end of a block; times count from there."""

    boards: Mapping[int, tuple[tuple[float, str, int], ...]]
    """By scoreboard: when each of its signals is told, the reason to wait for it, and the line it is of; in order of time."""
    pipes: Mapping[str, tuple[float, int]]
    """When a pipe is free, and the line that has it."""
    gap: tuple[Stall, ...]
    """What the last line makes the next one wait."""


_QUIET = State({}, {}, ())


class Alone(NamedTuple):
    """The times of one warp."""

    lines: Sequence[tuple[Stall, ...]]
    """By line: what it waits for before it issues, the cycle in which it issues included."""
    work: Sequence[Work]

    def cycles(self, line: int) -> float:
        """From the issue of the line before to its own."""
        return sum([stall.cycles for stall in self.lines[line]])


def walk(code: Sequence[Instruction], flow: Flow, cfg: Cfg, machine: Machine, hierarchy: Hierarchy, profile: Profile) -> Alone:
    """The times of one warp that has the multiprocessor to itself."""
    facts = list(find_accesses(code, flow.shapes, machine))
    reading = list(reading_cycles(code, flow, machine))
    work = [_work(i, f, machine, hierarchy, profile.traffic.get(n), reading[n]) for n, (i, f) in enumerate(zip(code, facts, strict=True))]
    lines: list[tuple[Stall, ...]] = [()] * len(code)
    ends: dict[int, State] = {}
    often = [profile.executions[block[-1]] if block else 0.0 for block in flow.blocks]
    for _ in range(ROUNDS):
        for b in cfg.order:
            before = max([p for p in cfg.predecessors[b] if p in ends], key=lambda p: often[p], default=None)
            ends[b] = _Walk(work, lines, _QUIET if before is None else ends[before]).run(flow.blocks[b])
    return Alone(lines, work)


def _work(instruction: Instruction, facts: Accesses, machine: Machine, hierarchy: Hierarchy, traffic: Traffic | None, reading: int) -> Work:
    control, timing = instruction.control, machine.timing(instruction)
    cost = machine.cost(instruction)
    moved = traffic or _NO_TRAFFIC
    far = instruction.mnemonic in _FAR
    queued = (moved.passes - 1) + _beyond(moved, cost, hierarchy)
    ends = (control.read, float(cost.read)), (control.write, cost.result + queued)
    signals = [(scoreboard, max(cycles, SIGNAL_DISTANCE)) for scoreboard, cycles in ends if scoreboard is not None]
    interval = float(timing.issue)
    if facts.product:
        interval = product_cycles(instruction.modifiers)
        signals += [(WARPGROUP, interval + cost.result)] if facts.closes else []
    extra = reasons.WAIT, 0.0
    if instruction.mnemonic == "BAR" and "ARV" not in instruction.modifiers:
        extra = reasons.BARRIER, float(cost.result)
    elif instruction.mnemonic in _BRANCHES:
        extra = reasons.BRANCH, hierarchy.overheads.branch
    unit = CONSTANT if instruction.mnemonic == "LDC" else LSU if timing.pipe == LSU else ""
    passes = moved.passes * (hierarchy.overheads.constant if unit == CONSTANT else 1.0)
    reason = reasons.GMMA if facts.product else reasons.LONG if far or timing.pipe == "tex" else reasons.SHORT
    return Work(
        control.stall or DRAIN_CYCLES,
        control.wait,
        facts.drain,
        tuple(signals),
        reason,
        timing.pipe,
        interval,
        float(reading),
        unit,
        passes,
        extra,
    )


def reading_cycles(code: Sequence[Instruction], flow: Flow, machine: Machine) -> Iterator[int]:
    """By line, the cycles in which the register file gives the operands; 1 for what reads them at a later time."""
    starts = {block.start for block in flow.blocks}
    file = RegisterFile()
    for line, (instruction, shape) in enumerate(zip(code, flow.shapes, strict=True)):
        if line in starts:
            file = RegisterFile()
        if shape.problem is not None or machine.timing(instruction).sensitive:
            yield 1
            continue
        yield file.cycles(
            [
                Read(slot, register - R.FIRST, kept)
                for slot, first, width, kept in read_slots(shape.template)
                for register in shape.reads[first : first + width]
            ]
        )


def _beyond(traffic: Traffic, cost: Cost, hierarchy: Hierarchy) -> float:
    """Cycles longer than a hit in the first level."""
    second, memory = hierarchy.second_latency - cost.result, hierarchy.memory_latency - cost.result
    return traffic.missed * max(0.0, second + traffic.memory * (memory - second))


class _Walk:
    """One walk through one block."""

    def __init__(self, work: Sequence[Work], lines: list[tuple[Stall, ...]], entry: State) -> None:
        self.work, self.lines = work, lines
        self.boards = {s: list(signals) for s, signals in entry.boards.items()}
        self.pipes = dict(entry.pipes)
        self.gap = entry.gap
        self.now = 0.0
        """The cycle after the newest line issued; 0 at the start of the block."""

    def run(self, block: range) -> State:
        """Set the times of the lines of a block; the state at its end."""
        for line in block:
            self._issue(line)
        now = self.now
        boards = {s: tuple([(t - now, r, c) for t, r, c in signals if t > now]) for s, signals in self.boards.items()}
        pipes = {pipe: (free - now, line) for pipe, (free, line) in self.pipes.items() if free > now}
        return State({s: signals for s, signals in boards.items() if signals}, pipes, self.gap)

    def _issue(self, line: int) -> None:
        work = self.work[line]
        stalls = list(self.gap)
        now = self.now + sum([stall.cycles for stall in stalls])
        free, user = self.pipes.get(work.unit or work.pipe, (0.0, line))
        if free > now and not work.unit:
            stalls.append(Stall(reasons.MATH, free - now, user))
            now = free
        for scoreboard, most in (*[(s, 0) for s in work.waits], *work.drain):
            signals = self.boards.get(scoreboard, [])
            if len(signals) > most:
                end, reason, cause = signals[len(signals) - 1 - most]
                if end > now:
                    stalls.append(Stall(reason, end - now, cause))
                    now = end
        self.now = now + 1
        self.lines[line] = (*stalls, Stall(reasons.SELECTED, 1.0, None))
        start = max(now, free)
        self.pipes[work.unit or work.pipe] = start + (work.passes if work.unit else work.interval), line
        for scoreboard, cycles in work.signals:
            told = (start + cycles, work.reason, line)
            self.boards[scoreboard] = sorted([s for s in [*self.boards.get(scoreboard, []), told] if s[0] > now])
        self.gap = self._gap(work, line)

    def _gap(self, work: Work, line: int) -> tuple[Stall, ...]:
        """What comes between the cycle in which this line issues and the next line."""
        reason, extra = work.extra
        dispatch = max(0.0, work.reading - work.stall)
        gap = [Stall(reasons.WAIT, work.stall - 1, line), Stall(reasons.DISPATCH, dispatch, line), Stall(reason, extra, line)]
        return tuple([stall for stall in gap if stall.cycles > 0])
