"""The plan: registers for whole webs, ahead of the walk that gives each value its own.

First fit over exact live ranges, the widest and longest webs first. What the plan cannot place is left to the walk, which follows
the plan where it can: whatever the plan says, the allocation is right.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from xdsl.ir import Block, SSAValue

from sassir.allocation.banks import Neighbours
from sassir.allocation.ranges import Ranges, live_ranges
from sassir.allocation.registers import fixed, members, starts
from sassir.allocation.webs import Web, find_webs
from sassir.analysis.bonds import groups, tied
from sassir.analysis.liveness import Liveness
from sassir.dialect import internals
from sassir.dialect.edges import forwarded
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.registers import R
from sassir.machine.register_file import bank


class Plan:
    """Where values would like to be, and what is free where they live."""

    def __init__(self, liveness: Liveness, original: Mapping[SSAValue, int]) -> None:
        """`original`: where values were before they were freed (see `original_registers`)."""
        ops = [op for block in liveness.flow.blocks for op in internals.operations(block)]
        instructions = [op for op in ops if isinstance(op, SassInstruction)]
        pairs = [pair for op in ops for pair in tied(op)]
        self._ranges = live_ranges(liveness)
        self._original = original
        self._webs = find_webs(self._ranges, [row for op in instructions for row in groups(op)], pairs, self._original)
        self._neighbours = Neighbours(liveness.flow)
        self._partners: dict[SSAValue, list[SSAValue]] = {}
        """The values that want the same register as a value."""
        for a, b in pairs:
            self._partners.setdefault(a, []).append(b)
            self._partners.setdefault(b, []).append(a)
        self.handed_to: dict[SSAValue, list[Block]] = {}
        """The blocks of which some argument is a value."""
        for block in liveness.flow.blocks:
            last = block.last_op
            for successor, values in zip(internals.successors(last), forwarded(last), strict=True) if last is not None else ():
                for value in values:
                    self.handed_to.setdefault(value, []).append(successor)
        self._allowed = 0
        self._busy: dict[int, Ranges] = {}
        """When each register is spoken for."""
        self._planned: dict[SSAValue, int] = {}

    @property
    def original_count(self) -> int:
        """One more than the highest general register that was in use before."""
        return max([n for n in self._original.values() if n < R.COUNT], default=-1) + 1

    def lay_out(self, allowed: int) -> None:
        """Place the webs in the registers `allowed`."""
        self._allowed = allowed
        self._busy = {}
        self._planned = {}
        webs = list(dict.fromkeys(self._webs.values()))
        fixed_webs = {web: n - d for web in webs for v, d in web.distance.items() if (n := fixed(v)) is not None}
        for web, origin in fixed_webs.items():
            self._place(web, origin)
        others = sorted([web for web in webs if web not in fixed_webs], key=_weight, reverse=True)
        for web in others:
            if web.before is not None and self._fits(web, web.before):
                self._place(web, web.before)
        for web in others:
            if not web.is_single and next(iter(web.distance)) not in self._planned:
                self._place_anywhere(web)

    def wishes(self, value: SSAValue, registers: Mapping[SSAValue, int]) -> Iterable[int]:
        """What a value would like, best first: as planned, as before, as a partner that has its register already."""
        if value in self._planned:
            yield self._planned[value]
        before = self._original.get(value)
        if before is not None and self.is_calm(value, before):
            yield before
        for partner in self.partners(value):
            if partner in registers:
                yield registers[partner]

    @property
    def used(self) -> int:
        """The registers for which something is planned, as a set."""
        return sum([1 << register for register in self._busy])

    def partners(self, value: SSAValue) -> Sequence[SSAValue]:
        """The values that want the register of `value`."""
        return self._partners.get(value, ())

    def better_bank(self, value: SSAValue, registers: Mapping[SSAValue, int]) -> int | None:
        """The bank in which a value is read with fewer others of that bank; None if that makes no difference, so far as is known."""
        return self._neighbours.better_bank((value,), registers, self._planned)

    def is_calm(self, value: SSAValue, register: int) -> bool:
        """Nothing else is planned for a register while `value` lives."""
        busy = self._busy.get(register)
        return busy is None or not busy.meets(self._ranges[value])

    def _fits(self, web: Web, origin: int) -> bool:
        return all([self._is_free(origin + d, ranges) for d, ranges in web.ranges.items()])

    def _is_free(self, register: int, ranges: Ranges) -> bool:
        if register < 0 or not self._allowed >> register & 1:
            return False
        busy = self._busy.get(register)
        return busy is None or not busy.meets(ranges)

    def _place(self, web: Web, origin: int) -> None:
        for value, d in web.distance.items():
            self._planned[value] = origin + d
        for d, ranges in web.ranges.items():
            self._busy.setdefault(origin + d, Ranges()).add(ranges)

    def _place_anywhere(self, web: Web) -> None:
        """Place a web at the first registers that are free for it; or as much of it as possible, then as much as possible of the rest."""
        low = min(web.ranges)
        origins = [n - low for n in members(starts(self._allowed, web.file, max(web.ranges) - low + 1, web.alignment, web.phase - low))]
        if len(web.ranges) == 1 and (better := self._neighbours.better_bank(web.distance, self._planned)) is not None:
            origins.sort(key=lambda n: bank(n + low - R.FIRST) != better)
        for origin in origins:
            if self._fits(web, origin):
                self._place(web, origin)
                return
        rest = dict(web.distance)
        while rest and origins:
            parts = [[v for v, d in rest.items() if self._is_free(n + d, self._ranges[v])] for n in origins]
            best = max(range(len(origins)), key=lambda i: len(parts[i]))
            if not parts[best]:
                return
            for value in parts[best]:
                register = self._planned[value] = origins[best] + rest.pop(value)
                self._busy.setdefault(register, Ranges()).add(self._ranges[value])


def _weight(web: Web) -> tuple[int, int]:
    return len(web.ranges), sum(end - start for ranges in web.ranges.values() for start, end in ranges.ranges)
