"""The propagation over a kernel, made again only when the kernel changed: passes ask for it one after the other."""

from __future__ import annotations

from typing import NamedTuple

from xdsl.ir import SSAValue

from sassir.analysis.induction import induction_ranges
from sassir.analysis.propagation import Propagation
from sassir.analysis.ranges import Range
from sassir.dialect import internals
from sassir.dialect.facts import facts_of
from sassir.dialect.operations import KernelOp


class _Kept(NamedTuple):
    propagation: Propagation
    content: list[object]


_last: list[_Kept] = []
"""The newest one only."""


def propagate(kernel: KernelOp, arch: str) -> Propagation:
    """What every value of `kernel` can be, under its facts, as the kernel is now."""
    content = internals.content(kernel.body)
    for kept in _last:
        known = kept.propagation
        if (known.arch, known.facts) == (arch, facts_of(kernel)) and kept.content == content:
            return known
    _last[:] = [_Kept(_with_inductions(kernel, arch), content)]
    return _last[0].propagation


def _with_inductions(kernel: KernelOp, arch: str) -> Propagation:
    """What counted loops tell of their arguments may tell how often the loops inside of them run."""
    known = Propagation(kernel, facts_of(kernel), arch)
    bounded: dict[SSAValue, Range] = {}
    while more := induction_ranges(kernel, known, bounded):
        bounded |= more
        used = known.used
        known = Propagation(kernel, facts_of(kernel), arch, bounded)
        known.used |= used
    return known
