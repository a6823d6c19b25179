"""Where the end of late accesses matters first, and so which of them have to be signalled."""

from __future__ import annotations

from typing import NamedTuple

from sassir.dialect.registers import REGISTERS
from sassir.schedule.code import Code
from sassir.schedule.effects import Effects
from sassir.translate.shape import members

EVERYTHING = (1 << len(REGISTERS) + 1) - 1
"""All registers, and memory."""
ELSEWHERE = 1 << 30
"""A line of another block."""
NOWHERE = ELSEWHERE + 1


class Needs(NamedTuple):
    """Lines of the same block, `ELSEWHERE` or `NOWHERE`."""

    results: int
    """Where a result is read or overwritten first."""
    operands: int
    """Where an operand is overwritten first, unless something that is awaited earlier tells that it was read."""


def find_needs(code: Code) -> dict[int, Needs]:
    """The needs of each line with late accesses."""
    touched, written = [0] * len(code.blocks), [0] * len(code.blocks)
    for b, block in enumerate(code.blocks):
        for line in block:
            touched[b] |= code.effects[line].touched
            written[b] |= code.effects[line].written
    for b in code.leaving:
        touched[b] = written[b] = EVERYTHING
    touched_later, written_later = _later(code, touched), _later(code, written)
    for b in code.leaving:
        touched_later[b] = written_later[b] = EVERYTHING
    needs: dict[int, Needs] = {}
    for b in range(len(code.blocks)):
        _Backwards(code, b, touched_later[b], written_later[b]).run(needs)
    return needs


class _Backwards:
    """One walk through a block from its end."""

    def __init__(self, code: Code, b: int, touched_later: int, written_later: int) -> None:
        self.effects, self.block = code.effects, code.blocks[b]
        self.touched_later, self.written_later = touched_later, written_later
        self.next_touch: dict[int, int] = {}
        """By register, the next line that touches it."""
        self.next_write: dict[int, int] = {}
        self.awaited: dict[str | None, int] = {}
        """By queue, the first line that needs the results of one of its instructions."""

    def run(self, needs: dict[int, Needs]) -> None:
        """Find the needs of the block's lines."""
        watched = 0
        for line in self.block:
            watched |= self.effects[line].results | self.effects[line].operands
        for line in reversed(self.block):
            facts = self.effects[line]
            if facts.results | facts.operands:
                needs[line] = self._needs(facts)
            if facts.touched & watched:
                for register in members(facts.touched & watched):
                    self.next_touch[register] = line
                for register in members(facts.written & watched):
                    self.next_write[register] = line

    def _needs(self, facts: Effects) -> Needs:
        results = self._first(facts.results, self.next_touch, self.touched_later)
        queue = facts.kind.timing.queue
        if results < ELSEWHERE and queue is not None:
            self.awaited[queue] = min(results, self.awaited.get(queue, results))
        operands = self._first(facts.operands & ~facts.results & ~self._in_order(facts), self.next_write, self.written_later)
        told = min(results, self.awaited.get(queue, NOWHERE))
        return Needs(results, NOWHERE if told < ELSEWHERE and told <= operands else operands)

    def _in_order(self, facts: Effects) -> int:
        """The operands that the next instruction to write them cannot write too early: it goes through the same queue."""
        queue, safe = facts.kind.timing.queue, 0
        for register in members(facts.operands) if queue is not None else ():
            writer = self.next_write.get(register)
            if writer is not None:
                other = self.effects[writer]
                if other.kind.timing.queue == queue and other.results >> register & 1:
                    safe |= 1 << register
        return safe

    def _first(self, registers: int, lines: dict[int, int], later: int) -> int:
        """The first line that has one of the registers."""
        found = [lines[register] for register in members(registers) if register in lines]
        return min(found) if found else ELSEWHERE if registers & later else NOWHERE


def _later(code: Code, sets: list[int]) -> list[int]:
    """For each block, the registers in the sets of the blocks that can follow it."""
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
