"""Facts that a candidate was made with: which launches it is for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from xdsl.dialects.builtin import ModuleOp

from sassir.dialect.facts import KernelFacts, WordRange, facts_of, used_facts
from sassir.dialect.operations import KernelOp
from sassir.launch import Facts, Launch
from sassir.translate.facts import launch_facts

_SIMPLE = ("block", "grid", "shared", "noalias", "contract", "ftz", "approx")
"""Facts that are fields of `KernelFacts`; the others are words, ranges of words, and what pointers are multiples of."""


class Assumption(NamedTuple):
    """What the code of one kernel relies on."""

    facts: KernelFacts
    """All that was known when it was made."""
    used: tuple[str, ...]
    """The names of those that it relies on, `block`, `word 0x210`, `range 0x228`, …; see `sassir.dialect.facts.record_use`."""

    def relied(self) -> KernelFacts:
        """Those facts and no others; pointers are kept as they are."""
        words = tuple([word for word in self.facts.words if f"word {word[0]:#x}" in self.used])
        ranges = tuple([known for known in self.facts.ranges if known.use in self.used])
        absent = {name: getattr(KernelFacts(), name) for name in _SIMPLE if name not in self.used}
        return replace(self.facts, words=words, ranges=ranges, **absent)


Assumptions = Mapping[str, Assumption]
"""By kernel; one that is not there relies on nothing."""


def assumptions_of(module: ModuleOp) -> dict[str, Assumption]:
    """What the passes that were run on `module` have relied on."""
    kernels = [op for op in module.body.ops if isinstance(op, KernelOp)]
    return {kernel.function.data: Assumption(facts_of(kernel), used) for kernel in kernels if (used := used_facts(kernel))}


def broken_fact(assumptions: Assumptions, launch: Launch, stated: Facts, arch: str) -> str | None:
    """A fact that does not hold in `launch`, as text; None when the candidate is made for it. `stated`: what its file says."""
    for kernel, actual in launch_facts(launch, stated, arch).items():
        assumed, used = assumptions.get(kernel, (actual, ()))
        for name in used:
            expected, found = (_value(name, facts) for facts in (assumed, actual))
            if not _implies(found, expected, name):
                return f"{name} = {expected} in kernel {kernel}"
    return None


def _implies(found: object, expected: object, name: str) -> bool:
    """Whether a fact that is `found` makes the one that was assumed hold."""
    if isinstance(found, WordRange) and isinstance(expected, WordRange):
        return expected.low <= found.low and found.high <= expected.high
    if name.startswith("align ") and isinstance(found, int) and isinstance(expected, int):
        return found % expected == 0
    return found == expected


def _value(name: str, facts: KernelFacts) -> object:
    """The fact of that name. Raises ValueError for a name that stands for none."""
    kind, _, offset = name.partition(" ")
    if kind == "word":
        return dict(facts.words).get(int(offset, 16))
    if kind == "range":
        return facts.word(int(offset, 16))
    if kind == "align":
        return {p.offset: p.align for p in facts.pointers}.get(int(offset, 16))
    if kind not in _SIMPLE:
        raise ValueError(f"there is no fact {name!r}")
    return getattr(facts, kind)
