"""Warps as their control codes make them run: a value that is read before it is there is the old one.

The machine does not check what a schedule promises, so this does the worst that the latencies of `sassir.machine` allow. A result
of fixed latency is seen by a reader after exactly the cycles of their cell. A result of variable latency comes only when its
scoreboard is waited for, and an instruction that reads late reads only then; instructions of one queue keep their order. With
a correct schedule the outcome is that of the untimed emulator; a broken one shows in the outputs. Not modelled: too short a
stall behind a branch, and stale operands of the operand cache.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from sassir.asm.control import SCOREBOARDS
from sassir.emulator.batch import Batch, Step
from sassir.emulator.facts import Facts, facts_of
from sassir.emulator.lanes import Array, Flags, LaneError, Lanes
from sassir.machine import Latency, Machine, machine

SIGNAL_TO_WAIT = 2
"""Cycles from an instruction that raises a scoreboard to the first one that sees it (Huerta et al., MICRO 2025)."""
DRAIN_CYCLES = 37
"""Cycles of stall count 0, at least (basalt-sass 1.0: 37 on sm_120; Huerta et al.: 45 on sm_86)."""


class _Version(NamedTuple):
    """A result of fixed latency on its way."""

    value: Array
    flags: Flags
    issued: int
    row: int


class _Late:
    """An instruction that reads its operands or writes its results at a time that only a scoreboard tells."""

    def __init__(self, facts: Facts, lanes: Lanes, operands: dict[int, tuple[Array, int]]) -> None:
        self.facts = facts
        self.lanes = lanes
        self.operands = operands
        """What each source held at issue, and how many writes of it had been issued: a later write may come before the read."""
        self.results: list[_Output] | None = None
        """None until the operands are read."""
        self.landed = False


class _Signal(NamedTuple):
    """One count of a scoreboard."""

    time: int
    results: bool
    """It falls when results are written; else when operands are read."""
    late: _Late


_Output = tuple[int, Array, Flags]
"""Slot, value, and the lanes that have it."""


class TimedBlock:
    """Runs the warps of one block, each by its own clock, in the order in which the flow gives them."""

    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        self._machine = machine(batch.kernel.arch)
        self._facts = [facts_of(batch, place, instruction, self._machine) for place, instruction in enumerate(batch.kernel.code)]
        self._warps: list[TimedWarp] = []

    def start(self) -> None:
        """A new block: nothing is under way."""
        self._warps = [TimedWarp(self._batch, self._machine) for _ in range(self._batch.warps)]

    def finish(self) -> None:
        """All that is under way happens."""
        for warp in self._warps:
            warp.finish()

    def steps(self) -> Sequence[Step]:
        """The instructions, to be run by whoever follows the flow."""
        return [lambda lanes, place=place: self._step(place, lanes) for place in range(len(self._facts))]

    def _step(self, place: int, lanes: Lanes) -> bool:
        """Each warp executes the instruction by itself."""
        going_on: list[Lanes] = []
        moved = False
        for number in np.flatnonzero(lanes.warps.flags):
            some = lanes if len(self._warps) == 1 else _only(lanes, int(number))
            if self._warps[number].issue(self._facts[place], some):
                moved = True
            else:
                going_on.append(some)
        if moved:
            for some in going_on:
                self._batch.flow.go(place + 1, some.flags)
        return moved


def _only(lanes: Lanes, warp: int) -> Lanes:
    flags = np.zeros_like(lanes.flags)
    flags[warp] = lanes.flags[warp]
    return Lanes(flags)


class TimedWarp:
    """What one warp has under way."""

    def __init__(self, batch: Batch, model: Machine) -> None:
        self._batch = batch
        self._machine = model
        self._reach = _reach(model)
        self._clock = 0
        self._versions: dict[int, list[_Version]] = {}
        self._counts: dict[int, int] = {}
        """How many writes of each register were issued."""
        self._late: list[_Late] = []
        self._signals: dict[int, list[_Signal]] = {i: [] for i in range(SCOREBOARDS)}
        """What each scoreboard counts, oldest first."""

    def finish(self) -> None:
        """All that is under way happens."""
        for late in [*self._late]:
            self._land(late)

    def issue(self, facts: Facts, lanes: Lanes) -> bool | None:
        """Execute an instruction at the time that the ones before leave for it. True when it sends the lanes somewhere else."""
        self._wait(facts)
        result = None
        if facts.guard is not None:
            slot, negated = facts.guard
            value = self._visible(slot, facts.timing.guard)
            lanes = lanes.where(~value if negated else value)
        if lanes.count:
            operands = {slot: (self._visible(slot, column), self._counts.get(slot, 0)) for slot, column in facts.reads}
            if facts.late:
                self._start_late(facts, lanes, operands)
            else:
                result, outputs = self._run(facts, lanes, {slot: value for slot, (value, _) in operands.items()})
                for (slot, row), (_, value, flags) in zip(facts.writes, outputs, strict=True):
                    self._add(slot, _Version(value, flags, self._clock, row), facts.guard is not None)
        self._clock += facts.control.stall or DRAIN_CYCLES
        return result

    def _wait(self, facts: Facts) -> None:
        """What the instruction waits for happens; a scoreboard raised a moment ago does not show yet."""
        for scoreboard, most in (*[(s, 0) for s in facts.control.wait], *facts.drain):
            raised = self._signals[scoreboard]
            over = [signal for signal in raised if self._clock - signal.time >= SIGNAL_TO_WAIT][: max(0, len(raised) - most)]
            self._signals[scoreboard] = [signal for signal in raised if signal not in over]
            for signal in over:
                (self._land if signal.results else self._read)(signal.late)
        if facts.closes_reads:
            for late in [late for late in self._late if late.facts.timing.queue is not None]:
                self._read(late)

    def _start_late(self, facts: Facts, lanes: Lanes, operands: dict[int, tuple[Array, int]]) -> None:
        late = _Late(facts, lanes, operands)
        self._late.append(late)
        for slot, _ in facts.writes:
            self._counts[slot] = self._counts.get(slot, 0) + 1
        if not facts.timing.reads_late:
            self._read(late)
        for scoreboard, results in ((facts.control.write, True), (facts.control.read, False)):
            if scoreboard is not None:
                self._signals[scoreboard].append(_Signal(self._clock, results, late))

    def _read(self, late: _Late) -> None:
        """The operands are read, after those of older instructions of the queue, and the instruction does its work."""
        if late.results is not None:
            return
        facts = late.facts
        for older in self._older(late, facts.timing.queue, lambda other: other.facts.timing.queue):
            self._read(older)
        values = {slot: value for slot, (value, _) in late.operands.items()}
        for slot, column in facts.reads:
            if slot in facts.late_reads and self._counts.get(slot, 0) != late.operands[slot][1]:
                values[slot] = self._visible(slot, column)
        try:
            _, late.results = self._run(facts, late.lanes, values)
        except LaneError as error:
            raise LaneError(f"`{facts.text}`, which was under way: {error}", error.lane) from error

    def _land(self, late: _Late) -> None:
        """The results are written, after those of older instructions whose results come the same way."""
        if late.landed:
            return
        late.landed = True
        for older in self._older(late, late.facts.timing.result_queue, lambda other: other.facts.timing.result_queue):
            self._land(older)
        self._read(late)
        for slot, value, flags in late.results or ():
            for version in self._versions.pop(slot, ()):
                self._settle(slot, version.value, version.flags)
            self._settle(slot, value, flags)
        self._late.remove(late)

    def _older(self, late: _Late, queue: str | None, queue_of: Callable[[_Late], str | None]) -> list[_Late]:
        """The instructions of a queue that were issued before."""
        if queue is None or late not in self._late:
            return []
        return [other for other in self._late[: self._late.index(late)] if queue_of(other) == queue]

    def _run(self, facts: Facts, lanes: Lanes, operands: dict[int, Array]) -> tuple[bool | None, list[_Output]]:
        """Execute an instruction on these operands; the registers keep what they hold, the results are given back."""
        values = self._batch.registers.values
        kept = {slot: values[slot] for slot in (*operands, *[slot for slot, _ in facts.writes])}
        for slot, value in operands.items():
            values[slot] = value
        result = facts.step(lanes)
        names = self._batch.registers.names
        outputs = [(slot, values[slot], (lanes.warps if names[slot].startswith("U") else lanes).flags) for slot, _ in facts.writes]
        for slot, value in kept.items():
            values[slot] = value
        return result, outputs

    def _visible(self, slot: int, column: int) -> Array:
        """What a reader finds that issues now."""
        versions = self._versions.get(slot)
        if versions:
            while versions and self._clock - versions[0].issued >= self._reach[versions[0].row]:
                self._settle(slot, versions[0].value, versions[0].flags)
                del versions[0]
        value = self._batch.registers.values[slot]
        for version in versions or ():
            if self._clock - version.issued >= _needed(self._machine.raw[version.row][column]):
                value = np.where(version.flags, version.value, value)
        return value

    def _add(self, slot: int, version: _Version, guarded: bool) -> None:
        """A result is on its way; one that is written too soon after another arrives before it."""
        versions = self._versions.setdefault(slot, [])
        matrix = self._machine.waw_guarded if guarded else self._machine.waw
        place = len(versions)
        while place and self._clock - versions[place - 1].issued < _needed(matrix[versions[place - 1].row][version.row]):
            place -= 1
        versions.insert(place, version)
        self._counts[slot] = self._counts.get(slot, 0) + 1

    def _settle(self, slot: int, value: Array, flags: Flags) -> None:
        values = self._batch.registers.values
        values[slot] = np.where(flags, value, values[slot])


@cache
def _reach(model: Machine) -> list[int]:
    """By row, the cycles after which every reader and every later writer finds such a write done."""
    return [max(cell.cycles for cell in (*raw, *waw)) for raw, waw in zip(model.raw, model.waw_guarded, strict=True)]


def _needed(latency: Latency) -> int:
    """The cycles that the hardware is known to need; a number that is only careful would condemn code that works."""
    return latency.cycles if latency.certain else 0
