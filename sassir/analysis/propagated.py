"""The propagation over a kernel, made again only when the kernel changed: passes ask for it one after the other."""

from __future__ import annotations

from operator import is_
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
    content = _content(kernel)
    for kept in _last:
        known = kept.propagation
        if (known.arch, known.facts) == (arch, facts_of(kernel)) and _same(kept.content, content):
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


def _content(kernel: KernelOp) -> list[object]:
    """All objects that a kernel is made of. Attributes are never changed in place, and of a value at most which register it is in."""
    found: list[object] = []
    for block in kernel.body.blocks:
        found += (block, *block.args)
        for op in internals.operations(block):
            found.append(op)
            found += internals.operands(op)
            found += op.properties.values()
            found += internals.successors(op)
    return found


def _same(a: list[object], b: list[object]) -> bool:
    return len(a) == len(b) and all(map(is_, a, b))
