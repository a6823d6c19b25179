"""sass-keep-cache: ask for more registers than the code uses, where the blocks that then fit leave more of the first-level cache.

L1 and shared memory of a multiprocessor are one memory, and the driver gives shared memory the smallest part that holds all blocks that
fit. The largest part leaves 28 KiB to L1, and everything that a warp loads from global memory waits for its place there: with as many
blocks and 60 KiB, kernels of the suite are up to 1.7 times as fast on an H200 (docs/passes.md). Where few blocks less leave that much,
this pass keeps them out. The code stays as it is: exact.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import IntAttr, ModuleOp
from xdsl.passes import ModulePass

from sassir.allocation.launch import LaunchBounds, bounds_of, launch_bounds
from sassir.allocation.registers import MOST_REGISTERS
from sassir.analysis.occupancy import shared_partition
from sassir.dialect import internals
from sassir.dialect.facts import facts_of
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.operations import REGISTERS, KernelOp
from sassir.dialect.registers import R, number_of
from sassir.machine import machine
from sassir.machine.hierarchy import GLOBAL_LOADS, HIERARCHIES
from sassir.rewrite.kernels import free_kernels
from sassir.schedule.budget import fitting, running_warps
from sassir.translate.resources import RESERVED_REGISTERS

ENOUGH = 32 * 1024
"""Bytes of L1. The next larger share, 60 KiB on an H200, costs kernels of the suite up to 14 % of their speed, and 28 KiB up to 47 %."""
SHARE = 0.8
"""Of the warps, as many must still run."""


@dataclass(frozen=True)
class KeepCache(ModulePass):
    """Raises the register count of kernels with loads from global memory, registers chosen, and a block size that is a fact."""

    name = "sass-keep-cache"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        bounds = launch_bounds(op)
        for kernel, arch in free_kernels(op):
            count = registers_to_ask_for(kernel, arch, bounds_of(kernel, bounds))
            if count:
                kernel.attributes[REGISTERS] = IntAttr(count)


def registers_to_ask_for(kernel: KernelOp, arch: str, bounds: LaunchBounds) -> int:
    """The smallest count that leaves L1 enough; 0 where the code's own does, or none does so at a low price."""
    facts = facts_of(kernel)
    ops = [op for block in kernel.body.blocks for op in block.ops if isinstance(op, SassInstruction)]
    used = _count(ops)
    if facts.block is None or used is None or not any(op.MNEMONIC in GLOBAL_LOADS for op in ops):
        return 0
    both = HIERARCHIES[machine(arch).arch].first_size

    def left(count: int) -> int:
        return both - shared_partition(arch, fitting(arch, count, facts, bounds).shared)

    if left(used) >= ENOUGH:
        return 0
    least = SHARE * running_warps(arch, used, facts, bounds)
    counts = [count for count in range(used, MOST_REGISTERS + 1) if running_warps(arch, count, facts, bounds) >= least]
    return next((count for count in counts if left(count) >= ENOUGH), 0)


def _count(ops: list[SassInstruction]) -> int | None:
    """The register count that the code needs; None where not all registers are chosen."""
    numbers = {number_of(v) for op in ops for v in (*op.results, *internals.operands(op)) if isinstance(v.type, R)}
    return None if None in numbers else max([-1, *[n for n in numbers if n is not None]]) + 1 + RESERVED_REGISTERS
