"""The loads that a loop of one block can make an iteration ahead, and what must be known for that.

Where the address of a load, the values that loops around, and the test that ends the loop are all computed from what the iteration
starts with, the load of the next iteration can be issued in this one, if there is a next one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from sassir.analysis.effects import effects
from sassir.analysis.memory import Access, access, may_overlap, orders_memory
from sassir.analysis.region_loops import RegionLoop
from sassir.dialect import internals
from sassir.dialect.edges import decides, entered_from_elsewhere, forwarded
from sassir.dialect.facts import KernelFacts
from sassir.dialect.instruction import SassBranch, SassInstruction
from sassir.dialect.operations import KernelOp, LabelOp
from sassir.dialect.registers import P, SassRegister


class SelfLoop(NamedTuple):
    """A loop of one block, whose guarded BRA at the end goes on with it while `guard` holds, or fails if `unless`."""

    block: Block
    latch: SassBranch
    guard: SSAValue
    unless: bool
    following: Mapping[BlockArgument, SSAValue]
    """For each argument of the block, the value that the next iteration gets."""


class EarlyLoad(NamedTuple):
    """A load that can be made an iteration ahead."""

    op: SassInstruction
    address: tuple[Operation, ...]
    """What the loop computes for its address, in order."""
    first: tuple[Operation, ...]
    """What must be computed before the load of the next iteration: the test, and what the address is made from there; in order."""


def self_loop(kernel: KernelOp, loop: RegionLoop) -> SelfLoop | None:
    """`loop` as one block; None for every other loop, and where a name or a call leads to it."""
    block, latch = loop.header, loop.header.last_op
    if len(loop.blocks) != 1 or latch is None or not decides(latch) or latch.guard is None or not isinstance(latch.guard.type, P):
        return None
    if isinstance(block.first_op, LabelOp) or block in entered_from_elsewhere(kernel.body):
        return None
    i = list(latch.successors).index(block)
    following = dict(zip(block.args, forwarded(latch)[i], strict=True))
    return SelfLoop(block, latch, latch.guard, (latch.unless is not None) == (i == 0), following)


def early_loads(loop: SelfLoop, facts: KernelFacts, pointers: Mapping[SSAValue, int]) -> list[EarlyLoad]:
    """The loads of global memory that `loop` makes in every iteration and may make one earlier, in order.

    Nothing in the loop writes what they read, in any iteration. Loads of memory that nobody writes may also pass the barriers of
    a block; all others stay in a loop that orders memory. `pointers`: see `sassir.analysis.pointers`.
    """
    ops = list(loop.block.ops)
    position = {op: i for i, op in enumerate(ops)}
    test = _computation(loop.block, [loop.guard])
    fences = [op for op in ops if op is not loop.latch and orders_memory(op)]
    if test is None or any(not isinstance(op, SassInstruction) or op.MNEMONIC != "BAR" for op in fences):
        return []
    accesses = [found for op in ops if (found := access(op, pointers)) is not None]
    loads: list[EarlyLoad] = []
    for op in ops:
        if not isinstance(op, SassInstruction) or not _is_plain_load(op, loop):
            continue
        this = access(op, pointers)
        if this is None or (fences and not this.constant) or any(other.writes and _may_meet(this, other, facts) for other in accesses):
            continue
        address = _computation(loop.block, op.reads)
        if address is None or any(effects(o).loads for o in address):  # of the next iteration, which may not be
            continue
        starts = {v for o in (op, *address) for v in internals.operands(o) if isinstance(v, BlockArgument) and v in loop.following}
        first = _computation(loop.block, [loop.following[v] for v in starts])
        if first is not None:
            loads.append(EarlyLoad(op, _in_order(address, position), _in_order({*first, *test}, position)))
    return loads


def _is_plain_load(op: SassInstruction, loop: SelfLoop) -> bool:
    """A load of global memory without guard, in registers of no fixed number, of which only this iteration uses what it loads."""
    if op.MNEMONIC != "LDG" or op.guard is not None or op.constant_guard is not None or op.link is not None or not op.results:
        return False
    if any(isinstance(r.type, SassRegister) and (r.type.number is not None or r.type.FILE != "R") for r in op.results):
        return False
    users = [use.operation for r in op.results for use in r.uses]
    return bool(users) and all(user.parent is loop.block and user is not loop.latch for user in users)


def _may_meet(load: Access, other: Access, facts: KernelFacts) -> bool:
    """Whether they may touch the same byte in two iterations: registers in the address tell nothing then."""
    return may_overlap(load, other._replace(registers=()), facts)


def _computation(block: Block, values: Iterable[SSAValue]) -> set[Operation] | None:
    """The operations of `block` that compute `values` from its arguments; None if one of them may not be moved or repeated."""
    found: set[Operation] = set()
    work = [v.owner for v in values]
    while work:
        op = work.pop()
        if isinstance(op, Block) or op.parent is not block or op in found:
            continue
        if not _may_move(op):
            return None
        found.add(op)
        work += [v.owner for v in internals.operands(op)]
    return found


def _may_move(op: Operation) -> bool:
    if not effects(op).pure or any(isinstance(r.type, SassRegister) and r.type.number is not None for r in op.results):
        return False
    return not isinstance(op, SassInstruction) or (op.place is None and op.link is None)


def _in_order(ops: Collection[Operation], position: dict[Operation, int]) -> tuple[Operation, ...]:
    return tuple(sorted(ops, key=lambda op: position[op]))
