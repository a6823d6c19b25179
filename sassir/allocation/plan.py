"""The plan: registers for whole webs, ahead of the walk that gives each value its own.

First fit over exact live ranges, the widest and longest webs first. What the plan cannot place is left to the walk, which follows
the plan where it can: whatever the plan says, the allocation is right.
"""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.ir import SSAValue

from sassir.allocation.original import original_registers
from sassir.allocation.ranges import Ranges, live_ranges
from sassir.allocation.registers import fixed, lowest, starts
from sassir.allocation.webs import Web, find_webs
from sassir.analysis.liveness import Liveness
from sassir.dialect.registers import R


class Plan:
    """Where values would like to be, and what is free where they live."""

    def __init__(self, liveness: Liveness) -> None:
        blocks = liveness.flow.blocks
        self._ranges = live_ranges(liveness)
        self._original = original_registers(blocks)
        self._webs = find_webs(blocks, self._ranges, self._original)
        self._allowed = 0
        self._busy: dict[int, Ranges] = {}
        """When each register is spoken for."""

    @property
    def original_count(self) -> int:
        """One more than the highest general register that was in use before."""
        return max([n for n in self._original.values() if n < R.COUNT], default=-1) + 1

    def lay_out(self, allowed: int) -> None:
        """Place the webs in the registers `allowed`."""
        self._allowed = allowed
        self._busy = {}
        webs = list(dict.fromkeys(self._webs.values()))
        for web in webs:
            web.origin = next((n - d for v, d in web.distance.items() if (n := fixed(v)) is not None), None)
            if web.origin is not None:
                self._place(web, web.origin)
        for web in webs:
            if web.origin is None and web.votes and self._fits(web, origin := web.votes.most_common(1)[0][0]):
                self._place(web, origin)
        for web in sorted(webs, key=_weight, reverse=True):
            if web.origin is None and not web.is_single:
                self._place_anywhere(web)

    def wishes(self, value: SSAValue) -> Iterable[int]:
        """The registers that a value would like, best first."""
        web = self._webs[value]
        if web.origin is not None:
            yield web.origin + web.distance[value]
        if value in self._original:
            yield self._original[value]

    def is_calm(self, value: SSAValue, register: int) -> bool:
        """Nothing else is planned for a register while `value` lives."""
        busy = self._busy.get(register)
        return busy is None or not busy.meets(self._ranges[value])

    def _fits(self, web: Web, origin: int) -> bool:
        for d, ranges in web.ranges.items():
            n = origin + d
            if n < 0 or not self._allowed >> n & 1:
                return False
            busy = self._busy.get(n)
            if busy is not None and busy.meets(ranges):
                return False
        return True

    def _place(self, web: Web, origin: int) -> None:
        web.origin = origin
        for d, ranges in web.ranges.items():
            self._busy.setdefault(origin + d, Ranges()).add(ranges)

    def _place_anywhere(self, web: Web) -> None:
        low = min(web.ranges)
        candidates = starts(self._allowed, web.file, max(web.ranges) - low + 1, web.alignment, web.phase - low)
        while candidates:
            origin = lowest(candidates) - low
            candidates &= candidates - 1
            if self._fits(web, origin):
                self._place(web, origin)
                return


def _weight(web: Web) -> tuple[int, int]:
    return len(web.ranges), sum(end - start for ranges in web.ranges.values() for start, end in ranges.ranges)
