"""Webs: values that want registers at fixed distances from each other.

A value wants the register of the values that it is passed to and of the result that replaces it; the values of a group want
registers in a row. Values join where their live ranges allow it, so that a web needs a copy only where it ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from xdsl.ir import SSAValue

from sassir import isa
from sassir.allocation.ranges import Ranges
from sassir.dialect.registers import file_of


class Web:
    """Some values, each with its distance from register 0 of the web."""

    __slots__ = ("alignment", "distance", "file", "phase", "ranges", "votes")

    def __init__(self, value: SSAValue, ranges: Ranges) -> None:
        self.file = file_of(value)
        self.distance = {value: 0}
        self.ranges = {0: ranges.copy()}
        """When the register at each distance is needed."""
        self.alignment = 1
        self.phase = 0
        """The register at distance `phase` is to be a multiple of `alignment`, counted in its file."""
        self.votes: dict[int, int] = {}
        """Which register was at distance 0, by the original registers of the members, and how many say so."""

    @property
    def is_single(self) -> bool:
        """One value on its own."""
        return len(self.distance) == 1

    @property
    def before(self) -> int | None:
        """The register at distance 0 that most members were in agreement with."""
        return max(self.votes, key=lambda origin: self.votes[origin]) if self.votes else None


def find_webs(
    ranges: Mapping[SSAValue, Ranges],
    rows: Iterable[Sequence[SSAValue]],
    pairs: Iterable[tuple[SSAValue, SSAValue]],
    original: Mapping[SSAValue, int],
) -> dict[SSAValue, Web]:
    """The web of every value. `rows`: the values of groups; `pairs`: values that want one register; `original`: where values were."""
    webs = {value: Web(value, r) for value, r in ranges.items()}
    for row in rows:
        _align(webs, row)
    for a, b in pairs:
        _join(webs, a, b, 0)
    for value, number in original.items():
        web = webs[value]
        origin = number - web.distance[value]
        web.votes[origin] = web.votes.get(origin, 0) + 1
    return webs


def _align(webs: dict[SSAValue, Web], group: Sequence[SSAValue]) -> None:
    for i, value in enumerate(group):
        if i:
            _join(webs, group[0], value, i)
    web = webs[group[0]]
    alignment = isa.alignment(len(group))
    if alignment > web.alignment:
        web.alignment, web.phase = alignment, web.distance[group[0]]


def _join(webs: dict[SSAValue, Web], a: SSAValue, b: SSAValue, distance: int) -> None:
    """Let `b` want the register `distance` behind that of `a`, if their webs can be one."""
    one, other = webs[a], webs[b]
    if one is other:
        return
    shift = one.distance[a] + distance - other.distance[b]
    if len(one.distance) < len(other.distance):
        one, other, shift = other, one, -shift
    for d, ranges in other.ranges.items():
        taken = one.ranges.get(d + shift)
        if taken is not None and taken.meets(ranges):
            return
    for d, ranges in other.ranges.items():
        one.ranges.setdefault(d + shift, Ranges()).add(ranges)
    for value, d in other.distance.items():
        one.distance[value] = d + shift
        webs[value] = one
    if other.alignment > one.alignment:
        one.alignment, one.phase = other.alignment, other.phase + shift
