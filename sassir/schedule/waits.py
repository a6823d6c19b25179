"""Find the scoreboards that each line must wait for, on every path to it.

Forward over the control-flow graph: sets of registers whose late accesses are under way, by the events that tell their
end. What is under way on one path to a block is under way there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sassir.schedule.code import Code
from sassir.schedule.effects import Effects
from sassir.schedule.scoreboards import Signals


class Event(NamedTuple):
    """What tells the end of late accesses."""

    results: bool
    """Of results; else of operands."""
    queue: str | None
    """The queue that keeps them in order: what tells the end of a younger member tells theirs."""
    boards: int
    """The scoreboards that tell it, as bits; one of them is enough."""
    first: int
    """The one that tells it first, as far as known."""
    guard: tuple[int, bool] | None
    """The guard of the accesses, as long as its predicate keeps the value: threads that fail it did not start them."""


Underway = dict[Event, int]
"""Registers, as bits, by event."""


def find_waits(code: Code, signals: Sequence[Signals]) -> list[int]:
    """The wait mask of every line, as bits."""
    masks = [0] * len(code.effects)
    entries: list[Underway] = [{} for _ in code.blocks]
    waiting = set(code.cfg.order)
    while waiting:
        for b in code.cfg.order:
            if b in waiting:
                waiting.discard(b)
                after = _walk(code, b, dict(entries[b]), signals, masks)
                waiting.update([s for s in code.cfg.successors[b] if _join(entries[s], after)])
    return masks


def _walk(code: Code, b: int, underway: Underway, signals: Sequence[Signals], masks: list[int]) -> Underway:
    """Find the waits of a block; what is under way behind it."""
    block = code.blocks[b]
    for line in block:
        facts = code.effects[line]
        masks[line] = 0
        if underway:
            masks[line] = _all(underway) if line == block[-1] and b in code.leaving else _needed(underway, facts)
            if masks[line]:
                underway = {event: registers for event, registers in underway.items() if not event.boards & masks[line]}
            if facts.written and any([e.guard is not None and facts.written >> e.guard[0] & 1 for e in underway]):
                underway = _forget_guards(underway, facts.written)
        write, read = [0 if s is None else 1 << s for s in signals[line]]
        if underway and write | read:
            underway = _told(underway, facts, write, read)
        guard = None if facts.guard is None or facts.written >> facts.guard[0] & 1 else facts.guard
        if facts.results and write | read and not facts.kind.timing.group:
            _add(underway, Event(True, facts.kind.timing.result_queue, write or read, write or read, guard), facts.results)
        if facts.operands:
            _add(underway, Event(False, facts.kind.timing.queue, write | read, read or write, guard), facts.operands)
    return underway


def _add(underway: Underway, event: Event, registers: int) -> None:
    underway[event] = underway.get(event, 0) | registers


def _told(underway: Underway, facts: Effects, write: int, read: int) -> Underway:
    """The signals of a line tell the end of what is older in its queues too."""
    timing, after = facts.kind.timing, Underway()
    for event, registers in underway.items():
        if event.queue is not None and event.queue == (timing.result_queue if event.results else timing.queue):
            more = write | (0 if event.results else read)
            event = event._replace(boards=event.boards | more, first=event.first or more & -more)
        _add(after, event, registers)
    return after


def _forget_guards(underway: Underway, written: int) -> Underway:
    """A predicate that is written says nothing about older guards any more."""
    after = Underway()
    for event, registers in underway.items():
        stale = event.guard is not None and written >> event.guard[0] & 1
        _add(after, event._replace(guard=None) if stale else event, registers)
    return after


def _needed(underway: Underway, facts: Effects) -> int:
    """The scoreboards to wait for before a line with these effects."""
    mask = 0
    choices: list[Event] = []
    for event, registers in underway.items():
        if not registers & facts.touched or not event.boards or _exclusive(event.guard, facts.guard):
            continue
        timing = facts.kind.timing
        in_order = event.queue is not None and event.queue == (timing.result_queue if event.results else timing.queue)
        reached = facts.written & ~facts.results if in_order else facts.written
        if registers & (reached | facts.read if event.results else reached):
            choices.append(event)
    for event in sorted(choices, key=lambda event: event.boards.bit_count()):
        if not event.boards & mask:
            mask |= event.first
    return mask


def _all(underway: Underway) -> int:
    """Everything."""
    mask = 0
    for event in underway:
        mask |= event.boards
    return mask


def _exclusive(first: tuple[int, bool] | None, second: tuple[int, bool] | None) -> bool:
    """No thread meets both guards."""
    return first is not None and second is not None and first[0] == second[0] and first[1] != second[1]


def _join(known: Underway, new: Underway) -> bool:
    """Take in what is under way on another path; False if that changes nothing."""
    changed = False
    for event, registers in new.items():
        before = known.get(event, 0)
        if registers & ~before:
            known[event] = before | registers
            changed = True
    return changed
