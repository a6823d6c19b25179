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

from sassir.analysis.region_loops import RegionLoop, region_loops
from sassir.dialect.edges import entered_from_elsewhere, predecessors
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.operations import KernelOp
from sassir.rewrite.arms import Arm, convert, find_arm
from sassir.rewrite.flow import tidy
from sassir.rewrite.kernels import free_kernels
from sassir.rewrite.layout import repair_layout

MOST = 8
"""Instructions of an arm: a warp that would have skipped it executes them in the time of the branch, the barrier and their latency."""
LOOP_MOST = 32
"""The same where a loop with loads gets straight by it, so that loads of several iterations can be under way together."""
_LOADS = frozenset({"LD", "LDG"})


@dataclass(frozen=True)
class ConvertBranches(ModulePass):
    """Guards the arms of at most `most` instructions, and longer ones that keep a loop with loads from being straight; inner ones first."""

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
    loops = [loop for loop in region_loops(kernel.body) if loop.innermost]
    converted = 0
    for block in list(kernel.body.blocks):
        arm = find_arm(block, lone, max(most, LOOP_MOST)) if block.parent is not None else None
        if arm is not None and (len(arm.block.ops) <= most + 1 or any(_gets_straight(loop, arm) for loop in loops)):
            convert(arm)
            converted += 1
    return converted


def _gets_straight(loop: RegionLoop, arm: Arm) -> bool:
    """Whether the arm is all that parts control in a loop with loads, but for the branch that closes it."""
    ends = [block.last_op for block in loop.blocks if block is not arm.before and block.last_op is not None]
    if arm.block not in loop.blocks or any(sum(s in loop.blocks for s in last.successors) > 1 for last in ends):
        return False
    return any(isinstance(op, SassInstruction) and op.MNEMONIC in _LOADS for block in loop.blocks for op in block.ops)
