"""sass-relax-barriers: no waiting where one warp alone has something to wait for.

A block of one warp has no other to wait for. In a larger one, the tail of a reduction or a scan is work of the first warp alone: a
barrier between two such parts orders nothing between warps. Where the warp is together, what is left of the barrier is the order
of its memory accesses, and that the hardware keeps: for `__syncwarp` in such a place ptxas 13.0 leaves a NOP (sm_75 to sm_120;
loads and stores of shared and global memory stay on their sides of it), and so does this pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeGuard

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass

from sassir.analysis.arguments import Argument, arguments
from sassir.analysis.banks import WARP
from sassir.analysis.divergence import Divergence
from sassir.analysis.effects import effects
from sassir.analysis.memory import ATOMIC
from sassir.analysis.ranges import COMPLEMENT
from sassir.analysis.region_loops import region_loops
from sassir.dialect.edges import predecessors
from sassir.dialect.facts import facts_of, record_use
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.operations import KernelOp
from sassir.rewrite.build import instruction
from sassir.rewrite.kernels import free_kernels

_OF_A_THREAD = frozenset({"LD", "LDG", "LDS", "ST", "STG", "STS"}) | ATOMIC
"""Accesses that are made in the order of the code; asynchronous copies and barrier objects are not."""


@dataclass(frozen=True)
class RelaxBarriers(ModulePass):
    """Replaces barriers that order the accesses of no more than one warp."""

    name = "sass-relax-barriers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel, _ in free_kernels(op):
            if relax_barriers(kernel):
                record_use(kernel, ["block"])


def relax_barriers(kernel: KernelOp) -> int:
    """Returns the number of barriers replaced."""
    block = facts_of(kernel).block
    ops = [op for b in kernel.body.blocks for op in b.ops]
    barriers = [op for op in ops if _is_barrier(op)]
    if block is None or not barriers or not all(_is_plain(b) for b in barriers) or any(_is_asynchronous(op) for op in ops):
        return 0
    divergence = Divergence(kernel.body)
    together = [b for i, b in enumerate(kernel.body.blocks) if i not in divergence.split]
    if prod(block) <= WARP:
        found = [op for b in together for op in b.ops if _is_barrier(op)]
    elif block[1] == block[2] == 1:
        alike = _alike(kernel, divergence, barriers)
        found = [op for b in together if b in alike for op in _of_the_first_warp(b)]
    else:
        return 0
    for barrier in found:
        assert barrier.parent is not None
        barrier.parent.insert_op_before(instruction("NOP"), barrier)
        barrier.detach()
        barrier.erase()
    return len(found)


def _is_barrier(op: Operation) -> TypeGuard[SassInstruction]:
    return isinstance(op, SassInstruction) and op.MNEMONIC == "BAR"


def _is_plain(barrier: SassInstruction) -> bool:
    """All threads of the block wait for each other at barrier 0: what `__syncthreads` is."""
    modifiers = barrier.modifiers.data if barrier.modifiers is not None else ""
    return modifiers in ("SYNC", "SYNC.DEFER_BLOCKING") and barrier.template.text == "0x0" and barrier.guard is None


def _touches_memory(op: Operation) -> bool:
    """Memory that other threads may write."""
    does = effects(op)
    return bool((does.loads | does.stores) & {"shared", "global"})


def _is_asynchronous(op: Operation) -> bool:
    """It may touch memory later than the code says, or in a way that is not known."""
    return _touches_memory(op) and (not isinstance(op, SassInstruction) or op.MNEMONIC not in _OF_A_THREAD)


def _alike(kernel: KernelOp, divergence: Divergence, barriers: Sequence[SassInstruction]) -> set[Block]:
    """The blocks that every warp runs once, with equally many barriers before: those are on every path too, and in no loop."""
    blocks = list(kernel.body.blocks)
    number, always = 0, {blocks[0]}
    while (number := divergence.postdominators[number]) >= 0:
        always.add(blocks[number])
    once = always - {block for loop in region_loops(kernel.body) for block in loop.blocks}
    with_others = {barrier.parent for barrier in barriers} - once
    return {block for block in once if with_others.isdisjoint(_before(kernel, block))}


def _before(kernel: KernelOp, block: Block) -> set[Block]:
    """The blocks from which control can come to `block`."""
    sources = predecessors(kernel.body)
    found, work = set[Block](), [block]
    while work:
        new = [source for source in sources[work.pop()] if source not in found]
        found.update(new)
        work += new
    return found


def _of_the_first_warp(block: Block) -> list[SassInstruction]:
    """The barriers with another one before and behind them in their block, and with accesses of the first warp alone in between."""
    parts: list[list[Operation]] = [[]]
    barriers: list[SassInstruction] = []
    for op in block.ops:
        if _is_barrier(op):
            barriers.append(op)
            parts.append([])
        else:
            parts[-1].append(op)
    alone = [i not in (0, len(barriers)) and all(_by_first_warp(op) for op in part) for i, part in enumerate(parts)]
    return [barrier for i, barrier in enumerate(barriers) if alone[i] and alone[i + 1]]


def _by_first_warp(op: Operation) -> bool:
    """No thread behind the first warp accesses memory that threads share."""
    if not _touches_memory(op):
        return True
    compare = op.guard.owner if isinstance(op, SassInstruction) and op.guard is not None else None
    if not isinstance(op, SassInstruction) or not isinstance(compare, SassInstruction) or compare.MNEMONIC != "ISETP":
        return False
    name, *modifiers = compare.modifiers.data.split(".") if compare.modifiers is not None else [""]
    written, _, first, second, third, *more = arguments(compare)
    if compare.guard is not None or name not in COMPLEMENT or "AND" not in modifiers or "EX" in modifiers or more:
        return False
    if written.results != (op.guard,) or third.text != "PT" or not _is_thread_number(first) or second.integer is None:
        return False
    return {"LT": 0, "LE": 1, "EQ": 1}.get(COMPLEMENT[name] if op.unless is not None else name, WARP + 1) + second.integer <= WARP


def _is_thread_number(argument: Argument) -> bool:
    owner = argument.values[0].owner if argument.text == "$" and len(argument.values) == 1 else None
    return isinstance(owner, SassInstruction) and owner.MNEMONIC == "S2R" and owner.guard is None and "SR_TID.X" in owner.template.text
