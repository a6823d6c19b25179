"""sass-licm: compute in front of a loop what does not change in it, as far as registers last."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from sassir.analysis.counted import home
from sassir.analysis.effects import effects
from sassir.analysis.flow import Flow, flow_of
from sassir.analysis.liveness import Liveness
from sassir.analysis.pressure import pressure
from sassir.analysis.region_loops import RegionLoop, region_loops
from sassir.dialect import internals
from sassir.dialect.facts import facts_of
from sassir.dialect.instruction import SassBranch, SassInstruction
from sassir.dialect.operations import KernelOp
from sassir.dialect.registers import UP, UR, P, R, SassRegister, file_of
from sassir.rewrite.kernels import free_kernels
from sassir.schedule.budget import register_budget

LEFT = {R.FILE: 16, P.FILE: 2, UR.FILE: 8, UP.FILE: 2}
"""Registers of each file that stay free for the scheduler: loads that are under way together need some."""
_COUNT = {P.FILE: P.COUNT, UR.FILE: UR.COUNT, UP.FILE: UP.COUNT}


@dataclass(frozen=True)
class LoopInvariantCodeMotion(ModulePass):
    """Moves pure operations on values from outside of a loop in front of it, inner loops first.

    Only loops that one block leads to, and goes nowhere else, are served. What would cost a register where none is free within the
    budget (see `register_budget`) stays.
    """

    name = "sass-licm"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel, arch in free_kernels(op):
            hoist(kernel, arch)


def hoist(kernel: KernelOp, arch: str) -> int:
    """Returns the number of operations moved."""
    flow = flow_of(kernel.body)
    found = pressure(Liveness(flow))
    most = {R.FILE: register_budget(arch, found.peak.get(R.FILE, 0), facts_of(kernel)), **_COUNT}
    total = 0
    for loop in region_loops(kernel.body):
        used = {file: max(found.by_block[flow.number[b]].get(file, 0) for b in loop.blocks) for file in most}
        moved = _Hoist(loop, flow, {file: most[file] - used[file] - LEFT[file] for file in most}).run()
        if moved:
            found = pressure(Liveness(flow))
        total += moved
    return total


class _Hoist:
    def __init__(self, loop: RegionLoop, flow: Flow, room: dict[str, int]) -> None:
        self.loop = loop
        self.flow = flow
        self.room = room
        """Free registers by file."""

    def run(self) -> int:
        """Returns the number of operations moved."""
        before = self.loop.preheader
        if before is None or before.last_op is None or before.parent is None:
            return 0
        moved = 0
        work = [op for block in before.parent.blocks if block in self.loop.blocks for op in block.ops if self._is_invariant(op)]
        while work:
            op = work.pop()
            cost = self._cost(op)
            if op.parent is before or any(count > self.room.get(file, 0) for file, count in cost.items() if count > 0):
                continue
            for file, count in cost.items():
                self.room[file] = self.room.get(file, 0) - count
            users = [use.operation for result in op.results for use in result.uses]
            op.detach()
            before.insert_op_before(op, before.last_op)
            moved += 1
            work += [user for user in users if self._is_invariant(user)]
        return moved

    def _is_invariant(self, op: Operation) -> bool:
        if not isinstance(op, SassInstruction) or isinstance(op, SassBranch) or not op.results or op.guard is not None:
            return False
        if op.parent is None or op.parent not in self.loop.blocks or op.place is not None or not effects(op).pure:
            return False
        if any(isinstance(r.type, SassRegister) and r.type.number is not None for r in op.results):
            return False
        operands = internals.operands(op)
        return all(home(v) not in self.loop.blocks for v in operands) and (bool(operands) or self._always_runs(op.parent))

    def _always_runs(self, block: Block) -> bool:
        """Every iteration comes through: elsewhere a constant costs less than a register for the whole loop."""
        number = self.flow.number
        return all(self.flow.cfg.dominates(number[block], number[latch]) for latch in self.loop.latches)

    def _cost(self, op: Operation) -> dict[str, int]:
        """The registers that the results take all along the loop, less those of operands that it then needs no more."""
        cost: dict[str, int] = {}
        for result in op.results:
            cost[file_of(result)] = cost.get(file_of(result), 0) + 1
        for value in {v for v in internals.operands(op) if self._is_last_read_by(op, v)}:
            cost[file_of(value)] = cost.get(file_of(value), 0) - 1
        return cost

    def _is_last_read_by(self, op: Operation, value: SSAValue) -> bool:
        return all(use.operation is op or use.operation.parent is self.loop.preheader for use in value.uses)
