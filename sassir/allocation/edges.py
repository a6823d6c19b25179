"""Places for new instructions on the edges of the control-flow graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import Block, Operation

from sassir.allocation.registers import AllocationError
from sassir.dialect.edges import forwarded, pass_values
from sassir.dialect.instruction import SassBranch
from sassir.dialect.operations import NextOp
from sassir.rewrite.layout import jump

Ends = Mapping[Block, Block | None]


def ends_of_runs(blocks: Sequence[Block]) -> Ends:
    """For each block the first one from there on, or at all, from which control does not go on: new code can be put behind that."""
    ends: dict[Block, Block | None] = {}
    end = next((block for block in blocks if _stops(block)), None)
    for block in reversed(blocks):
        end = ends[block] = block if _stops(block) else end
    return ends


def is_before(terminator: Operation, i: int) -> bool:
    """What happens on the way to successor `i` has to happen before the terminator: that is the only way, or it is a computed one (RET,
    BRX), on which no block can be put."""
    return len(terminator.successors) == 1 or not (_is_named(terminator, i) or _goes_on(terminator, i))


def put_block(terminator: Operation, i: int, ends: Ends) -> Operation:
    """Put a block on the way to successor `i`, which passes on what the terminator passed. Returns the new block's terminator."""
    block, target = terminator.parent, terminator.successors[i]
    assert block is not None
    region = block.parent
    assert region is not None
    passed = forwarded(terminator)
    if _goes_on(terminator, i):
        region.insert_block_after(new := Block([NextOp.create(operands=passed[i], successors=[target])]), block)
    else:
        if (end := ends[block]) is None:
            raise AllocationError("there is no place for a new block: control goes on from every block to the next one")
        region.insert_block_after(new := Block([jump(target, passed[i])]), end)
    pass_values(terminator, [() if k == i else values for k, values in enumerate(passed)])
    terminator.successors = [new if k == i else s for k, s in enumerate(terminator.successors)]
    assert new.last_op is not None
    return new.last_op


def _is_named(terminator: Operation, i: int) -> bool:
    """Successor `i` is the place that the text of a branch names."""
    return i == 0 and isinstance(terminator, SassBranch) and terminator.template.places > 0 and terminator.place is None


def _goes_on(terminator: Operation, i: int) -> bool:
    """Successor `i` is the next instruction."""
    if isinstance(terminator, NextOp):
        return True
    block = terminator.parent
    last = i == len(terminator.successors) - 1
    return last and not _is_named(terminator, i) and block is not None and terminator.successors[i] is block.next_block


def _stops(block: Block) -> bool:
    """Control does not go on from the block, nor come back behind it as from a call."""
    last = block.last_op
    if not isinstance(last, SassBranch) or last.CALLS:
        return False
    return not last.successors or last.successors[-1] is not block.next_block
