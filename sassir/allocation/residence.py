"""Decide which values are in registers where, when not all fit: what is needed last leaves, and comes back before it is read.

Braun and Hack, Register Spilling and Live-Range Splitting for SSA-Form Programs (2009). A value that leaves is in memory from its
definition on, so that leaving itself costs nothing. Nothing of the kernel changes here.
"""

from __future__ import annotations

from collections.abc import Container, Iterable

from xdsl.ir import Operation, SSAValue

from sassir.allocation.demands import demands
from sassir.allocation.next_use import FAR, NextUses
from sassir.allocation.registers import AllocationError, fixed
from sassir.analysis.flow import Flow
from sassir.analysis.loops import Loop, loops_of
from sassir.dialect import internals
from sassir.dialect.edges import own_operands
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.registers import file_of
from sassir.dialect.syntax import written

Resident = dict[SSAValue, None]
"""The values in registers: a set in a fixed order."""
_NEVER = FAR * FAR


class Residence:
    """Which values of one register file are in registers, so that `spare` of those available stay free; those in `kept` do not leave."""

    def __init__(self, flow: Flow, file: str, available: int, spare: int = 0, kept: Container[SSAValue] = ()) -> None:
        self.flow = flow
        self.file = file
        self.limit = available - spare
        self._spare = spare
        self._kept = kept
        self.loops = loops_of(flow.cfg)
        self.uses = NextUses(flow, self.loops, lambda value: file_of(value) == file)
        self.entry: list[Resident] = [{} for _ in flow.blocks]
        self.exit: list[Resident] = [{} for _ in flow.blocks]
        self.reloads: dict[Operation, list[SSAValue]] = {}
        """The values that come back before an operation."""
        headers = {loop.header: loop for loop in self.loops.loops}
        self._needed = self._most_values()
        self._done: set[int] = set()
        for b in flow.cfg.order:
            loop = headers.get(b)
            self.entry[b] = self._at_join(b) if loop is None else self._at_loop(b, loop)
            self._walk(b)
            self._done.add(b)

    def _most_values(self) -> list[int]:
        """How many values live at once in each block, at most, if nothing leaves."""
        most: list[int] = []
        for b, block in enumerate(self.flow.blocks):
            live = set(self.uses.exit[b])
            highest = len(live)
            for op in reversed(list(block.ops)):
                live.update([r for r in op.results if self.uses.counts(r)])
                highest = max(highest, len(live))
                live.difference_update(op.results)
                copies = duplicates(op, live)
                own = own_operands(op) if op is block.last_op else internals.operands(op)
                live.update([v for v in own if self.uses.counts(v)])
                highest = max(highest, len(live) + copies)
            most.append(highest)
        return most

    def _candidates(self, b: int) -> list[SSAValue]:
        """What lives at the start of a block, what is needed first before the others."""
        entry = self.uses.entry[b]
        return sorted(entry, key=lambda v: (not self._stays(v), entry[v]))

    def _stays(self, value: SSAValue) -> bool:
        """The value must not leave."""
        return fixed(value) is not None or value in self._kept

    def _at_join(self, b: int) -> Resident:
        """What every predecessor has in registers, then what some have."""
        arguments = self.flow.blocks[b].args
        before: list[Container[SSAValue]] = []
        for p in dict.fromkeys(self.flow.cfg.predecessors[b]):
            for s, values in zip(self.flow.cfg.successors[p], self.uses.passed[p], strict=False):
                if p in self._done and s == b:
                    arriving = {a for a, v in zip(arguments, values, strict=True) if v in self.exit[p]}
                    before.append(arriving.union(self.exit[p]))
        candidates = self._candidates(b)
        if not before:
            return dict.fromkeys(candidates[: self.limit])
        count = {v: sum([v in resident for resident in before]) for v in candidates}
        chosen = [v for v in candidates if count[v] == len(before)]
        chosen += [v for v in candidates if 0 < count[v] < len(before)]
        return dict.fromkeys(chosen[: self.limit])

    def _at_loop(self, b: int, loop: Loop) -> Resident:
        """What the loop needs; and what only lives through it, as far as the loop leaves room."""
        entry = self.uses.entry[b]
        candidates = self._candidates(b)
        inside = [v for v in candidates if entry[v] < FAR or self._stays(v)]
        through = [v for v in candidates if entry[v] >= FAR and not self._stays(v)]
        most = max(self._needed[block] for block in loop.blocks())
        room = max(0, self.limit - max(len(inside), most - len(through)))
        return dict.fromkeys((inside + through[:room])[: self.limit])

    def _walk(self, b: int) -> None:
        """Follow a block and decide what leaves."""
        block, resident = self.flow.blocks[b], dict(self.entry[b])
        ahead = _Ahead(self.uses, b)
        for op in block.ops:
            own = own_operands(op) if op is block.last_op else internals.operands(op)
            read = dict.fromkeys([v for v in own if self.uses.counts(v)])
            missing = [v for v in read if v not in resident]
            if missing:
                self.reloads[op] = missing
                resident.update(dict.fromkeys(missing))
            ahead.advance(read)
            self._leave(op, resident, self.limit - duplicates(op, ahead), ahead, read)
            for value in read:
                if value not in ahead:
                    del resident[value]
            results = [r for r in op.results if self.uses.counts(r)]
            self._leave(op, resident, self.limit - len(results), ahead, {})
            resident.update(dict.fromkeys([r for r in results if r.first_use is not None]))
        self.exit[b] = resident

    def _leave(self, op: Operation, resident: Resident, limit: int, ahead: _Ahead, needed: Resident) -> None:
        """Let the values whose next use is farthest away leave, until no more than `limit` stay."""
        excess = len(resident) - limit
        if excess <= 0:
            return
        leaving = [v for v in resident if v not in needed and not self._stays(v)]
        if len(leaving) < excess:
            needs = self.limit + excess - len(leaving)
            spare = f", {self._spare} more are kept free to move groups" if self._spare else ""
            raise AllocationError(f"`{written(op)}` needs {needs} {self.file} registers at once; {self.limit} may be used{spare}")
        leaving.sort(key=ahead.distance, reverse=True)
        for value in leaving[:excess]:
            del resident[value]


class _Ahead:
    """The uses in front of a place that moves through a block."""

    def __init__(self, uses: NextUses, b: int) -> None:
        self._at = 0
        self._length = uses.length[b]
        self._behind = uses.exit[b]
        self._positions = {v: list(places) for v, places in uses.positions[b].items()}

    def advance(self, read: Iterable[SSAValue]) -> None:
        """Go behind the next operation, which reads these values."""
        self._at += 1
        for value in read:
            places = self._positions[value]
            while places and places[-1] < self._at:
                places.pop()

    def __contains__(self, value: SSAValue) -> bool:
        return bool(self._positions.get(value)) or value in self._behind

    def distance(self, value: SSAValue) -> int:
        """How far away the next use is."""
        places = self._positions.get(value)
        if places:
            return places[-1] - self._at
        return self._length - self._at + self._behind.get(value, _NEVER)


def duplicates(op: Operation, living: Container[SSAValue]) -> int:
    """How many copies of its operands an operation needs: for results that replace what lives on, for a value in several groups.

    `living`: the values that live behind it.
    """
    if not isinstance(op, SassInstruction):
        return 0
    groups = demands(op).groups
    if not groups:
        return 0
    operands = internals.operands(op)
    different = {operands[g.first : g.first + g.width]: g for g in groups}
    values = [v for group in different for v in group]
    replaced = [v for group, g in different.items() if g.result is not None for v in group if v in living]
    return len(values) - len({*values}) + len(replaced)
