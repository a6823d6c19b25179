"""Places for new instructions on the edges of the control-flow graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeGuard

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Block, Operation

from sassir.allocation.registers import AllocationError
from sassir.dialect.edges import forwarded, own_operands, pass_values, predecessors
from sassir.dialect.instruction import SassBranch, SassInstruction
from sassir.dialect.operations import KernelOp, LabelOp, NextOp
from sassir.dialect.template import ADDRESS, PLACE
from sassir.rewrite.layout import falls_through, jump, repair_end

Ends = Mapping[Block, Block | None]


def ends_of_runs(blocks: Sequence[Block]) -> Ends:
    """For each block the first one from there on, or at all, from which control does not go on: new code can be put behind that."""
    ends: dict[Block, Block | None] = {}
    end = next((block for block in blocks if _stops(block)), None)
    for block in reversed(blocks):
        end = ends[block] = block if _stops(block) else end
    return ends


def end_of_run(block: Block) -> Block | None:
    """What `ends_of_runs` says of one block, without a look at all the others."""
    end: Block | None = block
    while end is not None and not _stops(end):
        end = end.next_block
    if end is None and block.parent is not None:
        end = next((b for b in block.parent.blocks if _stops(b)), None)
    return end


def is_before(terminator: Operation, i: int) -> bool:
    """What happens on the way to successor `i` has to happen before the terminator: that is the only way, or it is a computed one (RET,
    BRX), on which no block can be put."""
    return len(terminator.successors) == 1 or is_computed(terminator, i)


def can_turn(terminator: Operation) -> TypeGuard[SassBranch]:
    """A plain branch, taken under a predicate or not: the complement of the predicate would do as well."""
    if not isinstance(terminator, SassBranch) or terminator.guard is None or len(terminator.successors) != 2:
        return False
    return (terminator.MNEMONIC, terminator.modifiers, terminator.template.text) == ("BRA", None, PLACE) and _goes_on(terminator, 1)


def turn(terminator: SassBranch) -> Operation:
    """Branch where control went on, and put a block behind that jumps to where the branch went, which takes one branch, not two.

    Returns the new block's terminator.
    """
    block = terminator.parent
    assert block is not None
    assert block.parent is not None
    (target, other), (passed, rest) = terminator.successors, forwarded(terminator)
    block.parent.insert_block_after(new := Block([back := jump(target, passed)]), block)
    terminator.unless = None if terminator.unless is not None else UnitAttr()
    terminator.operands = [*own_operands(terminator), *rest]
    terminator.successors = [other, new]
    return back


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


def add_landings(kernel: KernelOp, branches: Sequence[Operation]) -> int:
    """Put a block before each one that takes arguments from one of these computed branches and from others. Returns their number.

    Copies for all places that a computed branch may go to have to happen before it. A landing hands on what is passed, and takes
    for itself only what differs between the branches that come to it: the copies happen behind it, for one place.
    """
    targets = dict.fromkeys([s for t in branches for i, s in enumerate(t.successors) if s.args and is_computed(t, i)])
    named = _named_otherwise(kernel) if targets else frozenset[str]()
    before = predecessors(kernel.body) if targets else {}
    added = 0
    for target in targets:
        comers = dict.fromkeys([last for block in before[target] if (last := block.last_op) is not None])
        computed = [t for t in comers if is_computed(t, list(t.successors).index(target))]
        labels = [op for op in target.ops if isinstance(op, LabelOp)]
        returned_to = any(isinstance(t, SassBranch) and t.produces for t in comers)
        if returned_to or not computed or len(computed) == len(comers) or any(label.label.data in named for label in labels):
            continue
        _land(kernel, target, labels, computed)
        added += 1
    return added


def _land(kernel: KernelOp, target: Block, labels: Sequence[LabelOp], comers: Sequence[Operation]) -> None:
    """Let the terminators `comers` come to a new block with the labels of `target`."""
    passed = [values for t in comers for s, values in zip(t.successors, forwarded(t), strict=True) if s is target]
    differing = [len(set(values)) > 1 for values in zip(*passed, strict=True)]
    landing = Block(arg_types=[a.type for a, differs in zip(target.args, differing, strict=True) if differs])
    own = iter(landing.args)
    handed_on = [next(own) if differs else value for value, differs in zip(passed[0], differing, strict=True)]
    for label in labels:
        label.detach()
        landing.add_op(label)
    above = target.prev_block
    # A landing behind a call stays there: that is where calls of the section return to.
    end = None if above is None or _stops(above) or _calls(above) else end_of_run(above)
    if end is None:
        landing.add_op(NextOp.create(operands=handed_on, successors=[target]))
        kernel.body.insert_block_before(landing, target)
        if above is not None:
            repair_end(above)
    else:
        landing.add_op(jump(target, handed_on))
        kernel.body.insert_block_after(landing, end)
    for terminator in comers:
        lists = zip(terminator.successors, forwarded(terminator), strict=True)
        taken = [[v for v, d in zip(values, differing, strict=True) if d] if s is target else values for s, values in lists]
        pass_values(terminator, taken)
        terminator.successors = [landing if s is target else s for s in terminator.successors]


def _named_otherwise(kernel: KernelOp) -> set[str]:
    """The labels that an instruction names but not as the address of a branch: a BSSY."""
    ops = [op for block in kernel.body.blocks for op in block.ops if isinstance(op, SassInstruction) and op.place is not None]
    return {op.place.data for op in ops if op.place is not None and all(a.template != ADDRESS for a in op.template.data.arguments)}


def is_computed(terminator: Operation, i: int) -> bool:
    """A register says that control goes to successor `i`."""
    return not (_is_named(terminator, i) or _goes_on(terminator, i))


def _is_named(terminator: Operation, i: int) -> bool:
    """Successor `i` is the place that the text of a branch names."""
    return i == 0 and isinstance(terminator, SassBranch) and terminator.template.places > 0 and terminator.place is None


def _goes_on(terminator: Operation, i: int) -> bool:
    """Successor `i` is the next instruction."""
    if not isinstance(terminator, SassBranch):
        return True
    return i == len(terminator.successors) - 1 and not _is_named(terminator, i) and falls_through(terminator)


def _calls(block: Block) -> bool:
    """The block ends with a call."""
    return isinstance(block.last_op, SassBranch) and block.last_op.CALLS


def _stops(block: Block) -> bool:
    """Control does not go on from the block, nor come back behind it as from a call."""
    last = block.last_op
    if not isinstance(last, SassBranch) or last.CALLS:
        return False
    return not last.successors or last.successors[-1] is not block.next_block
