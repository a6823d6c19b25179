"""sass-licm: move what does not change out of loops."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from sassir.analysis.counted import home
from sassir.analysis.effects import effects
from sassir.analysis.region_loops import RegionLoop, region_loops
from sassir.dialect import internals
from sassir.dialect.instruction import SassBranch, SassInstruction
from sassir.dialect.operations import KernelOp
from sassir.rewrite.kernels import free_kernels


@dataclass(frozen=True)
class LoopInvariantCodeMotion(ModulePass):
    """Moves pure operations on values from outside of a loop in front of it, inner loops first.

    Only loops that one block leads to, and goes nowhere else, are served. Constants stay: they would only cost a register.
    """

    name = "sass-licm"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel, _ in free_kernels(op):
            hoist(kernel)


def hoist(kernel: KernelOp) -> int:
    """Returns the number of operations moved."""
    return sum([_hoist(loop) for loop in region_loops(kernel.body)])


def _hoist(loop: RegionLoop) -> int:
    before = loop.preheader
    if before is None or before.last_op is None:
        return 0
    moved = 0
    changed = True
    while changed:
        changed = False
        for block in loop.blocks:
            for op in list(block.ops):
                if _moves(op, loop):
                    op.detach()
                    before.insert_op_before(op, before.last_op)
                    moved, changed = moved + 1, True
    return moved


def _moves(op: object, loop: RegionLoop) -> bool:
    if not isinstance(op, SassInstruction) or isinstance(op, SassBranch) or not op.results or op.guard is not None:
        return False
    operands = internals.operands(op)
    return bool(operands) and effects(op).pure and op.place is None and all(home(v) not in loop.blocks for v in operands)
