"""Loads of a loop of one block, an iteration ahead: the first in front of the loop, each next one where the last is used up."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from sassir.analysis.early_loads import EarlyLoad, SelfLoop
from sassir.dialect.edges import forwarded, pass_values
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.operations import KernelOp, NextOp, UndefinedOp
from sassir.dialect.registers import SassRegister
from sassir.rewrite.simplify import replace


class Batch(NamedTuple):
    """Loads that are made together."""

    loads: Sequence[EarlyLoad]
    behind: Operation
    """The operation of the loop behind which they are made for the next iteration; before it, what they loaded for this one is used."""

    @property
    def first(self) -> frozenset[Operation]:
        """What must be computed before them."""
        return frozenset([op for load in self.loads for op in load.first])


def load_ahead(kernel: KernelOp, loop: SelfLoop, batches: Sequence[Batch]) -> None:
    """Make the loads of `batches`, in the order of their places, an iteration ahead.

    What they load becomes arguments of the block. The load for the next iteration is made only in threads that go on with one.
    """
    before = _block_before(kernel, loop.block)
    start: dict[SSAValue, SSAValue] = dict(zip(loop.block.args, before.args, strict=True))
    following: dict[SSAValue, SSAValue] = {**loop.following}
    firsts: list[SSAValue] = []
    nexts: list[SSAValue] = []
    for batch in batches:
        place = _gather(batch.first, batch.behind)
        for load in batch.loads:
            before.add_ops(_copies(load.address, start))
            before.add_op(first := _copy(load.op, start))
            firsts += first.results
            address = _copies(load.address, following)
            unknown = [UndefinedOp.of(r.type) for r in load.op.results if isinstance(r.type, SassRegister)]
            new = _guarded(load.op, following, loop, [op.value for op in unknown])
            loop.block.insert_ops_after([*address, *unknown, new], place)
            place = new
            nexts += new.results
    before.add_op(NextOp.create(operands=[*before.args, *firsts], successors=[loop.block]))
    passed = zip(loop.latch.successors, forwarded(loop.latch), strict=True)
    pass_values(loop.latch, [[*values, *(nexts if s is loop.block else ())] for s, values in passed])
    for load in [load for batch in batches for load in batch.loads]:
        count = len(loop.block.args)
        replace(load.op, [loop.block.insert_arg(r.type, count + i) for i, r in enumerate(load.op.results)])


def _block_before(kernel: KernelOp, block: Block) -> Block:
    """A new block through which control comes to `block` from elsewhere, without its end."""
    new = Block(arg_types=[a.type for a in block.args])
    others = [other.last_op for other in block.predecessors() if other is not block]
    kernel.body.insert_block_before(new, block)
    for last in others:
        assert last is not None
        last.successors = [new if s is block else s for s in last.successors]
    return new


def _gather(wanted: Collection[Operation], place: Operation) -> Operation:
    """Move those of `wanted` that come behind `place` up to it, in their order. Returns the last of them, or `place`."""
    behind: list[Operation] = []
    op = place.next_op
    while op is not None:
        if op in wanted:
            behind.append(op)
        op = op.next_op
    block = place.parent
    assert block is not None
    for op in behind:
        op.detach()
    if behind:
        block.insert_ops_after(behind, place)
    return behind[-1] if behind else place


def _copies(ops: Iterable[Operation], values: dict[SSAValue, SSAValue]) -> list[Operation]:
    """Copies of those of `ops` that `values` has none of yet, with operands from there."""
    return [_copy(op, values) for op in ops if op.results[0] not in values]


def _copy(op: Operation, values: dict[SSAValue, SSAValue]) -> Operation:
    new = op.clone(values, clone_name_hints=False)
    new.properties.pop("origin", None)
    return new


def _guarded(load: SassInstruction, values: dict[SSAValue, SSAValue], loop: SelfLoop, kept: Sequence[SSAValue]) -> SassInstruction:
    """A copy of a load that is made where the loop goes on."""
    properties: dict[str, Attribute] = {k: v for k, v in load.properties.items() if k not in ("control", "origin")}
    if loop.unless:
        properties["unless"] = UnitAttr()
    reads = [values.get(v, v) for v in load.reads]
    return type(load).create(operands=[*reads, loop.guard, *kept], properties=properties, result_types=[r.type for r in load.results])
