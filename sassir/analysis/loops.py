"""Natural loops of a control-flow graph, and what is not one.

An edge back to a block that dominates its source makes that block the header of a loop. Loops are found from the inside
out, and a loop that was found counts as one block from then on (Havlak, Nesting of Reducible and Irreducible Loops, 1997).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from sassir.analysis.cfg import Cfg

_ITERATIONS, _DEEPEST = 8, 4
"""How often a loop is taken to run, and the depth from which that makes no more difference."""


@dataclass(eq=False)
class Loop:
    """A natural loop, by block numbers."""

    header: int
    """The only block through which control gets into the loop."""
    latches: list[int]
    """The blocks from which control goes back to the header."""
    preheader: int | None
    """The only block before the header outside of the loop, if it goes nowhere else."""
    parent: Loop | None = None
    """The loop around this one."""
    depth: int = 1
    """1 for an outermost loop."""
    own: list[int] = field(default_factory=list[int])
    """Its blocks, those of inner loops aside; the header is the first."""
    inner: list[Loop] = field(default_factory=list["Loop"])
    """The loops directly inside of it."""

    def blocks(self) -> list[int]:
        """All blocks of the loop, the header first."""
        found: list[int] = []
        work = [self]
        while work:
            loop = work.pop()
            found += loop.own
            work += loop.inner
        return found


class Loops:
    """The loops of a graph."""

    def __init__(self, cfg: Cfg) -> None:
        rank = {block: i for i, block in enumerate(cfg.order)}
        latches: dict[int, list[int]] = {}
        self.irreducible: list[tuple[int, int]] = []
        """Edges that go back into a cycle which can also be entered elsewhere: that cycle is no natural loop."""
        for block in cfg.order:
            for target in cfg.successors[block]:
                if rank[target] <= rank[block]:
                    if cfg.dominates(target, block):
                        latches.setdefault(target, []).append(block)
                    else:
                        self.irreducible.append((block, target))
        self.loops: list[Loop] = []
        """An outer loop before those inside of it."""
        self.innermost: list[Loop | None] = [None] * len(cfg.order)
        """The smallest loop around each block."""
        for header in reversed(cfg.order):
            if header in latches:
                self._collect(Loop(header, latches[header], _preheader(cfg, header, latches[header])), cfg)
        self.loops.reverse()
        for loop in self.loops:
            if loop.parent is not None:
                loop.depth = loop.parent.depth + 1

    def depth(self, block: int) -> int:
        """The number of loops around a block."""
        loop = self.innermost[block]
        return 0 if loop is None else loop.depth

    def weight(self, block: int) -> int:
        """How often a block is taken to run, where nobody says how often loops do."""
        return _ITERATIONS ** min(self.depth(block), _DEEPEST)

    def _collect(self, loop: Loop, cfg: Cfg) -> None:
        """Find the blocks of `loop` from its latches upwards; the loops inside of it are known."""
        self.loops.append(loop)
        self.innermost[loop.header] = loop
        loop.own.append(loop.header)
        work = list(loop.latches)
        while work:
            block = work.pop()
            known = self.innermost[block]
            if known is None:
                self.innermost[block] = loop
                loop.own.append(block)
                work += cfg.predecessors[block]
                continue
            outer = _outermost(known)
            if outer is not loop:
                outer.parent = loop
                loop.inner.append(outer)
                work += cfg.predecessors[outer.header]


@lru_cache(maxsize=1)
def loops_of(cfg: Cfg) -> Loops:
    """The loops of a graph, which are kept until another one is asked about."""
    return Loops(cfg)


def _outermost(loop: Loop) -> Loop:
    while loop.parent is not None:
        loop = loop.parent
    return loop


def _preheader(cfg: Cfg, header: int, latches: list[int]) -> int | None:
    before = {b for b in cfg.predecessors[header]} - {*latches}
    only = before.pop() if len(before) == 1 and header not in cfg.roots else None
    return only if only is not None and set(cfg.successors[only]) == {header} else None
