"""Control-flow graph over block numbers: order, dominators, frontiers, liveness.

Sets of registers are bits of a Python integer. Nothing here recurses: kernels have thousands of blocks in a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property


class Cfg:
    """The graph of the blocks `0 … n-1`, entered at `roots`.

    A block that no root reaches makes its first member, in block order, a root as well, so that every block has a
    place in the dominator forest. `roots` holds them all.
    """

    def __init__(self, successors: Sequence[Sequence[int]], roots: Sequence[int]) -> None:
        self.successors = successors
        self.predecessors: list[list[int]] = [[] for _ in successors]
        for block, targets in enumerate(successors):
            for target in targets:
                self.predecessors[target].append(block)
        self.roots, self.order = self._search(roots)

    def _search(self, roots: Sequence[int]) -> tuple[frozenset[int], list[int]]:
        """All roots, and the blocks in reverse postorder."""
        seen = [False] * len(self.successors)
        found: list[int] = []
        postorder: list[int] = []
        for root in (*roots, *range(len(self.successors))):
            if seen[root]:
                if root in roots and root not in found:
                    found.append(root)
                continue
            found.append(root)
            seen[root] = True
            stack = [(root, iter(self.successors[root]))]
            while stack:
                block, targets = stack[-1]
                for target in targets:
                    if not seen[target]:
                        seen[target] = True
                        stack.append((target, iter(self.successors[target])))
                        break
                else:
                    stack.pop()
                    postorder.append(block)
        return frozenset(found), postorder[::-1]

    @cached_property
    def dominators(self) -> list[int]:
        """Immediate dominator of each block; -1 where only a root, or several of them, lead to it.

        Cooper, Harvey and Kennedy, A Simple, Fast Dominance Algorithm (2001), with -1 as the common entry of the roots.
        """
        count = len(self.order)
        rank = {block: i for i, block in enumerate(self.order)} | {-1: -1}
        idom: list[int | None] = [-1 if b in self.roots else None for b in range(count)]
        changed = True
        while changed:
            changed = False
            for block in self.order:
                if block in self.roots:
                    continue
                new: int | None = None
                for other in self.predecessors[block]:
                    if idom[other] is None:
                        continue
                    if new is None:
                        new = other
                        continue
                    while other != new:
                        while rank[other] > rank[new]:
                            other = _known(idom[other])
                        while rank[new] > rank[other]:
                            new = _known(idom[new])
                if new != idom[block]:
                    idom[block] = new
                    changed = True
        return [_known(i) for i in idom]

    def dominates(self, above: int, below: int) -> bool:
        """Every path from a root to `below` goes through `above`; a block dominates itself."""
        first, last = self._subtrees[above]
        return first <= self._subtrees[below][0] <= last

    @cached_property
    def _subtrees(self) -> list[tuple[int, int]]:
        """Position of each block in a preorder of the dominator forest, and the last position below it (Dietz, 1982)."""
        children: list[list[int]] = [[] for _ in self.order]
        work: list[int] = []
        for block, above in enumerate(self.dominators):
            (work if above < 0 else children[above]).append(block)
        preorder: list[int] = []
        while work:
            block = work.pop()
            preorder.append(block)
            work += children[block]
        sizes = [1] * len(preorder)
        for block in reversed(preorder):
            if self.dominators[block] >= 0:
                sizes[self.dominators[block]] += sizes[block]
        position = {block: i for i, block in enumerate(preorder)}
        return [(position[block], position[block] + size - 1) for block, size in enumerate(sizes)]

    @cached_property
    def frontiers(self) -> list[list[int]]:
        """Dominance frontier of each block."""
        idom = self.dominators
        frontiers: list[dict[int, None]] = [{} for _ in idom]
        for block, others in enumerate(self.predecessors):
            if len(others) + (block in self.roots) > 1:
                for other in others:
                    while other not in (-1, idom[block]):
                        frontiers[other][block] = None
                        other = idom[other]
        return [list(f) for f in frontiers]

    def live_in(self, uses: Sequence[int], defines: Sequence[int]) -> list[int]:
        """Registers whose value at the start of a block is still read: `uses` are read in a block before it `defines` them."""
        live = list(uses)
        work = list(self.order)
        waiting = set(work)
        while work:
            block = work.pop()
            waiting.discard(block)
            out = 0
            for target in self.successors[block]:
                out |= live[target]
            new = uses[block] | out & ~defines[block]
            if new != live[block]:
                live[block] = new
                for other in self.predecessors[block]:
                    if other not in waiting:
                        waiting.add(other)
                        work.append(other)
        return live


def _known(block: int | None) -> int:
    assert block is not None, "reverse postorder visits a predecessor first"
    return block
