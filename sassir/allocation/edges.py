"""Copies on the edges of the control-flow graph."""

from __future__ import annotations

from xdsl.ir import Block, Operation

from sassir.allocation.registers import AllocationError
from sassir.dialect.instruction import SassBranch
from sassir.dialect.operations import INSTRUCTIONS, NextOp
from sassir.dialect.syntax import written
from sassir.dialect.template import TemplateAttr
from sassir.dialect.edges import forwarded, pass_values


def place_for_copies(terminator: Operation, i: int, clobbers: bool) -> Block:
    """The block at whose end, before its terminator, copies take place exactly when control goes to successor `i`.

    `clobbers`: the copies write registers that the terminator reads. A block is put on the edge if need be; what it takes is passed on by it.
    Raises AllocationError for an edge that no block can be put on.
    """
    block = terminator.parent
    assert block is not None
    if len(terminator.successors) == 1 and not clobbers:
        return block
    if not is_fall_through(terminator, i) and not is_named(terminator, i):
        raise AllocationError(f"`{written(terminator)}` goes to computed places, where values would have to be moved on the way")
    return _split(terminator, i)


def is_named(terminator: Operation, i: int) -> bool:
    """Successor `i` is the place that the text of a branch names."""
    return i == 0 and isinstance(terminator, SassBranch) and terminator.template.places > 0 and terminator.place is None


def is_fall_through(terminator: Operation, i: int) -> bool:
    """Successor `i` is the next instruction."""
    if isinstance(terminator, NextOp):
        return True
    block = terminator.parent
    last = i == len(terminator.successors) - 1
    return last and not is_named(terminator, i) and block is not None and terminator.successors[i] is block.next_block


def _split(terminator: Operation, i: int) -> Block:
    """Put an empty block on an edge, which passes on what the terminator passed."""
    block, target = terminator.parent, terminator.successors[i]
    assert block is not None
    region = block.parent
    assert region is not None
    passed = forwarded(terminator)
    new = Block()
    if is_fall_through(terminator, i):
        region.insert_block_after(new, block)
        new.add_op(NextOp.create(operands=passed[i], successors=[target]))
    else:
        region.insert_block_after(new, _without_successor_behind(block))
        properties = {"template": TemplateAttr.of("^")}
        new.add_op(INSTRUCTIONS["BRA"].create(operands=passed[i], properties=properties, successors=[target]))
    pass_values(terminator, [() if k == i else values for k, values in enumerate(passed)])
    terminator.successors = [new if k == i else s for k, s in enumerate(terminator.successors)]
    return new


def _without_successor_behind(block: Block) -> Block:
    """The first block from `block` on, around the end, behind which code may be put: control does not go on from it."""
    found: Block | None = block
    while found is not None and _goes_on(found):
        found = found.next_block
    if found is None:
        raise AllocationError("there is no place for a new block: control goes on from every block to the next one")
    return found


def _goes_on(block: Block) -> bool:
    last = block.last_op
    if last is None or not isinstance(last, SassBranch):
        return True
    return any(successor is block.next_block for successor in last.successors[-1:]) or (last.produces and bool(last.successors))
