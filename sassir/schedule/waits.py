"""Find the scoreboards that each line must wait for, on every path to it.

Forward over the control-flow graph: sets of registers whose late accesses are under way, by the events that tell their
end. A set that reaches a block on one path is there for all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sassir.schedule.code import Code
from sassir.schedule.effects import Effects
from sassir.schedule.scoreboards import Signals

ALL = (1 << 6) - 1


class Event(NamedTuple):
    """What tells the end of late accesses."""

    results: bool
    """Of results; else of operands."""
    queue: str | None
    """The queue that keeps them in order: what tells the end of a younger member tells theirs."""
    boards: int
    """The scoreboards that tell it, as bits; one of them is enough."""
    guard: tuple[int, bool] | None
    """The guard of the accesses, as long as its predicate keeps the value; results that no thread writes need no wait."""


Underway = dict[Event, int]
"""Registers, as bits, by event."""


class Waits:
    """The state of finding waits for one kernel."""

    def __init__(self, code: Code, signals: Sequence[Signals]) -> None:
        self.code, self.signals = code, signals
        self.masks = [0] * len(code.effects)

    def run(self) -> list[int]:
        """The wait mask of every line."""
        cfg = self.code.cfg
        entries: list[Underway] = [{} for _ in self.code.blocks]
        waiting = set(cfg.order)
        while waiting:
            for b in cfg.order:
                if b not in waiting:
                    continue
                waiting.discard(b)
                after = self._pass(b, dict(entries[b]))
                for s in cfg.successors[b]:
                    if _join(entries[s], after):
                        waiting.add(s)
        return self.masks

    def _pass(self, b: int, underway: Underway) -> Underway:
        block = self.code.blocks[b]
        for line in block:
            facts = self.code.effects[line]
            mask = _needed(underway, facts) if underway else 0
            if line == block[-1] and b in self.code.leaving:
                mask = sum({1 << s for event in underway for s in range(6) if event.boards >> s & 1})
            self.masks[line] = mask
            if mask:
                underway = {event: registers for event, registers in underway.items() if not event.boards & mask}
            self._start(underway, facts, self.signals[line])
        return underway

    def _start(self, underway: Underway, facts: Effects, signals: Signals) -> None:
        """What begins with a line, and what its signals will tell of older ones."""
        write = 0 if signals.write is None else 1 << signals.write
        read = 0 if signals.read is None else 1 << signals.read
        timing = facts.timing
        for event, registers in list(underway.items()):
            told = event.boards
            if event.results and event.queue is not None and event.queue == timing.result_queue:
                told |= write
            elif not event.results and event.queue is not None and event.queue == timing.queue:
                told |= write | read
            guard = None if event.guard is not None and facts.written >> event.guard[0] & 1 else event.guard
            if told != event.boards or guard is not event.guard:
                del underway[event]
                new = event._replace(boards=told, guard=guard)
                underway[new] = underway.get(new, 0) | registers
        guard = None if facts.guard is not None and facts.written >> facts.guard[0] & 1 else facts.guard
        if facts.results and not timing.group and write | read:
            event = Event(True, timing.result_queue, write or read, guard)
            underway[event] = underway.get(event, 0) | facts.results
        if facts.operands:
            event = Event(False, timing.queue, write | read, guard)
            underway[event] = underway.get(event, 0) | facts.operands


def _needed(underway: Underway, facts: Effects) -> int:
    """The scoreboards to wait for before a line with these effects."""
    mask = 0
    choices: list[int] = []
    for event, registers in underway.items():
        in_order = event.queue is not None and event.queue == (facts.timing.result_queue if event.results else facts.timing.queue)
        reached = facts.written & ~facts.results if in_order else facts.written
        if event.results:
            reached |= facts.read
        if registers & reached and not _exclusive(event.guard, facts.guard) and event.boards:
            if event.boards & event.boards - 1:
                choices.append(event.boards)
            else:
                mask |= event.boards
    for boards in choices:
        if not boards & mask:
            mask |= boards & -boards
    return mask


def _exclusive(first: tuple[int, bool] | None, second: tuple[int, bool] | None) -> bool:
    """No thread meets both guards."""
    return first is not None and second is not None and first[0] == second[0] and first[1] != second[1]


def _join(known: Underway, new: Underway) -> bool:
    changed = False
    for event, registers in new.items():
        before = known.get(event, 0)
        if registers & ~before:
            known[event] = before | registers
            changed = True
    return changed
