"""How far away the next use of a value is, along the nearest path.

Belady's rule, to give up what is needed last, asks for it. To leave a loop counts as a long way, so that what a loop needs stays in
registers while it runs (Braun and Hack, Register Spilling and Live-Range Splitting for SSA-Form Programs, 2009).
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import SSAValue

from sassir.analysis.flow import Flow
from sassir.analysis.loops import Loops
from sassir.dialect import internals
from sassir.dialect.edges import forwarded, own_operands

FAR = 100_000
"""The way out of a loop, in instructions."""
Distances = dict[SSAValue, int]


class NextUses:
    """Distances in operations for the values that `counts` chooses. A value that is not read any more is absent."""

    def __init__(self, flow: Flow, loops: Loops, counts: Callable[[SSAValue], bool]) -> None:
        self.flow = flow
        self.loops = loops
        self.counts = counts
        self.passed = [forwarded(block.last_op) if block.last_op is not None else [] for block in flow.blocks]
        """What each block gives to the arguments of each of its successors."""
        self.length: list[int] = []
        self.positions: list[dict[SSAValue, list[int]]] = []
        """Where each block itself reads a value, the last position first; what its branch passes on is not read there."""
        self._made: list[set[SSAValue]] = []
        for block in flow.blocks:
            positions: dict[SSAValue, list[int]] = {}
            made: set[SSAValue] = set()
            length = 0
            for op in block.ops:
                for value in own_operands(op) if op is block.last_op else internals.operands(op):
                    if counts(value):
                        positions.setdefault(value, []).append(length)
                made.update(op.results)
                length += 1
            for places in positions.values():
                places.reverse()
            self.positions.append(positions)
            self.length.append(length)
            self._made.append(made)
        self.entry: list[Distances] = [{} for _ in flow.blocks]
        """From the start of each block, its arguments included."""
        self.exit: list[Distances] = [{} for _ in flow.blocks]
        """From its end; what its branch passes on counts as read where the argument is."""
        self._solve()

    def _solve(self) -> None:
        work = list(self.flow.cfg.order)
        waiting = set(work)
        while work:
            b = work.pop()
            waiting.discard(b)
            self.exit[b] = self._behind(b)
            entry = {v: self.length[b] + d for v, d in self.exit[b].items() if v not in self._made[b]}
            entry |= {v: places[-1] for v, places in self.positions[b].items() if v not in self._made[b]}
            if entry != self.entry[b]:
                self.entry[b] = entry
                for other in self.flow.cfg.predecessors[b]:
                    if other not in waiting:
                        waiting.add(other)
                        work.append(other)

    def _behind(self, b: int) -> Distances:
        found = Distances()
        for i, s in enumerate(self.flow.cfg.successors[b]):
            arguments = self.flow.blocks[s].args
            own = set(arguments)
            way = FAR if self._leaves_loop(b, s) else 0
            values = [(v, d) for v, d in self.entry[s].items() if v not in own]
            values += [(v, self.entry[s][a]) for v, a in zip(self.passed[b][i], arguments, strict=True) if a in self.entry[s]]
            for value, distance in values:
                if distance + way < found.get(value, distance + way + 1):
                    found[value] = distance + way
        return found

    def _leaves_loop(self, b: int, s: int) -> bool:
        loop = self.loops.innermost[b]
        inner = self.loops.innermost[s]
        while inner is not None and inner is not loop:
            inner = inner.parent
        return inner is not loop
