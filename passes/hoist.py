"""sass-hoist: begin a block early, in the only block that leads to it, where something else is waited for anyway."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass

from sassir.allocation.launch import LaunchBounds, bounds_of, launch_bounds
from sassir.analysis.effects import effects
from sassir.analysis.flow import flow_of
from sassir.analysis.liveness import Liveness, home
from sassir.analysis.loops import loops_of
from sassir.analysis.pointers import pointers_of
from sassir.analysis.pressure import Occupied, pressure
from sassir.dialect import internals
from sassir.dialect.facts import facts_of
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.operations import KernelOp, NextOp
from sassir.dialect.registers import P, R, SassRegister, file_of
from sassir.machine import machine
from sassir.machine.hierarchy import SCHEDULERS
from sassir.rewrite.kernels import free_kernels
from sassir.schedule.budget import register_budget, running_warps
from sassir.schedule.graph import Graph, overwritten
from sassir.schedule.order import cycles_of, is_hidden

LEFT = {R.FILE: 8, P.FILE: 2}
"""Registers that stay free for the scheduler. Results in other files are not moved."""


@dataclass(frozen=True)
class Hoist(ModulePass):
    """Moves pure operations up into the only block that leads to theirs, from which `sass-schedule` makes one order.

    They then run even where control goes another way, so only blocks are served whose waits the other warps do not hide, and
    none that leads to a call, as the slow ways of divisions do. Nothing that can fault moves.
    """

    name = "sass-hoist"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        bounds = launch_bounds(op)
        for kernel, arch in free_kernels(op):
            hoist(kernel, arch, bounds_of(kernel, bounds))


def hoist(kernel: KernelOp, arch: str, bounds: LaunchBounds) -> int:
    """Returns the number of operations moved."""
    flow, facts = flow_of(kernel.body), facts_of(kernel)
    loops, found = loops_of(flow.cfg), pressure(Liveness(flow))
    used = found.peak.get(R.FILE, 0)
    most = {R.FILE: register_budget(arch, used, facts, bounds), P.FILE: P.COUNT}
    warps = running_warps(arch, used, facts, bounds) / SCHEDULERS
    pointers = pointers_of(kernel.body, facts)
    moved = 0
    for b in flow.cfg.order:
        before = flow.cfg.predecessors[b]
        if len(before) != 1 or b in flow.cfg.roots or loops.innermost[b] is not loops.innermost[before[0]]:
            continue
        above, block = flow.blocks[before[0]], flow.blocks[b]
        if not _passes_on(above) or _calls(block):
            continue
        graph = Graph(block, facts, pointers, machine(arch))
        order = range(len(graph.ops))
        if not is_hidden(graph, cycles_of(graph, order), len(order), warps):
            moved += _move(block, above, {file: most[file] - found.by_block[before[0]].get(file, 0) - left for file, left in LEFT.items()})
    return moved


def _move(block: Block, above: Block, room: Occupied) -> int:
    """Move what may move, in order, while registers last."""
    moved = 0
    assert above.last_op is not None
    for op in list(block.ops):
        if _may_move(op) and all(home(v) is not block and v.owner is not above.last_op for v in internals.operands(op)):
            files = [file_of(result) for result in op.results]
            if all(files.count(file) <= room.get(file, 0) for file in files):
                room = {file: count - files.count(file) for file, count in room.items()}
                op.detach()
                above.insert_op_before(op, above.last_op)
                moved += 1
    return moved


def _may_move(op: Operation) -> bool:
    """It has no effect, and cannot fault: not even with a wild index into constants."""
    if not isinstance(op, SassInstruction) or not op.results or op.guard is not None or op.place is not None:
        return False
    does = effects(op)
    if not does.pure or (does.loads and internals.operands(op)) or overwritten(op):
        return False
    return not any(isinstance(r.type, SassRegister) and r.type.number is not None for r in op.results)


def _passes_on(block: Block) -> bool:
    """It ends by going on, with a plain branch, or where some threads end."""
    last = block.last_op
    return isinstance(last, NextOp) or (isinstance(last, SassInstruction) and last.MNEMONIC in ("BRA", "EXIT"))


def _calls(block: Block) -> bool:
    return any([isinstance(op, SassInstruction) and op.MNEMONIC == "CALL" for op in block.ops])
