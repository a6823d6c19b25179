"""sass-convert-branches: short arms of a branch become guarded instructions, so that the code around them is one block.

If-conversion (Allen, Kennedy, Porterfield and Warren, Conversion of control dependence to data dependence, 1983). In one
block the loads of several arms can be under way together, and the barrier at which the warp met again is not needed.
Exact: each thread executes what it executed; of the others only registers that nobody reads are written.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from sassir.dialect.edges import entered_from_elsewhere, predecessors
from sassir.dialect.operations import KernelOp
from sassir.rewrite.arms import convert, find_arm
from sassir.rewrite.flow import tidy
from sassir.rewrite.kernels import free_kernels
from sassir.rewrite.layout import repair_layout

MOST = 8
"""Instructions of an arm: a warp that would have skipped it executes them in the time of the branch, the barrier and their latency."""


@dataclass(frozen=True)
class ConvertBranches(ModulePass):
    """Guards the arms of at most `most` instructions, inner ones first."""

    name = "sass-convert-branches"
    most: int = MOST

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel, _ in free_kernels(op):
            while convert_branches(kernel, self.most):
                repair_layout(kernel)
                tidy(kernel)


def convert_branches(kernel: KernelOp, most: int) -> int:
    """Returns the number of arms that are in the block of their branch now."""
    lone = {block for block, before in predecessors(kernel.body).items() if len(before) == 1} - entered_from_elsewhere(kernel.body)
    converted = 0
    for block in list(kernel.body.blocks):
        arm = find_arm(block, lone, most) if block.parent is not None else None
        if arm is not None:
            convert(arm)
            converted += 1
    return converted
