"""Choose the scoreboards: which late instructions signal their results and operands, and on which of the six.

Two that share a scoreboard are awaited together. The choice is greedy in the order of the code: the scoreboard where
sharing costs the fewest cycles, by estimated issue times and latencies. It goes over the code twice, so that the second
time what is under way at the end of a loop is known at its start.
"""

from __future__ import annotations

from typing import NamedTuple

from sassir.asm.control import SCOREBOARDS
from sassir.schedule.code import Code
from sassir.schedule.effects import Effects
from sassir.schedule.estimate import OPERANDS
from sassir.translate.shape import members

FAR = 1 << 20
"""A time that is not reached in this block."""
_FIXED = 4
"""Cycles that most fixed results take."""


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


class Needs(NamedTuple):
    """Where the end of a late line matters: lines of its block, `FAR` for one of another block, None if nowhere."""

    results: int | None
    operands: int | None


class Chooser:
    """The state of choosing for one kernel."""

    def __init__(self, code: Code) -> None:
        self.code = code
        self.signals = [Signals()] * len(code.effects)
        counted = sorted({e.counts for e in code.effects if e.counts is not None})
        self.group = counted[0] if counted and any(e.group_field for e in code.effects) else None
        """The scoreboard of groups of asynchronous copies, which nothing else shares: DEPBAR counts its signals."""
        self.shared = [s for s in range(SCOREBOARDS) if s != self.group]
        self.needs = _needs(code)
        self.exits: list[list[Board]] = [[_CLEAR] * SCOREBOARDS for _ in code.blocks]

    def run(self) -> list[Signals]:
        """The signals of every line."""
        for _ in range(2):
            for b in self.code.cfg.order:
                self._choose_in(b)
        return self.signals

    def _choose_in(self, b: int) -> None:
        """Choose for one block."""
        effects, block = self.code.effects, self.code.blocks[b]
        boards = self._entry(b)
        times: dict[int, int] = {}
        now = 0
        for line in block:
            facts = effects[line]
            now = max([now, *[times.get(register, 0) for register, _ in facts.reads]])
            for s in self.shared:
                board = boards[s]
                if board.results & facts.touched or board.operands & facts.written:
                    now = max(now, board.ready)
                    boards[s] = _CLEAR
            if line in self.needs or facts.group_field is not None:
                self.signals[line] = self._signals(line, boards, now)
            if not facts.results:
                for register, _ in facts.writes:
                    times[register] = now + _FIXED
            now += 1
        self.exits[b] = [board._replace(ready=board.ready - now) for board in boards]

    def _entry(self, b: int) -> list[Board]:
        """What is under way at the start of a block."""
        boards = [_CLEAR] * SCOREBOARDS
        for p in self.code.cfg.predecessors[b]:
            for s, left in enumerate(self.exits[p]):
                if left.results | left.operands:
                    known = boards[s]
                    boards[s] = Board(max(known.ready, left.ready), FAR, known.results | left.results, known.operands | left.operands)
        for s, board in enumerate(boards):
            if board.results | board.operands:
                boards[s] = board._replace(needed=self._first_need(b, board))
        return boards

    def _first_need(self, b: int, board: Board) -> int:
        """About when the block waits for a scoreboard that is not clear at its start."""
        for at, line in enumerate(self.code.blocks[b]):
            facts = self.code.effects[line]
            if board.results & facts.touched or board.operands & facts.written:
                return 2 * at
        return FAR

    def _signals(self, line: int, boards: list[Board], now: int) -> Signals:
        facts = self.code.effects[line]
        if facts.group_field is not None:
            return Signals(**{facts.group_field: self.group})
        needs = self.needs[line]
        end = read = None
        if needs.results is not None:
            end = self._share(boards, Board(now + facts.latency, now + 2 * (needs.results - line), facts.results, 0))
        covered = needs.results is not None and needs.operands is not None and needs.results < FAR and needs.results <= needs.operands
        if needs.operands is not None and not covered:
            read = self._share(boards, Board(now + OPERANDS, now + 2 * (needs.operands - line), 0, facts.operands))
        return Signals(end, read) if facts.result_field == "write" else Signals(None, end)

    def _share(self, boards: list[Board], new: Board) -> int:
        """Put a signal on the scoreboard where it costs the fewest cycles, one with the same first wait before a clear one."""

        def cost(s: int) -> tuple[int, int]:
            board = boards[s]
            if not board.results | board.operands:
                return 0, 1
            others = max(0, new.ready - max(board.needed, board.ready))
            own = max(0, board.ready - max(new.needed, new.ready))
            return others + own, 0 if board.needed == new.needed else 2

        s = min(self.shared, key=cost)
        board = boards[s]
        boards[s] = Board(max(board.ready, new.ready), min(board.needed, new.needed), board.results | new.results, board.operands | new.operands)
        return s


def _needs(code: Code) -> dict[int, Needs]:
    """The needs of each late line."""
    touched, written = [0] * len(code.blocks), [0] * len(code.blocks)
    for b, block in enumerate(code.blocks):
        for line in block:
            touched[b] |= code.effects[line].touched
            written[b] |= code.effects[line].written
    touched_later, written_later = _later(code, touched), _later(code, written)
    needs: dict[int, Needs] = {}
    for b, block in enumerate(code.blocks):
        next_touch = dict.fromkeys(members(touched_later[b]), FAR)
        next_write = dict.fromkeys(members(written_later[b]), FAR)
        for line in reversed(block):
            facts = code.effects[line]
            if facts.results | facts.operands:
                results = [next_touch[r] for r in members(facts.results) if r in next_touch]
                operands = [next_write[r] for r in members(facts.operands & ~facts.results) if r in next_write]
                needs[line] = Needs(min(results, default=None), min(operands, default=None))
            for register in members(facts.touched):
                next_touch[register] = line
            for register in members(facts.written):
                next_write[register] = line
    return needs


def _later(code: Code, sets: list[int]) -> list[int]:
    """For each block, what the blocks that can follow it contain."""
    later = [0] * len(sets)
    work = list(code.cfg.order)
    waiting = set(work)
    while work:
        b = work.pop()
        waiting.discard(b)
        new = 0
        for s in code.cfg.successors[b]:
            new |= sets[s] | later[s]
        if new != later[b]:
            later[b] = new
            for p in code.cfg.predecessors[b]:
                if p not in waiting:
                    waiting.add(p)
                    work.append(p)
    return later
