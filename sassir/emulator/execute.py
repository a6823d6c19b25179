"""Following the lanes of a batch of blocks from group to group to their end, and saying where something went wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from sassir.asm.instruction import INSTRUCTION_BYTES
from sassir.emulator.batch import Batch, Step
from sassir.emulator.lanes import LANES, LaneError, Lanes, SuspicionError
from sassir.emulator.timed import TimedBlock
from sassir.errors import EmulationError


@dataclass
class Counts:
    """What was executed, guards that do not hold included."""

    instructions: int = 0
    """Of groups of lanes that go together."""
    thread_instructions: int = 0


def execute(batch: Batch, code: Sequence[Step], counts: Counts, timed: TimedBlock | None = None) -> None:
    """Run the blocks of a started batch to their end. Raises EmulationError."""
    flow, last, executed, place = batch.flow, len(code), 0, 0
    if timed is not None:
        timed.start()
    try:
        while flow.ready:
            start, meets, lanes = flow.next()
            end = last if meets is None else meets
            for place in range(start, end):
                if code[place](lanes):
                    break
            else:
                if end == last:
                    raise LaneError("the kernel goes on behind its last instruction", int(lanes.numbers[0]))
                flow.go(end, lanes.flags)
            executed += place - start + 1
            counts.thread_instructions += (place - start + 1) * lanes.count
            if executed > batch.checks.steps:
                raise LaneError(f"no end after {executed} instructions: an endless loop?", int(lanes.numbers[0]))
        if timed is not None:
            timed.finish()
    except LaneError as error:
        raise EmulationError(f"{_where(batch, place, error.lane)}: {error}") from error
    counts.instructions += executed
    if flow.everyone.count:
        raise EmulationError(f"kernel {batch.kernel.name}: {_deadlock(batch)}")


def tolerant(batch: Batch, place: int, step: Step, warn: Callable[[str], None]) -> Step:
    """The step, which goes on where something is suspicious, after a warning: one for each instruction."""
    warned = False

    def run(lanes: Lanes) -> bool | None:
        nonlocal warned
        try:
            return step(lanes)
        except SuspicionError as error:
            if not warned:
                warn(f"{_where(batch, place, error.lane)}: {error}")
                warned = True
            batch.set_strict(False)
            try:
                return step(lanes)
            finally:
                batch.set_strict(True)

    return run


def _where(batch: Batch, place: int, lane: int | None) -> str:
    text = f"kernel {batch.kernel.name}, {_at(batch, place)}, `{batch.kernel.code[place].text}`"
    return text if lane is None else f"{text}, {_thread(batch, lane)}"


def _at(batch: Batch, place: int) -> str:
    section = batch.kernel.stretches.of(place)
    offset = f"{INSTRUCTION_BYTES * (place - section.start):#x}"
    return offset if not section.start else f"function {section.name}, {offset}"


def _thread(batch: Batch, lane: int) -> str:
    x, y, _ = batch.launch.block
    gx, gy, _ = batch.launch.grid
    thread, block = int(batch.threads.reshape(-1)[lane]), int(batch.blocks[lane // LANES, 0])
    return f"block ({block % gx}, {block // gx % gy}, {block // (gx * gy)}) thread ({thread % x}, {thread // x % y}, {thread // (x * y)})"


def _deadlock(batch: Batch) -> str:
    """Who waits where, and for ever."""
    named = [(f"barrier {n}", b.waiting) for n, b in batch.flow.barriers.items()]
    named += [(name, c.waiting) for name, c in batch.flow.convergence.items()]
    name, (place, lanes) = next((name, next(iter(waiting.items()))) for name, waiting in named if waiting)
    where = f"{_at(batch, place - 1)} `{batch.kernel.code[place - 1].text}`"
    first = _thread(batch, int(np.flatnonzero(lanes)[0]))
    return f"deadlock: {int(lanes.sum())} threads wait for {name} at {where}, the first is {first}; the others never come"
