"""Induction variables: arguments of counted loops that grow by the same number with every iteration.

One that no comparison bounds, an address or a second counter, is still bounded by where it starts and how often the loop runs
(Gerlek, Stoltz and Wolfe, Beyond Induction Variables, 1995).
"""

from __future__ import annotations

from collections.abc import Container

from xdsl.ir import SSAValue

from sassir.analysis.counted import counted_loop, difference, entering
from sassir.analysis.propagation import Propagation
from sassir.analysis.ranges import Range, word
from sassir.analysis.region_loops import RegionLoop, region_loops
from sassir.dialect.edges import entered_from_elsewhere, forwarded
from sassir.dialect.operations import KernelOp


def induction_ranges(kernel: KernelOp, known: Propagation, but: Container[SSAValue] = ()) -> dict[SSAValue, Range]:
    """Ranges of arguments of counted loops, where they are smaller than what is known; `but` those."""
    rooted = entered_from_elsewhere(kernel.body)
    found: dict[SSAValue, Range] = {}
    for loop in region_loops(kernel.body):
        if loop.header in known.reached and loop.header not in rooted:
            found |= {value: r for value, r in _ranges(loop, known).items() if value not in but}
    return found


def _ranges(loop: RegionLoop, known: Propagation) -> dict[SSAValue, Range]:
    counted = counted_loop(loop, known)
    if counted is None or counted.trips is None:
        return {}
    found: dict[SSAValue, Range] = {}
    following = forwarded(counted.latch)[list(counted.latch.successors).index(loop.header)]
    for argument, value in zip(loop.header.args, following, strict=True):
        step, start = difference(value, argument, known), entering(loop, argument, known)
        if step is not None and start is not None:
            way = step * (counted.trips - 1)
            low, high = word(start.low + min(way, 0), start.high + max(way, 0))
            before = known.range(argument)
            within = Range(max(low, before.low), min(high, before.high))
            if within != before and within.low <= within.high:
                found[argument] = within
    return found
