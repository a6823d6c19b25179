"""Several warps: a closed queueing network, solved by mean value analysis.

The warps of a multiprocessor go round: each needs some cycles of every unit, and some time in which it needs none. What it waits
at a unit follows from how many others are there when it comes: Reiser and Lavenberg, Mean-Value Analysis of Closed Multichain
Queuing Networks (1980), in the form of Bard and Schweitzer, with service times that do not vary: whoever is being served has
half of his time left on average. As the number of warps grows that ends at the busiest unit, which then decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

ROUNDS = 200
PRECISION = 1e-4


class Unit(NamedTuple):
    """What a unit has to do for one warp, from its start to its end."""

    cycles: float
    sharers: float
    """Of the warps that are counted, how many have this very unit in common: those of a scheduler, or of the multiprocessor."""


class Solution(NamedTuple):
    """The steady state."""

    cycles: float
    """From the start of a warp to its end."""
    waiting: dict[str, float]
    """Of these, those in which it waits for other warps, by unit."""
    utilisation: dict[str, float]
    """Share of the time that a unit is busy, 0 to 1."""


def solve(alone: float, units: Mapping[str, Unit], skew: float = 0.0) -> Solution:
    """The time of a warp that takes `alone` cycles by itself, when it shares `units`, and then waits for a share `skew` of that time."""
    waiting = dict.fromkeys(units, 0.0)
    cycles = alone
    for _ in range(ROUNDS):
        before = cycles
        for name, unit in units.items():
            rate = unit.sharers / cycles
            queue = rate * (waiting[name] + unit.cycles)
            others = max(0.0, 1 - 1 / unit.sharers) if unit.sharers else 0.0
            ahead = others * max(0.0, queue - min(1.0, rate * unit.cycles) / 2)
            waiting[name] += (unit.cycles * ahead - waiting[name]) / 2
        cycles = (alone + sum(waiting.values())) * (1 + skew)
        if abs(cycles - before) < PRECISION * cycles:
            break
    cycles = _bounded(cycles, waiting, units)
    return Solution(cycles, waiting, {name: unit.cycles * unit.sharers / cycles if cycles else 0.0 for name, unit in units.items()})


def _bounded(cycles: float, waiting: dict[str, float], units: Mapping[str, Unit]) -> float:
    """No unit can do more than it has time for; what is missing is waited for at the busiest one."""
    busiest = max(units, key=lambda name: units[name].cycles * units[name].sharers, default=None)
    if busiest is None:
        return cycles
    least = units[busiest].cycles * units[busiest].sharers
    waiting[busiest] += max(0.0, least - cycles)
    return max(cycles, least)
