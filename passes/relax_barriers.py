"""sass-relax-barriers: no waiting for other warps in a block that has none.

Where a block is one warp, and the warp is together, BAR.SYNC waits for nobody; what is left of it is the order of memory accesses.
The hardware keeps that order within a warp: for `__syncwarp` in such a place ptxas 13.0 leaves a NOP (sm_75 to sm_120; loads and
stores of shared and global memory stay on their sides of it), and so does this pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from sassir.analysis.banks import WARP
from sassir.analysis.divergence import Divergence
from sassir.analysis.effects import effects
from sassir.analysis.memory import ATOMIC
from sassir.dialect.facts import facts_of, record_use
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.operations import KernelOp
from sassir.rewrite.build import instruction
from sassir.rewrite.kernels import free_kernels

_OF_A_THREAD = frozenset({"LD", "LDG", "LDS", "ST", "STG", "STS"}) | ATOMIC
"""Accesses that are made in the order of the code; asynchronous copies and barrier objects are not."""


@dataclass(frozen=True)
class RelaxBarriers(ModulePass):
    """Replaces the barriers of blocks of one warp."""

    name = "sass-relax-barriers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel, _ in free_kernels(op):
            if relax_barriers(kernel):
                record_use(kernel, ["block"])


def relax_barriers(kernel: KernelOp) -> int:
    """Returns the number of barriers replaced."""
    block = facts_of(kernel).block
    ops = [op for b in kernel.body.blocks for op in b.ops]
    barriers = [op for op in ops if isinstance(op, SassInstruction) and op.MNEMONIC == "BAR"]
    if block is None or prod(block) > WARP or not barriers:
        return 0
    if not all(_is_plain(barrier) for barrier in barriers) or any(_is_asynchronous(op) for op in ops):
        return 0
    split = Divergence(kernel.body).split
    together = {b for i, b in enumerate(kernel.body.blocks) if i not in split}
    found = [barrier for barrier in barriers if barrier.parent in together]
    for barrier in found:
        assert barrier.parent is not None
        barrier.parent.insert_op_before(instruction("NOP"), barrier)
        barrier.detach()
        barrier.erase()
    return len(found)


def _is_plain(barrier: SassInstruction) -> bool:
    """All threads of the block wait for each other at barrier 0: what `__syncthreads` is."""
    modifiers = barrier.modifiers.data if barrier.modifiers is not None else ""
    return modifiers in ("SYNC", "SYNC.DEFER_BLOCKING") and barrier.template.text == "0x0" and barrier.guard is None


def _is_asynchronous(op: Operation) -> bool:
    """It may touch shared or global memory later than the code says, or in a way that is not known."""
    does = effects(op)
    shared = (does.loads | does.stores) & {"shared", "global"}
    return bool(shared) and (not isinstance(op, SassInstruction) or op.MNEMONIC not in _OF_A_THREAD)
