"""sass-unroll: several iterations of a counted loop in a row, tested once, so that their loads can be under way together.

A loop whose number of iterations is known and small is unrolled completely. Otherwise a test in front of the copies makes
sure that all of them are due, and what is left over runs in the original loop. Exact: every iteration does what it did.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block
from xdsl.passes import ModulePass

from sassir.analysis.counted import CountedLoop, counted_loop, home
from sassir.analysis.guarded_loops import guarded_loops
from sassir.analysis.propagated import propagate
from sassir.analysis.region_loops import region_loops
from sassir.analysis.simulated import SimulatedLoop, simulated_loop
from sassir.dialect.facts import facts_of, record_use
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.operations import KernelOp
from sassir.dialect.registers import R
from sassir.rewrite.call_arguments import pass_only_needed
from sassir.rewrite.flow import tidy
from sassir.rewrite.kernels import free_kernels
from sassir.rewrite.layout import repair_layout
from sassir.rewrite.sparing import sparing_ranges
from sassir.rewrite.unroll import unroll, unroll_completely, unroll_evenly
from sassir.schedule.budget import running_threads

FULL_SIZE = 512
"""A loop with loads is unrolled completely if that makes no more instructions."""
SMALL = 128
"""The same for a loop without: all it saves is the test, and long code leaves the instruction cache (measured on an H200:
poly_strict, unrolled to 320 instructions without a load, takes 1.36 times as long)."""
SIZE = 320
"""Instructions that the copies of a loop together shall not exceed."""
LOADS = 16
"""Loads of the copies together that are enough to fill the time of one where the multiprocessor is full of threads."""
IN_FLIGHT = 32 << 10
"""Bytes that a multiprocessor has to have asked for at a time: an H200 delivers 4.3 TB/s to 132 of them after some 0.65 us, which is
21 KB, and threads do not ask all at once."""
_LOADS = frozenset({"LD", "LDG", "LDL", "LDS"})
_FAR_LOADS = frozenset({"LD", "LDG", "LDS"})
"""Those whose time copies of a loop are to fill; local memory is in the first-level cache."""


@dataclass(frozen=True)
class Unroll(ModulePass):
    """Unrolls counted innermost loops: completely where that is small, else `factor` times, by default chosen by size."""

    name = "sass-unroll"
    factor: int | None = None
    partial: bool = True
    """Also loops that stay loops."""
    remainder: bool = True
    """Also loops of which iterations may be left over."""

    @sparing_ranges
    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel, arch in free_kernels(op):
            known = propagate(kernel, arch)
            loops = [loop for loop in region_loops(kernel.body) if loop.innermost and not loop.calls]
            counted = [found for loop in loops if (found := counted_loop(loop, known) or simulated_loop(loop, known))]
            guarded = guarded_loops(kernel)
            counted += [c for g in guarded if (c := counted_loop(g.loop, known)) and all(home(v) in g.outside for v in c.bound.values)]
            cold = frozenset[Block]().union(*[g.cold for g in guarded])
            if any([self._unroll(kernel, found, arch, cold) for found in counted]):
                pass_only_needed(kernel)
                record_use(kernel, known.used)
                repair_layout(kernel)
                tidy(kernel)

    def _unroll(self, kernel: KernelOp, counted: CountedLoop | SimulatedLoop, arch: str, cold: frozenset[Block]) -> bool:
        """Returns whether the loop was unrolled. Blocks that are `cold` count as no code: they hardly ever run."""
        ops = [op for block in counted.loop.blocks - cold for op in block.ops if isinstance(op, SassInstruction)]
        if any(op.link is not None for op in ops):  # the linker fills in one instruction, no copies
            return False
        loads = sum(op.MNEMONIC in _LOADS for op in ops)
        if counted.trips is not None and counted.trips * len(ops) <= (FULL_SIZE if loads else SMALL):
            unroll_completely(kernel, counted, counted.trips)
            return True
        if not self.partial or isinstance(counted, SimulatedLoop):
            return False
        far = sum(op.MNEMONIC in _FAR_LOADS for op in ops)
        scarce = counted.trips is not None and any(op.MNEMONIC == "LDG" for op in ops)
        threads = running_threads(arch, facts_of(kernel)) if scarce else IN_FLIGHT
        factor = self.factor if self.factor is not None else _factor(counted, len(ops), far, max(LOADS, IN_FLIGHT // (4 * threads)))
        if factor > 1 and counted.trips is not None and counted.trips % factor == 0:
            unroll_evenly(kernel, counted, factor)
            return True
        if factor < 2 or not self.remainder or not isinstance(counted.tested.type, R):
            return False
        unroll(kernel, counted, factor, arch)
        return True


def _factor(counted: CountedLoop, size: int, loads: int, wanted: int) -> int:
    """A power of two: as many copies as give enough loads, in no more code than fits; 1 for a loop without loads."""
    factor = 1
    while loads and factor * 2 * size <= SIZE and factor * loads < wanted and (counted.trips is None or factor * 2 <= counted.trips):
        factor *= 2
    return factor
