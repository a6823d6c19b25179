"""Choose the scoreboards: which late instructions signal their results and operands, and on which of the six.

Two that share a scoreboard are awaited together. The choice is greedy in the order of the code: the scoreboard where
sharing costs the fewest cycles, by issue times and expected latencies. It goes over the code twice, so that the second
time what is under way at the end of a loop is known at its start.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from sassir.asm.control import SCOREBOARDS
from sassir.schedule.code import Code
from sassir.schedule.effects import Effects
from sassir.schedule.needs import ELSEWHERE, NOWHERE, find_needs

_SLOW, _QUICK = 100, 1
"""Results that take more cycles leave so many scoreboards free for what is quick."""
_LOOK_AHEAD = 64
"""Lines of a block in which a first wait is looked for."""
FAR = 1 << 20
"""A time that is not reached."""


class Signals(NamedTuple):
    """The scoreboards that a line raises."""

    write: int | None = None
    read: int | None = None


class Board(NamedTuple):
    """What a scoreboard has to tell. Times count from the start of the block."""

    ready: int
    """When it will be clear."""
    needed: int
    """When something waits for it first."""
    results: int = 0
    operands: int = 0
    """The registers whose end it tells."""
    queue: str | None = None
    """The queue of what signals it; None if there is more than one."""
    reading: str | None = None
    """The queue of those whose operands it tells of; None if there is more than one."""
    youngest: int = 0
    """When the last that signals it issued."""

    @property
    def used(self) -> bool:
        """It is not clear."""
        return bool(self.results | self.operands)

    def needed_by(self, facts: Effects) -> bool:
        """An instruction waits for it. What goes through the same queue cannot overwrite operands too early."""
        in_order = facts.results if self.reading is not None and self.reading == facts.kind.timing.queue else 0
        return bool(self.results & facts.touched or self.operands & facts.written & ~in_order)

    def and_also(self, other: Board) -> Board:
        """Shared with what `other` tells."""
        if not self.used:
            return other
        reading = {board.reading for board in (self, other) if board.operands}
        return Board(
            max(self.ready, other.ready),
            min(self.needed, other.needed),
            self.results | other.results,
            self.operands | other.operands,
            self.queue if self.queue == other.queue else None,
            reading.pop() if len(reading) == 1 else None,
            max(self.youngest, other.youngest),
        )

    def later(self, cycles: int) -> Board:
        """With times counted from so many cycles later."""
        return self._replace(ready=self.ready - cycles, needed=self.needed - cycles, youngest=self.youngest - cycles)


_CLEAR = Board(0, FAR)
_NO_SIGNALS = Signals()


def choose_scoreboards(code: Code, stalls: Sequence[int]) -> list[Signals]:
    """The signals of every line."""
    chooser = _Chooser(code, stalls)
    for _ in range(2):
        for b in code.cfg.order:
            chooser.choose_in(b)
    return chooser.signals


class _Chooser:
    def __init__(self, code: Code, stalls: Sequence[int]) -> None:
        self.code, self.needs = code, find_needs(code)
        self.times = [0, *accumulate(stalls)]
        """When each line would issue if nothing waited, counted over all blocks."""
        self.signals = [_NO_SIGNALS] * len(code.effects)
        counted = sorted({e.kind.counted for e in code.effects if e.kind.counted is not None})
        self.group = counted[0] if counted and any([e.kind.group_field for e in code.effects]) else None
        """The scoreboard of groups of asynchronous copies, which nothing else shares: DEPBAR counts its signals."""
        self.shared = [s for s in range(SCOREBOARDS) if s != self.group]
        self.exits = [[_CLEAR] * SCOREBOARDS for _ in code.blocks]

    def choose_in(self, b: int) -> None:
        """Choose for one block."""
        effects, block, times = self.code.effects, self.code.blocks[b], self.times
        boards = self._entry(b)
        watched = _watched(boards)
        waited = -times[block.start]
        for line in block:
            facts = effects[line]
            if watched & facts.touched:
                for s in self.shared:
                    if boards[s].needed_by(facts):
                        waited = max(waited, boards[s].ready - times[line])
                        _clear(boards, s)
                watched = _watched(boards)
            if line in self.needs or facts.kind.group_field is not None:
                self.signals[line] = self._signals(b, line, boards, times[line] + waited)
                watched = _watched(boards)
        end = times[block.stop] + waited
        self.exits[b] = [board.later(end) if board.used else _CLEAR for board in boards]

    def _entry(self, b: int) -> list[Board]:
        """What is under way at the start of a block."""
        boards = [_CLEAR] * SCOREBOARDS
        for p in self.code.cfg.predecessors[b]:
            for s, left in enumerate(self.exits[p]):
                if left.used:
                    boards[s] = boards[s].and_also(left)
        return [board._replace(needed=self._first_need(b, board)) if board.used else _CLEAR for board in boards]

    def _first_need(self, b: int, board: Board) -> int:
        """When a block, which starts at 0, waits for a scoreboard first; FAR if it does not soon."""
        block = self.code.blocks[b]
        for line in block[:_LOOK_AHEAD]:
            if board.needed_by(self.code.effects[line]):
                return self.times[line] - self.times[block.start]
        return FAR

    def _signals(self, b: int, line: int, boards: list[Board], now: int) -> Signals:
        facts = self.code.effects[line]
        kind = facts.kind
        if kind.group_field is not None:
            return Signals(**{kind.group_field: self.group})
        needs = self.needs[line]
        end = read = None
        if needs.results != NOWHERE:
            new = Board(now + kind.latency, FAR, facts.results, 0, kind.timing.queue, None, now)
            end = self._share(boards, self._with_need(b, line, needs.results, new))
        if needs.operands != NOWHERE:
            new = Board(now + kind.operand_cycles, FAR, 0, facts.operands, kind.timing.queue, kind.timing.queue, now)
            read = self._share(boards, self._with_need(b, line, needs.operands, new))
        return Signals(end, read) if kind.result_field == "write" else Signals(None, end)

    def _with_need(self, b: int, line: int, need: int, new: Board) -> Board:
        """A new signal of `line` with the time when something waits for it first."""
        if need != ELSEWHERE:
            return new._replace(needed=new.youngest + self.times[need] - self.times[line])
        beyond = min([self._first_need(s, new) for s in self.code.cfg.successors[b]], default=FAR)
        return new._replace(needed=new.youngest + self.times[self.code.blocks[b].stop] - self.times[line] + beyond)

    def _share(self, boards: list[Board], new: Board) -> int:
        """Put a signal on the scoreboard where it costs the fewest cycles, one with the same first wait before a clear one."""

        def cost(s: int) -> tuple[int, int]:
            board = boards[s]
            if not board.used:
                return 0, 1
            alike = bool(board.results) == bool(new.results)  # operands are read long before results are there
            if board.needed == new.needed and (alike or new.needed < FAR):
                return 0, 0
            others = max(0, new.ready - max(board.needed, board.ready))
            own = max(0, board.ready - max(new.needed, new.ready))
            return others + own, 2

        slow = [s for s in self.shared if boards[s].results and boards[s].ready - new.youngest > _SLOW]
        keeps_free = new.results and new.ready - new.youngest > _SLOW and len(slow) >= len(self.shared) - _QUICK
        s = min(slow if keeps_free else self.shared, key=cost)
        boards[s] = boards[s].and_also(new)
        return s


def _clear(boards: list[Board], s: int) -> None:
    """Scoreboard `s` has been awaited; what its queue had to read before has been read as well."""
    done = boards[s]
    boards[s] = _CLEAR
    for other, board in enumerate(boards):
        if board.operands and board.reading is not None and board.reading == done.queue and board.youngest <= done.youngest:
            boards[other] = board._replace(operands=0) if board.results else _CLEAR


def _watched(boards: Sequence[Board]) -> int:
    """The registers whose end some scoreboard tells."""
    registers = 0
    for board in boards:
        registers |= board.results | board.operands
    return registers
