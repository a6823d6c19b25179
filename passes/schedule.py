"""sass-schedule: put the operations of each block into an order in which few of them have to wait."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, SSAValue
from xdsl.passes import ModulePass

from sassir.allocation.launch import LaunchBounds, bounds_of, launch_bounds
from sassir.allocation.original import original_registers
from sassir.analysis.flow import flow_of
from sassir.analysis.liveness import Liveness
from sassir.analysis.pointers import pointers_of
from sassir.dialect import internals
from sassir.dialect.facts import facts_of, record_use
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.operations import KernelOp, UndefinedOp
from sassir.dialect.registers import P, R
from sassir.machine import machine
from sassir.machine.hierarchy import GLOBAL_LOADS, SCHEDULERS
from sassir.rewrite.kernels import free_kernels
from sassir.schedule.budget import LARGEST, register_budget, running_warps
from sassir.schedule.graph import Graph
from sassir.schedule.operand_cache import reading_cycles
from sassir.schedule.order import ANY_NUMBER, HIDING, ROOM, Pressure, cycles_of, is_hidden, schedule

WORTHWHILE = 0.95
"""What a new order must take of the time of the old one: that is estimated for one warp alone, and ptxas knows more of the registers
(sgemm_tiled, 2 % faster by the estimate, took 4 % longer on an H200)."""
ANY_GRID = 2
"""So many times `HIDING` where nobody states the grid: it may leave most of a multiprocessor empty (nbody: 8 of 64 warps)."""
LATER = (4, 8, 12)
"""By how many registers the limit is raised to see whether more cycles are saved: pressure decides early, and its peak may stay the same
(nbody: 186 cycles in place of 294, no register more)."""
ATTEMPTS = 3
"""Orders that are tried for one block, each with fewer registers, until one of them costs no warp."""


PREDICATES = (ANY_NUMBER, P.COUNT, P.COUNT - 2)
"""How many predicates an order tries to keep in use: fewer, where some find no register."""
SPILLED = 20
"""Cycles for each that finds none: a SEL saves it, an ISETP makes it again, and its reader waits for that."""


class _Order(NamedTuple):
    """A new order of a block."""

    time: float
    """Its cycles for each warp that then still runs."""
    order: list[int]
    registers: int
    """General registers, at most."""
    warps: float
    """That still run on each scheduler."""


@dataclass(frozen=True)
class Schedule(ModulePass):
    """Orders every block by its latencies, within `max-registers` general registers if that is possible.

    Without the option it takes as many as cost no warp (see `register_budget`). A block keeps its order where the new one is
    not expected to be clearly faster. Where registers are chosen, it looks at what their banks give in a cycle, and at what the operand
    cache keeps: that no other warp can hide.
    """

    name = "sass-schedule"
    max_registers: int | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        bounds = launch_bounds(op)
        for kernel, arch in free_kernels(op):
            own = bounds_of(kernel, bounds)
            if _Scheduler(kernel, arch, self.max_registers, own).run() and facts_of(kernel).noalias:
                record_use(kernel, ["noalias"])


class _Scheduler:
    def __init__(self, kernel: KernelOp, arch: str, limit: int | None, bounds: LaunchBounds) -> None:
        self.blocks = list(kernel.body.blocks)
        self.facts, self.bounds, self.arch = facts_of(kernel), bounds, arch
        self.liveness = Liveness(flow_of(kernel.body))
        pointers = pointers_of(kernel.body, self.facts)
        self.graphs = [Graph(block, self.facts, pointers, machine(arch)) for block in self.blocks]
        results = [result for graph in self.graphs for op in graph.ops for result in op.results]
        self.allocated = all(r.type.number is not None for r in results if isinstance(r.type, R))  # the stack pointer always is
        self.before = {} if self.allocated else original_registers(kernel.body)
        used = max(self._needs(b, range(len(graph.ops)))[0] for b, graph in enumerate(self.graphs))
        if self.allocated:
            self.limit = LARGEST
        else:
            self.limit = limit if limit is not None else register_budget(arch, used, self.facts, bounds) - ROOM
        self.warps = self._warps(used)

    def run(self) -> bool:
        """Returns whether an operation changed its place."""
        return any([self._order(b) for b in range(len(self.blocks))])

    def _pressure(self, b: int) -> Pressure:
        block, live_out = self.blocks[b], set(self.liveness.live_out[b])
        if block.last_op is not None:
            live_out.update(internals.operands(block.last_op))
        touched: set[SSAValue] = {v for op in self.graphs[b].ops for v in internals.operands(op)}
        return Pressure(self.graphs[b], live_out, [v for v in self.liveness.live_in[b] if v not in touched and v not in live_out])

    def _needs(self, b: int, order: Sequence[int]) -> tuple[int, int]:
        """The most general registers that the block has in use in that order, and the predicates for which there is no register."""
        pressure = self._pressure(b)
        most = pressure.now
        for i in order:
            pressure.take(self.graphs[b].ops[i])
            most = max(most, pressure.now)
        return most, pressure.without_room

    def _warps(self, used: int) -> float:
        """Warps of each scheduler, if so many registers are in use; some, since what a block has no room for is spilled."""
        return max(running_warps(self.arch, used, self.facts, self.bounds), 1) / SCHEDULERS

    def _order(self, b: int) -> bool:
        found = self.graphs[b]
        order = range(len(found.ops))
        cycles, reading = cycles_of(found, order), reading_cycles(found, order, self.before)
        if is_hidden(found, cycles, reading, self.warps, HIDING * (ANY_GRID if self.facts.grid is None else 1)):
            if not self.allocated or reading == len(found.ops):
                return False
            after = schedule(found, self._pressure(b), LARGEST)
            share = reading_cycles(found, after) / reading
        else:
            time, after = min(self._orders(b), default=(cycles, list(order)))
            share = time * self.warps / (cycles + SPILLED * self._needs(b, order)[1])
        if share > WORTHWHILE:
            return False
        _arrange(self.blocks[b], found, after)
        return True

    def _orders(self, b: int) -> Iterator[tuple[float, list[int]]]:
        """New orders, and their cycles for each warp that then still runs: some with fewer registers than the first, until one costs no
        warp, and some that look at registers later than the first, as long as they cost no more warps.

        Where no fact states the grid, none costs a warp if the block loads from global memory, which may bound a large grid (stencil3d7:
        13 % faster with a small one, 31 % slower with a large one on an H200).
        """
        graph = self.graphs[b]
        before = max(self.limit, self._needs(b, range(len(graph.ops)))[0])
        loads = any(isinstance(op, SassInstruction) and op.MNEMONIC in GLOBAL_LOADS for op in graph.ops)
        least = self.warps if loads and self.facts.grid is None else 0.0

        def orders(limit: int) -> Iterator[_Order]:
            for predicates in PREDICATES:
                after = schedule(graph, self._pressure(b), limit, predicates)
                most, without_room = self._needs(b, after)
                warps = self._warps(most + ROOM) if most > before else self.warps
                yield _Order((cycles_of(graph, after) + SPILLED * without_room) / warps, after, most, warps)
                if not without_room:
                    break

        limit = self.limit
        for _ in range(ATTEMPTS):
            found = list(orders(limit))
            yield from [(o.time, o.order) for o in found if o.warps >= least]
            least = least or found[0].warps
            if found[0].registers <= before:
                break
            limit -= found[0].registers - before
        for more in LATER if self.limit < LARGEST - ROOM else ():
            yield from [(o.time, o.order) for o in orders(self.limit + more) if o.warps >= least]


def _arrange(block: Block, found: Graph, order: Sequence[int]) -> None:
    last = block.last_op
    assert last is not None
    for op in found.ops:
        op.detach()
    undefined: dict[SSAValue, UndefinedOp] = {op.value: op for op in block.ops if isinstance(op, UndefinedOp)}
    for op in undefined.values():
        op.detach()
    for op in [found.ops[i] for i in order]:
        for unknown in [undefined.pop(v) for v in dict.fromkeys(internals.operands(op)) if v in undefined]:
            block.insert_op_before(unknown, last)
        block.insert_op_before(op, last)
    for unknown in undefined.values():  # of code behind these, if of any
        if unknown.value.first_use is not None:
            block.insert_op_before(unknown, last)
