"""sass-rotate-loops: a loop that tests at the top gets a guard in front of it, and tests at the bottom.

Loop inversion (Muchnick, Advanced Compiler Design and Implementation, 1997, 18.5): the header is copied in front of the loop, and goes
to its end. An iteration takes one branch less, and what else is done to loops finds the test where it looks for it, and a block in front
of the loop that leads nowhere else. Exact: every thread executes the header as often as before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass

from sassir.analysis.divergence import Divergence
from sassir.analysis.effects import effects
from sassir.analysis.region_loops import RegionLoop, region_loops
from sassir.dialect.edges import decides, entered_from_elsewhere
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.operations import KernelOp, LabelOp, NextOp
from sassir.dialect.registers import UP, UR, B, file_of
from sassir.rewrite.flow import tidy
from sassir.rewrite.kernels import free_kernels
from sassir.rewrite.layout import repair_layout
from sassir.rewrite.rotate import is_header_alone, rotate

MOST = 32
"""Instructions of a header. Tests are shorter, also in the bench kernels built with `-Xcicc -O0 -Xptxas -O0`: up to 25, the address and the
load of a bound. What is longer is a loop left in the middle: with that of nw_tile, 45 behind sass-convert-branches, sass-unroll would make
the code longer by half, and by the timing model no faster."""
_OF_THE_WARP = (UP.FILE, UR.FILE)


@dataclass(frozen=True)
class RotateLoops(ModulePass):
    """Turns loops around whose header has at most `most` instructions and can be copied.

    A header stays that sets or changes a convergence barrier, or in which the linker fills something in, and so does a loop with calls.
    What the threads of a warp do together (barriers, exchanges, uniform registers) is copied only where they are all there. A loop that
    does nothing behind its header needs no copy.
    """

    name = "sass-rotate-loops"
    most: int = MOST

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel, _ in free_kernels(op):
            while rotate_loops(kernel, self.most):
                repair_layout(kernel)
                tidy(kernel)


def rotate_loops(kernel: KernelOp, most: int) -> int:
    """Turn around loops that do not contain one another. Returns their number."""
    found = [loop for loop in region_loops(kernel.body) if is_top_tested(loop)]
    staying = _staying(kernel, [loop for loop in found if not is_header_alone(loop)], most)
    done = set[Block]()
    rotated = 0
    for loop in found:
        if loop.header not in staying and done.isdisjoint(loop.blocks):
            rotate(kernel, loop)
            done |= loop.blocks
            rotated += 1
    return rotated


def is_top_tested(loop: RegionLoop) -> bool:
    """Whether the header leaves the loop or goes on, and no block that leads back to it leaves the loop as well."""
    test = loop.header.last_op
    if test is None or not decides(test) or all(s in loop.blocks for s in test.successors):
        return False
    return all(latch.last_op is not None and loop.blocks.issuperset(latch.last_op.successors) for latch in loop.latches)


def _staying(kernel: KernelOp, loops: Sequence[RegionLoop], most: int) -> set[Block]:
    """The headers that cannot be copied."""
    if not loops:
        return set()
    staying = entered_from_elsewhere(kernel.body).union([loop.header for loop in loops if not _can_be_copied(loop, most)])
    of_the_warp = {loop.header for loop in loops if _is_of_the_warp(loop.header)}
    return staying | (of_the_warp & _split(kernel)) if of_the_warp else staying


def _can_be_copied(loop: RegionLoop, most: int) -> bool:
    """Whether the header may be there twice, and is short enough."""
    header = loop.header
    ops = [op for op in header.ops if isinstance(op, SassInstruction)]
    if loop.calls or len(ops) > most or any(op.link is not None for op in ops):
        return False
    if any(isinstance(op, LabelOp) for op in header.ops) and not all(_is_plain(latch.last_op) for latch in loop.latches):
        return False
    return not any(isinstance(result.type, B) for op in ops for result in op.results)


def _is_plain(end: Operation | None) -> bool:
    """Whether a block ends in a way that needs no label where it leads."""
    return isinstance(end, NextOp) or (isinstance(end, SassInstruction) and end.MNEMONIC == "BRA")


def _is_of_the_warp(header: Block) -> bool:
    """Whether the threads of a warp do something together there, such as to write a uniform register for what comes behind."""
    does = [effects(op) for op in header.ops]
    results = [result for op in header.ops for result in op.results if any(_is_behind(use.operation, header) for use in result.uses)]
    return any(d.warp or d.ordered for d in does) or any(file_of(v) in _OF_THE_WARP for v in [*header.args, *results])


def _is_behind(op: Operation, header: Block) -> bool:
    return op is header.last_op or op.parent is not header


def _split(kernel: KernelOp) -> set[Block]:
    """The blocks in which some threads of a warp may be without the others."""
    blocks = list(kernel.body.blocks)
    return {blocks[i] for i in Divergence(kernel.body).split}
