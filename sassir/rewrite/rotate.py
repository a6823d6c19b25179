"""Turn loops around: the test at the top becomes a guard in front of the loop, and a test at its bottom.

    before:  header: test, leave or go on  →  body  →  header
    after:   guard: test, leave or go on  →  preheader  →  body  →  header: test, leave or go back to the body

Every thread executes what it executed, the jump back aside.
"""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.ir import Block

from sassir.analysis.region_loops import RegionLoop
from sassir.dialect.edges import decides, forwarded, pass_values
from sassir.dialect.instruction import SassBranch
from sassir.dialect.operations import KernelOp, NextOp
from sassir.rewrite.clone import Values, clone_blocks, join_definitions, operands_of
from sassir.rewrite.flow import enter_at
from sassir.rewrite.layout import drop_terminator, invert, is_jump, redirect


def rotate(kernel: KernelOp, loop: RegionLoop) -> None:
    """Turn around a loop whose header ends in a test that leaves the loop or goes on. The layout has to be repaired behind it.

    It then has a block in front of it that leads nowhere else. If the header is all that it does, nothing is copied.
    """
    header = loop.header
    (body,) = [block for block in _test(header).successors if block in loop.blocks]
    (out,) = [block for block in _test(header).successors if block not in loop.blocks]
    if is_header_alone(loop):
        _drop(body)
        _branch_to(header, header)
        return
    values: Values = {}
    guard = clone_blocks(kernel, [header], _place_of_guard(kernel, loop), values)[header]
    enter_at(guard, header, loop.blocks)
    if {*body.predecessors()} != {header, guard}:  # an inner loop begins there, and is to have a header of its own
        body = _gather(body, [header, guard], guard)
    _gather(body, [guard], guard)
    _move_to_bottom(kernel, loop)
    _branch_to(guard, out)
    _branch_to(header, body)
    join_definitions(kernel, [values])


def is_header_alone(loop: RegionLoop) -> bool:
    """Whether all that a loop does behind its header is to go back to it."""
    if len(loop.blocks) != 2:
        return False
    (body,) = loop.blocks - {loop.header}
    last = body.last_op
    return body.first_op is last and last is not None and (isinstance(last, NextOp) or is_jump(last))


def _test(block: Block) -> SassBranch:
    """The branch at the end of the header, or of its copy."""
    test = block.last_op
    assert test is not None
    assert decides(test)
    return test


def _branch_to(block: Block, taken: Block) -> None:
    """Let the test of `block` branch to `taken`, and control go on to the other one."""
    if _test(block).successors[0] is not taken:
        invert(_test(block))


def _drop(block: Block) -> None:
    """Take a block that does nothing out of the way from the test before it."""
    (before,) = block.predecessors()
    test, last = _test(before), block.last_op
    assert last is not None
    given: Values = dict(zip(block.args, test.forwarded([*test.successors].index(block)), strict=True))
    through = operands_of(given, forwarded(last)[0])
    passed = [through if s is block else values for s, values in zip(test.successors, forwarded(test), strict=True)]
    pass_values(test, passed)
    redirect(before, block, last.successors[0])
    drop_terminator(block)
    assert block.parent is not None
    block.parent.detach_block(block)
    block.erase()


def _place_of_guard(kernel: KernelOp, loop: RegionLoop) -> Block:
    """The block behind which the guard goes: where the header is, or, if that lies at the bottom, the last one that leads to the loop."""
    before = loop.header.prev_block
    if before is not None and before not in loop.latches:
        return before
    entering = {*loop.header.predecessors()} - loop.blocks
    return [block for block in kernel.body.blocks if block in entering][-1]


def _gather(target: Block, sources: Iterable[Block], place: Block) -> Block:
    """A new block behind `place`, by way of which the blocks `sources` lead to `target`."""
    gathered = Block(arg_types=[argument.type for argument in target.args])
    gathered.add_op(NextOp.create(operands=gathered.args, successors=[target]))
    assert place.parent is not None
    place.parent.insert_block_after(gathered, place)
    for source in sources:
        redirect(source, target, gathered)
    return gathered


def _move_to_bottom(kernel: KernelOp, loop: RegionLoop) -> None:
    """Put the header behind a block that leads back to it, the last one that leads nowhere else if there is one."""
    if loop.header.prev_block in loop.latches:
        return
    latches = [block for block in kernel.body.blocks if block in loop.latches]
    jumping = [block for block in latches if block.last_op is not None and len(block.last_op.successors) == 1]
    kernel.body.detach_block(loop.header)
    kernel.body.insert_block_after(loop.header, (jumping or latches)[-1])
