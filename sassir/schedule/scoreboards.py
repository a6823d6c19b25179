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
from sassir.schedule.needs import ELSEWHERE, NOWHERE, find_needs

OPERAND_CYCLES = 12
"""Cycles until a late instruction has read its operands (Huerta et al., MICRO 2025, table 2: 9 to 20 on Ampere)."""
_LOOK_AHEAD = 64
"""Lines of a block in which a first wait is looked for."""
FAR = 1 << 20
"""A time that is not reached."""


class Signals(NamedTuple):
    """The scoreboards that a line raises."""

    write: int | None = None
    read: int | None = None


class Board(NamedTuple):
    """What a scoreboard has to tell."""

    ready: int
    """When it will be clear."""
    needed: int
    """When something waits for it first."""
    results: int
    operands: int
    """The registers whose end it tells."""


_CLEAR = Board(0, FAR, 0, 0)
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
        results, operands = _union(boards)
        waited = -times[block.start]
        for line in block:
            facts = effects[line]
            if results & facts.touched or operands & facts.written:
                for s in self.shared:
                    board = boards[s]
                    if board.results & facts.touched or board.operands & facts.written:
                        waited = max(waited, board.ready - times[line])
                        boards[s] = _CLEAR
                results, operands = _union(boards)
            if line in self.needs or facts.kind.group_field is not None:
                self.signals[line] = self._signals(b, line, boards, times[line] + waited)
                results, operands = _union(boards)
        end = times[block.stop] + waited
        self.exits[b] = [board._replace(ready=board.ready - end) for board in boards]

    def _entry(self, b: int) -> list[Board]:
        """What is under way at the start of a block."""
        boards = [_CLEAR] * SCOREBOARDS
        for p in self.code.cfg.predecessors[b]:
            for s, left in enumerate(self.exits[p]):
                if left.results | left.operands:
                    known = boards[s]
                    boards[s] = Board(max(known.ready, left.ready), FAR, known.results | left.results, known.operands | left.operands)
        return [self._with_need(b, board) if board.results | board.operands else _CLEAR for board in boards]

    def _with_need(self, b: int, board: Board) -> Board:
        """The board with the time when the block waits for it first."""
        return board._replace(needed=self._first_need(b, board.results, board.operands))

    def _first_need(self, b: int, results: int, operands: int) -> int:
        """When a block, which starts at 0, waits for late accesses first; FAR if it does not soon."""
        block = self.code.blocks[b]
        for line in block[:_LOOK_AHEAD]:
            facts = self.code.effects[line]
            if results & facts.touched or operands & facts.written:
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
            end = self._share(boards, self._board(b, line, now, needs.results, kind.latency, facts.results, 0))
        if needs.operands != NOWHERE:
            read = self._share(boards, self._board(b, line, now, needs.operands, OPERAND_CYCLES, 0, facts.operands))
        return Signals(end, read) if kind.result_field == "write" else Signals(None, end)

    def _board(self, b: int, line: int, now: int, need: int, cycles: int, results: int, operands: int) -> Board:
        """What a new signal tells, `cycles` after its line."""
        if need == ELSEWHERE:
            beyond = min([self._first_need(s, results, operands) for s in self.code.cfg.successors[b]], default=FAR)
            needed = now + self.times[self.code.blocks[b].stop] - self.times[line] + beyond
        else:
            needed = now + self.times[need] - self.times[line]
        return Board(now + cycles, needed, results, operands)

    def _share(self, boards: list[Board], new: Board) -> int:
        """Put a signal on the scoreboard where it costs the fewest cycles, one with the same first wait before a clear one."""

        def cost(s: int) -> tuple[int, int]:
            board = boards[s]
            if not board.results | board.operands:
                return 0, 1
            if board.needed == new.needed:
                return 0, 0
            others = max(0, new.ready - max(board.needed, board.ready))
            own = max(0, board.ready - max(new.needed, new.ready))
            return others + own, 2

        s = min(self.shared, key=cost)
        board = boards[s]
        boards[s] = Board(
            max(board.ready, new.ready), min(board.needed, new.needed), board.results | new.results, board.operands | new.operands
        )
        return s


def _union(boards: Sequence[Board]) -> tuple[int, int]:
    results = operands = 0
    for board in boards:
        results |= board.results
        operands |= board.operands
    return results, operands
