"""sass-schedule: put the operations of each block into an order in which few of them have to wait."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, SSAValue
from xdsl.passes import ModulePass

from sassir.analysis.flow import flow_of
from sassir.analysis.liveness import Liveness
from sassir.analysis.pointers import pointers_of
from sassir.dialect import internals
from sassir.dialect.facts import facts_of, record_use
from sassir.dialect.operations import KernelOp, UndefinedOp
from sassir.dialect.registers import R
from sassir.machine import machine
from sassir.rewrite.kernels import free_kernels
from sassir.schedule.budget import register_budget
from sassir.schedule.graph import Graph
from sassir.schedule.order import ROOM, Pressure, cycles_of, schedule

WORTHWHILE = 0.95
"""What a new order must take of the time of the old one: that is estimated for one warp alone, and ptxas knows more of the registers
(sgemm_tiled, 2 % faster by the estimate, took 4 % longer on an H200)."""


@dataclass(frozen=True)
class Schedule(ModulePass):
    """Orders every block by its latencies, within `max-registers` general registers if that is possible.

    Without the option it takes as many as cost no warp (see `register_budget`). A block keeps its order where the new one is
    not expected to be clearly faster.
    """

    name = "sass-schedule"
    max_registers: int | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel, arch in free_kernels(op):
            if _Scheduler(kernel, arch, self.max_registers).run() and facts_of(kernel).noalias:
                record_use(kernel, ["noalias"])


class _Scheduler:
    def __init__(self, kernel: KernelOp, arch: str, limit: int | None) -> None:
        self.blocks = list(kernel.body.blocks)
        self.facts = facts_of(kernel)
        self.machine = machine(arch)
        self.liveness = Liveness(flow_of(kernel.body))
        pointers = pointers_of(kernel.body, self.facts)
        self.graphs = [Graph(block, self.facts, pointers, self.machine) for block in self.blocks]
        used = max(self._most(b) for b in range(len(self.blocks)))
        self.limit = limit if limit is not None else register_budget(arch, used, self.facts) - ROOM

    def run(self) -> bool:
        """Returns whether an operation changed its place."""
        return any([self._order(b) for b in range(len(self.blocks))])

    def _pressure(self, b: int) -> Pressure:
        block, live_out = self.blocks[b], set(self.liveness.live_out[b])
        if block.last_op is not None:
            live_out.update(internals.operands(block.last_op))
        touched: set[SSAValue] = {v for op in self.graphs[b].ops for v in internals.operands(op)}
        through = [v for v in self.liveness.live_in[b] if isinstance(v.type, R) and v not in touched and v not in live_out]
        return Pressure(self.graphs[b], live_out, len(through))

    def _most(self, b: int) -> int:
        """The most general registers that the block has in use."""
        pressure = self._pressure(b)
        most = pressure.now
        for op in self.graphs[b].ops:
            pressure.take(op)
            most = max(most, pressure.now)
        return most

    def _order(self, b: int) -> bool:
        found = self.graphs[b]
        before = range(len(found.ops))
        after = schedule(found, self._pressure(b), self.limit)
        if cycles_of(found, after) > WORTHWHILE * cycles_of(found, before):
            return False
        _arrange(self.blocks[b], found, after)
        return True


def _arrange(block: Block, found: Graph, order: Sequence[int]) -> None:
    last = block.last_op
    assert last is not None
    for op in found.ops:
        op.detach()
    undefined = {op for op in block.ops if isinstance(op, UndefinedOp)}
    for i in order:
        for op in [v.owner for v in internals.operands(found.ops[i]) if v.owner in undefined]:
            assert isinstance(op, UndefinedOp)
            undefined.remove(op)
            op.detach()
            block.insert_op_before(op, last)
        block.insert_op_before(found.ops[i], last)
