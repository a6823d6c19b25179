"""sass-promote-memory: keep in a register what a loop reads or writes again and again at one address.

A word of memory whose address does not change in a loop is a variable there, if nothing else in the loop may touch it: it is
loaded before the loop and stored behind it. That holds only where every run of the loop loads it, or stores to it, before
it is left: no access is made that was not there. And only where nothing in the loop orders memory: without that, other
threads may not rely on any value but the last. Shared memory stays as it is: there, volatile leaves no trace in the code.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from sassir.analysis.arguments import arguments
from sassir.analysis.counted import home
from sassir.analysis.flow import Flow, flow_of
from sassir.analysis.memory import Access, access, is_word_access, may_overlap, orders_memory
from sassir.analysis.pointers import pointers_of
from sassir.analysis.region_loops import RegionLoop, region_loops
from sassir.dialect.edges import forwarded, own_operands
from sassir.dialect.facts import KernelFacts
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.operations import KernelOp, LabelOp
from sassir.passes.dce import drop_dead_code
from sassir.rewrite.build import arguments_of, instruction, name_of, rewritten
from sassir.rewrite.kernels import free_kernels, sparing_noalias
from sassir.rewrite.layout import jump, repair_layout
from sassir.rewrite.reconstruct import reconstruct
from sassir.rewrite.simplify import without_guard
from sassir.rewrite.variables import replace_by_moves


@dataclass(frozen=True)
class PromoteMemory(ModulePass):
    """Hoists loads out of loops and sinks stores behind them, first what needs no fact, then what `noalias` allows."""

    name = "sass-promote-memory"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel, _ in free_kernels(op):
            if sparing_noalias(kernel, promote_memory):
                drop_dead_code(kernel.body)
                repair_layout(kernel)


def promote_memory(kernel: KernelOp, facts: KernelFacts) -> int:
    """Returns the number of words that became variables, each loop around them counted."""
    promoted = 0
    while found := _sweep(kernel.body, facts):
        promoted += found
    return promoted


def _sweep(region: Region, facts: KernelFacts) -> int:
    """Promote what can be, inner loops first, until new blocks change what the loops are."""
    flow, loops = flow_of(region), region_loops(region)
    if not loops:
        return 0
    pointers = pointers_of(region, facts)
    promoted = 0
    for loop in loops:
        words = _words(loop, flow, facts, pointers) if loop.preheader is not None else []
        if words:
            _promote(region, loop, words)
            promoted += len(words)
        if len(region.blocks) > len(flow.blocks):
            break
    return promoted


class _Word(NamedTuple):
    """All accesses of a loop to the same words."""

    always: SassInstruction
    """One that every run of the loop makes; a store if there is one."""
    accesses: tuple[SassInstruction, ...]
    size: int
    """Words of 32 bits."""


def _words(loop: RegionLoop, flow: Flow, facts: KernelFacts, pointers: Mapping[SSAValue, int]) -> list[_Word]:
    """The words that can be variables in a loop; none where no value differs from turn to turn: it waits for another thread."""
    if not loop.header.args:
        return []
    blocks, number, cfg = flow
    inside = [b for b in blocks if b in loop.blocks]
    found = _accesses(inside, pointers)
    exits = [number[block] for block, _ in _exits(inside)]
    places: dict[Hashable, list[SassInstruction]] = {}
    for op, this in found.items():
        if is_word_access(op, this) and all(home(v) not in loop.blocks for v in _address(op)):
            places.setdefault(this.place, []).append(op)
    words: list[_Word] = []
    for same in places.values():
        always = [op for op in same if op.guard is None and all(cfg.dominates(number[_home(op)], e) for e in exits)]
        stores = [op for op in always if not op.results]
        needed = stores if any(not op.results for op in same) else always
        if needed and not _disturbed(same, found, facts):
            words.append(_Word(needed[0], tuple(same), found[same[0]].words))
    return words


def _home(op: Operation) -> Block:
    block = op.parent
    assert block is not None
    return block


def _accesses(blocks: Sequence[Block], pointers: Mapping[SSAValue, int]) -> dict[SassInstruction, Access]:
    """The accesses in a loop; none if something in it orders memory, or touches it in a way that is not understood."""
    ops = [op for block in blocks for op in block.ops if isinstance(op, SassInstruction)]
    if any(orders_memory(op) for op in ops):
        return {}
    return {op: found for op in ops if (found := access(op, pointers)) is not None}


def _disturbed(same: Sequence[SassInstruction], found: dict[SassInstruction, Access], facts: KernelFacts) -> bool:
    """Whether another access of the loop may touch the same bytes, and one of both writes."""
    this, writes = found[same[0]], any(found[op].writes for op in same)
    others = [other for op, other in found.items() if op not in same]
    return any((writes or other.writes) and may_overlap(this, other, facts) for other in others)


def _address(op: SassInstruction) -> Sequence[SSAValue]:
    """The values that the address is made from."""
    return next(a.values for a in arguments(op) if "[" in a.text and a.constant is None)


def _exits(blocks: Sequence[Block]) -> list[tuple[Block, int]]:
    """The edges out of a loop, each as a block and the index of its successor."""
    edges = [(block, i, s) for block in blocks if block.last_op is not None for i, s in enumerate(block.last_op.successors)]
    return [(block, i) for block, i, successor in edges if successor not in blocks]


def _promote(region: Region, loop: RegionLoop, words: Sequence[_Word]) -> None:
    """Load the words in front of the loop, let its accesses be moves, and store the words on the edges out of it."""
    assert loop.preheader is not None
    assert loop.preheader.last_op is not None
    definitions: dict[SSAValue, SSAValue] = {}
    for word in words:
        loads = [op for op in word.accesses if op.results]
        start = [without_guard(loads[0])] if loads else [instruction("MOV =R, RZ") for _ in range(word.size)]
        loop.preheader.insert_ops_before(start, loop.preheader.last_op)
        variables = [result for op in start for result in op.results]
        if len(loads) < len(word.accesses):
            _store_behind(region, loop, word.always, variables)
        for op in word.accesses:
            definitions.update(zip(replace_by_moves(op, variables), variables, strict=False))
    reconstruct(region, definitions, lambda _, value: value.type)


def _store_behind(region: Region, loop: RegionLoop, model: SassInstruction, variables: Sequence[SSAValue]) -> None:
    for block, i in _exits([b for b in region.blocks if b in loop.blocks]):
        target = _edge_block(region, block, i)
        first = next(op for op in target.ops if not isinstance(op, LabelOp))
        target.insert_op_before(_store(model, variables), first)


def _store(model: SassInstruction, values: Sequence[SSAValue]) -> SassInstruction:
    """A store like `model`, of other values."""
    *shown, _ = arguments_of(model)
    *operands, _ = arguments(model)
    shown.append("$R" if len(values) == 1 else f"$R{len(values)}")
    new = rewritten(model, name_of(model), shown, [*[v for a in operands for v in a.values], *values])
    new.properties.pop("origin", None)
    return new


def _edge_block(region: Region, block: Block, i: int) -> Block:
    """The block to which only the edge from `block` to its successor `i` leads, made if there is none."""
    last = block.last_op
    assert last is not None
    target = last.successors[i]
    if len(target.predecessors()) == 1:
        return target
    passed = forwarded(last)
    new = Block([jump(target, passed[i])])
    region.insert_block_after(new, block)
    last.operands = [*own_operands(last), *[v for k, values in enumerate(passed) if k != i for v in values]]
    last.successors = [new if k == i else s for k, s in enumerate(last.successors)]
    return new
