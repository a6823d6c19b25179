"""Change control flow: take out branches that are decided, blocks that nothing reaches, and joints between blocks."""

from __future__ import annotations

from collections.abc import Collection

from xdsl.ir import Block

from sassir.analysis.calls import match_calls
from sassir.analysis.flow import flow_of
from sassir.dialect import internals
from sassir.dialect.edges import entered_from_elsewhere, forwarded, own_operands, predecessors
from sassir.dialect.instruction import SassBranch, SassInstruction
from sassir.dialect.operations import KernelOp, LabelOp, NextOp
from sassir.rewrite.build import instruction
from sassir.rewrite.layout import redirect


def enter_at(entry: Block, header: Block, inside: Collection[Block]) -> None:
    """Let what comes to a loop from outside, to its `header`, come to `entry`, which takes the same arguments.

    The labels of the header go along: they say where a warp goes on that met in front of the loop. None of the blocks `inside` may come
    back by them.
    """
    for block in header.predecessors():
        if block not in inside and block is not entry:
            redirect(block, header, entry)
    labels = [op for op in header.ops if isinstance(op, LabelOp)]
    for label in labels:
        label.detach()
    if entry.first_op is None:
        entry.add_ops(labels)
    else:
        entry.insert_ops_before(labels, entry.first_op)


def reachable(kernel: KernelOp) -> set[Block]:
    """The blocks to which control can come from the entry of the kernel."""
    return _reached([kernel.body.blocks[0]])


def _reached(start: list[Block]) -> set[Block]:
    found = set(start)
    work = list(start)
    while work:
        last = work.pop().last_op
        for successor in last.successors if last is not None else ():
            if successor not in found:
                found.add(successor)
                work.append(successor)
    return found


def drop_unreachable(kernel: KernelOp, before: set[Block]) -> int:
    """Drop the blocks of `before` (see `reachable`) that nothing reaches any more. Returns their number.

    A function of the symbol table keeps its label, on an EXIT: nobody calls it, but its symbol needs a place. A RET leads to no
    place behind a call that cannot be reached.
    """
    _drop_returns(kernel)
    reached = reachable(kernel)
    dead = [block for block in kernel.body.blocks if block in before and block not in reached]
    for block in dead:
        for op in list(block.ops):
            op.operands, op.successors = (), ()
    for block in dead:
        labels = [op for op in internals.operations(block) if isinstance(op, LabelOp) and op.private is None]
        for op in reversed(list(block.ops)):
            op.detach()
            if op not in labels:
                op.erase(safe_erase=False)
        if labels:
            for argument in reversed(block.args):
                block.erase_arg(argument)
            block.add_ops([*labels, instruction("EXIT")])
        else:
            kernel.body.detach_block(block)
            block.erase(safe_erase=False)
    return len(dead)


def _drop_returns(kernel: KernelOp) -> None:
    """Let no RET lead to where it never returns: behind a call that only the returns of other calls seem to lead to."""
    flow = flow_of(kernel.body)
    calls = match_calls(flow)
    called = calls.reached(0, into=True)
    never = {flow.blocks[b + 1] for b in calls.callee if b not in called} - {flow.blocks[b] for b in called}
    for end in calls.callers:
        last = flow.blocks[end].last_op
        assert last is not None
        kept = [i for i, place in enumerate(last.successors) if place not in never]
        if 0 < len(kept) < len(last.successors):
            operands = [*own_operands(last), *[v for i in kept for v in forwarded(last)[i]]]
            last.operands, last.successors = operands, [last.successors[i] for i in kept]


def drop_jumps(kernel: KernelOp) -> None:
    """Drop the unconditional branches to the block behind."""
    for block in kernel.body.blocks:
        last = block.last_op
        behind = block.next_block
        if not isinstance(last, SassBranch) or last.MNEMONIC != "BRA" or behind is None or [*last.successors] != [behind]:
            continue
        if last.guard is None and last.constant_guard is None and not last.reads:
            values = last.forwarded(0)
            last.detach()
            last.erase()
            block.add_op(NextOp.create(operands=values, successors=[behind]))


def merge_blocks(kernel: KernelOp) -> int:
    """Join each block with the one behind it where no other control comes to that. Returns the number of joints."""
    drop_jumps(kernel)
    before = predecessors(kernel.body)
    elsewhere = entered_from_elsewhere(kernel.body)
    merged = 0
    for block in list(kernel.body.blocks):
        if block.parent is None:
            continue
        while (last := block.last_op) is not None and isinstance(last, NextOp):
            following = last.target
            if len(before[following]) != 1 or following in elsewhere or _is_named(following):
                break
            for argument, value in zip(following.args, last.forwarded(0), strict=True):
                argument.replace_all_uses_with(value)
            last.detach()
            last.erase()
            for op in list(following.ops):
                op.detach()
                block.add_op(op)
            kernel.body.detach_block(following)
            following.erase()
            merged += 1
    return merged


def drop_idle_barriers(kernel: KernelOp) -> int:
    """Drop the convergence barriers at which a warp meets in the block in which it set them: it did not part. Returns their number."""
    dropped = 0
    for block in kernel.body.blocks:
        last = block.last_op
        if not isinstance(last, SassBranch) or last.MNEMONIC != "BSYNC" or last.guard is not None or len(last.reads) != 1:
            continue
        start = last.reads[0].owner
        if isinstance(start, SassInstruction) and start.MNEMONIC == "BSSY" and start.parent is block and len([*start.results[0].uses]) == 1:
            values, target = last.forwarded(0), last.successors[0]
            last.detach()
            last.erase()
            start.detach()
            start.erase()
            block.add_op(NextOp.create(operands=values, successors=[target]))
            dropped += 1
    return dropped


def _is_named(block: Block) -> bool:
    return any(isinstance(op, LabelOp) for op in internals.operations(block))


def tidy(kernel: KernelOp) -> None:
    """Join the blocks that nothing keeps apart any more: no label, and no barrier at which the warp meets though it did not part."""
    drop_private_labels(kernel)
    merge_blocks(kernel)
    while drop_idle_barriers(kernel):
        drop_private_labels(kernel)
        merge_blocks(kernel)


def drop_private_labels(kernel: KernelOp) -> None:
    """Drop the private labels that no instruction names, which would keep blocks apart."""
    instructions = [op for block in kernel.body.blocks for op in internals.operations(block) if isinstance(op, SassInstruction)]
    used = {op.place.data for op in instructions if op.place is not None}
    for block in kernel.body.blocks:
        for op in [o for o in block.ops if isinstance(o, LabelOp)]:
            if op.private is not None and op.label.data not in used:
                op.detach()
                op.erase()
