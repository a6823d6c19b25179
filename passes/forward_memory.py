"""sass-forward-memory: in straight code, a load gets what was stored or loaded there before, and what is overwritten is not stored.

A store ends what is known of the bytes that it may touch, and what orders memory ends all of it. The fact `noalias` tells
buffers apart. Blocks to which only one other leads go on with what is known there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, SSAValue
from xdsl.passes import ModulePass

from sassir.analysis.flow import flow_of
from sassir.analysis.memory import Access, access, is_word_access, may_overlap, orders_memory
from sassir.analysis.pointers import pointers_of
from sassir.dialect import internals
from sassir.dialect.facts import KernelFacts
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.operations import INSTRUCTIONS, KernelOp
from sassir.passes.dce import drop_dead_code
from sassir.rewrite import simplify
from sassir.rewrite.build import instruction
from sassir.rewrite.kernels import free_kernels, sparing_noalias
from sassir.rewrite.variables import stored_values

EXIT = INSTRUCTIONS["EXIT"]
WINDOW = 64
"""Accesses that are remembered at a time; keeps time linear."""


@dataclass(frozen=True)
class ForwardMemory(ModulePass):
    """Drops loads of known words and stores that others cover, first what needs no fact, then what `noalias` allows."""

    name = "sass-forward-memory"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel, _ in free_kernels(op):
            if sparing_noalias(kernel, forward_memory):
                drop_dead_code(kernel.body)


def forward_memory(kernel: KernelOp, facts: KernelFacts) -> int:
    """Returns the number of loads and stores dropped."""
    blocks, _, cfg = flow_of(kernel.body)
    pointers = pointers_of(kernel.body, facts)
    known: list[list[_Known]] = [[] for _ in blocks]
    dropped = 0
    for b in cfg.order:
        before = cfg.predecessors[b]
        if len(before) == 1 and b not in cfg.roots:
            known[b] = list(known[before[0]])
        dropped += _forward(blocks[b], known[b], facts, pointers) + _drop_covered(blocks[b], facts, pointers)
    return dropped


class _Known(NamedTuple):
    """What is at some bytes of memory."""

    access: Access
    words: Sequence[SSAValue | None]
    """None for zero."""


def _forward(block: Block, known: list[_Known], facts: KernelFacts, pointers: Mapping[SSAValue, int]) -> int:
    """Let loads get what is `known`, which is brought up to date to the end of the block. Returns the number of loads dropped."""
    dropped = 0
    for op in internals.operations(block):
        if orders_memory(op) and not isinstance(op, EXIT):
            known.clear()
        this = access(op, pointers)
        if this is None or not isinstance(op, SassInstruction):
            continue
        same = next((k.words for k in known if k.access.place == this.place), None)
        if this.writes:
            known[:] = [k for k in known if not may_overlap(k.access, this, facts)]
        if op.guard is not None or not is_word_access(op, this):
            continue
        if this.writes or same is None:
            words = stored_values(op, this.words) if this.writes else op.results
            known[:] = [*known[1 - WINDOW :], _Known(this, words)]
            continue
        zeros = {i: instruction("MOV =R, RZ") for i, word in enumerate(same) if word is None}
        block.insert_ops_before(list(zeros.values()), op)
        simplify.replace(op, [zeros[i].results[0] if word is None else word for i, word in enumerate(same)])
        dropped += 1
    return dropped


def _drop_covered(block: Block, facts: KernelFacts, pointers: Mapping[SSAValue, int]) -> int:
    """Drop the stores that a later one covers, if nobody can have looked in between. Returns their number."""
    covers: list[Access] = []
    dropped = 0
    for op in reversed(internals.operations(block)):
        if orders_memory(op):
            covers = []
        this = access(op, pointers)
        if this is None or not isinstance(op, SassInstruction):
            continue
        if not this.writes:
            covers = [c for c in covers if not may_overlap(c, this, facts)]
        elif is_word_access(op, this):
            if any(c.covers(this) for c in covers):
                simplify.replace(op, [])
                dropped += 1
            elif op.guard is None:
                covers = [*covers[1 - WINDOW :], this]
    return dropped
