"""Keep the order of blocks in memory such that control that just goes on finds its block behind."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Block, Operation, SSAValue

from sassir.dialect import internals
from sassir.dialect.edges import forwarded, own_operands, pass_values
from sassir.dialect.instruction import SassBranch
from sassir.dialect.operations import INSTRUCTIONS, KernelOp, NextOp
from sassir.dialect.sample import sample
from sassir.dialect.template import PLACE, TemplateAttr
from sassir.translate.branches import may_continue


def jump(target: Block, values: Sequence[SSAValue]) -> SassBranch:
    """An unconditional branch."""
    op = INSTRUCTIONS["BRA"].create(operands=values, properties={"template": TemplateAttr.of(PLACE)}, successors=[target])
    assert isinstance(op, SassBranch)
    return op


def is_jump(op: Operation) -> bool:
    """Whether `op` is a branch that all threads take, as `jump` makes it."""
    if not isinstance(op, SassBranch) or len(op.successors) != 1:
        return False
    return (op.MNEMONIC, op.modifiers, op.template.text, op.guard, op.constant_guard) == ("BRA", None, PLACE, None, None)


def branch(guard: SSAValue, taken: Block, taken_values: Sequence[SSAValue], other: Block, other_values: Sequence[SSAValue]) -> SassBranch:
    """A branch to `taken` in the threads where `guard` holds; the others go on to `other`, which must come to lie behind."""
    op = INSTRUCTIONS["BRA"].create(
        operands=[guard, *taken_values, *other_values], properties={"template": TemplateAttr.of(PLACE)}, successors=[taken, other]
    )
    assert isinstance(op, SassBranch)
    return op


def drop_terminator(block: Block) -> None:
    """Take the last operation out of `block`."""
    last = block.last_op
    assert last is not None
    last.detach()
    last.erase()


def replace_terminator(block: Block, new: Operation) -> None:
    """End `block` with `new`."""
    drop_terminator(block)
    block.add_op(new)


def redirect(block: Block, old: Block, new: Block) -> None:
    """Let `block` lead to `new`, which takes the same arguments, instead of `old`."""
    last = block.last_op
    assert last is not None
    last.successors = [new if s is old else s for s in last.successors]


def invert(test: SassBranch) -> None:
    """Let a branch that its guard decides (see `decides`) go on where it branched, and branch where it went on."""
    taken, other = forwarded(test)
    pass_values(test, [other, taken])
    test.successors = [*reversed(test.successors)]
    test.unless = UnitAttr() if test.unless is None else None


def falls_through(op: SassBranch) -> bool:
    """Control can go on to the next instruction, which is the last successor then."""
    if op.guard is not None or op.constant_guard is not None:
        return True
    return may_continue(sample(op.MNEMONIC, op.modifiers.data if op.modifiers is not None else "", op.template))


def repair_layout(kernel: KernelOp) -> int:
    """Put a jump wherever control goes on to a block that does not lie behind. Returns the number of jumps."""
    return sum([repair_end(block) for block in list(kernel.body.blocks)])


def repair_end(block: Block) -> bool:
    """Put a jump behind `block` if control goes on from it to a block that does not lie behind. Returns whether that was so."""
    last = block.last_op
    if last is None or not last.successors or last.successors[-1] is block.next_block:
        return False
    if isinstance(last, NextOp):
        replace_terminator(block, jump(last.target, internals.operands(last)))
        return True
    if not isinstance(last, SassBranch) or not falls_through(last) or block.parent is None:
        return False
    target, passed = last.successors[-1], forwarded(last)
    between = Block([jump(target, passed[-1])])
    block.parent.insert_block_after(between, block)
    last.operands = [*own_operands(last), *[v for values in passed[:-1] for v in values]]
    last.successors = [*last.successors[:-1], between]
    return True
