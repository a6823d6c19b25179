"""List scheduling: choose the next operation of a block again and again, until none is left.

Ready operations go by the longest chain of latencies behind them, as long as registers last; when the values that are
alive come near the limit, by what they do to that number (Goodman and Hsu, Code scheduling and register allocation in
large basic blocks, 1988).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heappop, heappush

from xdsl.ir import Operation, SSAValue

from sassir.dialect import internals
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.operations import UndefinedOp
from sassir.dialect.registers import P, R
from sassir.schedule.graph import Graph
from sassir.schedule.operand_cache import OperandCache

ROOM = 4
"""General registers that are kept free for copies and aligned groups before pressure decides."""
HIDING = 2
"""How many times the cycles of a warp the others of its scheduler must issue until its waits are taken to be hidden: they do not come
evenly. ptxas's registers in its own order have few bank conflicts, which is then worth more (conv3x3, 2 % slower without this rule)."""
ANY_NUMBER = 1 << 16
"""Of predicates."""
SLACK, NEAR = 8, 32
"""Among operations with so many cycles less behind them than the first one, and so many of them, the operand cache decides."""


class Pressure:
    """The numbers of general registers and of predicates that hold values, while a block is put in order."""

    def __init__(self, graph: Graph, live_out: Iterable[SSAValue], through: Iterable[SSAValue]) -> None:
        """`live_out`: the values needed behind the block; `through`: those that are alive all along and not used in it."""
        self.kept = set(live_out)
        self.uses: dict[SSAValue, int] = {}
        for op in graph.ops:
            for value in _read(op):
                self.uses[value] = self.uses.get(value, 0) + 1
        inside = {result for op in graph.ops for result in op.results}
        here = [*({*self.uses, *self.kept} - inside), *through]
        self.now = sum(isinstance(v.type, R) for v in here)
        self.predicates = sum(isinstance(v.type, P) for v in here)
        self.without_room = 0
        """Predicates for which no register was left."""

    def change(self, op: Operation, file: type[R | P] = R) -> int:
        """By how much the number of those in `file` rises when `op` comes next."""
        freed = sum(self.uses[v] == 1 and v not in self.kept and isinstance(v.type, file) for v in _read(op))
        made = sum(isinstance(r.type, file) for r in op.results)
        return made - freed

    def take(self, op: Operation) -> None:
        """`op` comes next."""
        self.now += self.change(op)
        made = self.change(op, P)
        self.predicates += made
        self.without_room += max(0, min(made, self.predicates - P.COUNT))
        for value in _read(op):
            self.uses[value] -= 1
        unread = [r for r in op.results if r not in self.kept and not self.uses.get(r)]
        self.now -= sum(isinstance(r.type, R) for r in unread)
        self.predicates -= sum(isinstance(r.type, P) for r in unread)


def _read(op: Operation) -> set[SSAValue]:
    """The values that must be in registers in front of `op`."""
    return {v for v in internals.operands(op) if not isinstance(v.owner, UndefinedOp)}


def heights(graph: Graph) -> list[int]:
    """For each operation, the cycles from its issue to the end of the longest chain that starts with it."""
    found = [0] * len(graph.ops)
    for i in range(len(graph.ops) - 1, -1, -1):
        found[i] = max([1, *[cycles + found[j] for j, cycles in graph.successors[i].items()]])
    return found


def cycles_of(graph: Graph, order: Sequence[int]) -> int:
    """The cycle after the last issue when operations are issued one a cycle in `order`, each as soon as it may."""
    ready = [0] * len(graph.ops)
    busy: dict[str, int] = {}
    cache = OperandCache(graph)
    now = 0
    for i in order:
        timing = graph.timings[i]
        start = max(now, ready[i], busy.get(timing.pipe, 0) if timing else 0)
        if timing is not None:
            busy[timing.pipe] = start + timing.issue
        for j, cycles in graph.successors[i].items():
            ready[j] = max(ready[j], start + cycles)
        now = start + cache.take(i)
    return now


def is_hidden(graph: Graph, cycles: int, reading: int, warps: float, times: float = HIDING) -> bool:
    """While one warp waits, in a block that takes it so many cycles, the other `warps` of its scheduler issue enough to hide it.

    They must issue so many `times` as long, each for the cycles in which it reads its operands; `HIDING` times, where a barrier keeps
    those of a thread block together.
    """
    barrier = any([isinstance(op, SassInstruction) and op.MNEMONIC == "BAR" for op in graph.ops])
    return (HIDING if barrier else times) * cycles <= warps * reading


def schedule(graph: Graph, pressure: Pressure, limit: int, predicates: int = ANY_NUMBER) -> list[int]:
    """An order of the operations by their position. Tries to keep at most `limit` general registers and `predicates` in use."""
    height = heights(graph)
    missing = [0] * len(graph.ops)
    for after in graph.successors:
        for j in after:
            missing[j] += 1
    earliest = [0] * len(graph.ops)
    busy: dict[str, int] = {}
    waiting: list[tuple[int, int, int]] = []
    ready: list[tuple[int, int]] = []
    for i, count in enumerate(missing):
        if not count:
            heappush(waiting, (0, -height[i], i))
    order: list[int] = []
    cache = OperandCache(graph)
    now = 0
    while waiting or ready:
        while waiting and (waiting[0][0] <= now or not ready):
            time, key, i = heappop(waiting)
            now = max(now, time) if not ready else now
            heappush(ready, (key, i))
        if pressure.now + ROOM > limit:
            scarce = R
        else:
            scarce = P if pressure.predicates >= predicates and pressure.change(graph.ops[ready[0][1]], P) > 0 else None
        if scarce is None:
            i = _next(ready, cache)
        else:
            i = _least(graph, pressure, scarce, [i for _, i in ready] + [i for _, _, i in waiting], earliest, height)
            ready = [item for item in ready if item[1] != i]
            waiting = [item for item in waiting if item[2] != i]
        timing = graph.timings[i]
        start = max(now, earliest[i], busy.get(timing.pipe, 0) if timing else 0)
        if timing is not None:
            busy[timing.pipe] = start + timing.issue
        order.append(i)
        pressure.take(graph.ops[i])
        now = start + cache.take(i)
        for j, cycles in graph.successors[i].items():
            earliest[j] = max(earliest[j], start + cycles)
            missing[j] -= 1
            if not missing[j]:
                heappush(waiting, (earliest[j], -height[j], j))
    return order


def _next(ready: list[tuple[int, int]], cache: OperandCache) -> int:
    """Take the operation with most behind it from those that are ready; or one nearly like it that finds more in the operand cache."""
    first = heappop(ready)
    if not cache.matters:
        return first[1]
    near = [first]
    while ready and len(near) < NEAR and ready[0][0] <= first[0] + SLACK:
        near.append(heappop(ready))
    best = min(near, key=lambda item: (cache.cycles(item[1]), item))
    for item in near:
        if item is not best:
            heappush(ready, item)
    return best[1]


def _least(
    graph: Graph, pressure: Pressure, file: type[R | P], candidates: Sequence[int], earliest: Sequence[int], height: Sequence[int]
) -> int:
    """The candidate that needs the fewest registers of `file`; among equals the one that can go first, then the one with most behind it."""
    return min(candidates, key=lambda i: (pressure.change(graph.ops[i], file), earliest[i], -height[i], i))
