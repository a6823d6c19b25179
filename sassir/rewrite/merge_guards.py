"""One test for a run of guards: the fast ways of all of them in one block, the slow ways in the code as it was.

    start:    …  BSSY Bn, together  …  the fast ways  …  if any guard holds: original
    stores:   those that waited
    meeting:  BSYNC Bn
    together: what was behind the run

    original: the run as it was, from the first guard on, then to meeting

What is needed of the fast ways becomes an argument of `meeting`, so that nothing of them is seen where a guard holds: the original
computes it again from what was there before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count
from typing import NamedTuple

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Block, Operation, SSAValue

from sassir.analysis.effects import effects
from sassir.analysis.guarded_runs import Guard, GuardedRun, before_last, passed, runs_early
from sassir.dialect import internals
from sassir.dialect.instruction import SassBranch
from sassir.dialect.operations import KernelOp, LabelOp, NextOp
from sassir.dialect.registers import B
from sassir.rewrite.any_of import Condition, any_of
from sassir.rewrite.layout import branch, falls_through, jump
from sassir.rewrite.reconstruct import reconstruct


def merge_guards(kernel: KernelOp, run: GuardedRun) -> bool:
    """Test all guards of `run` at once. The layout is to be repaired afterwards. Returns whether that was possible.

    It takes a barrier that is left, and the barriers of the guards must be of no use behind them.
    """
    free = _unused_barrier(kernel)
    inside = [*run.trace, *[guard.start for guard in run.guards], *[block for guard in run.guards for block in guard.cold]]
    if free is None or any(_used_outside(barrier, inside) for barrier in run.barriers):
        return False
    start, last = run.guards[0].start, run.guards[-1]
    together = _split_join(kernel, run)
    original = _set_apart(kernel, run)
    fast = _run_fast(start, run)
    needed = [v for v in fast.values if v not in run.barriers and _used_outside(v, original)]
    meeting = Block(arg_types=[v.type for v in needed])
    kernel.body.insert_block_after(meeting, start)
    results = [fast.values[v] for v in needed]
    barrier = _synchronise(kernel, last, free, start, meeting, together)
    last.join.add_op(jump(meeting, needed))
    test = any_of(start, fast.guards)
    if fast.waiting:
        stores = Block([*fast.waiting, NextOp.create(operands=results, successors=[meeting])])
        kernel.body.insert_block_after(stores, start)
        start.add_op(branch(test, original[0], [], stores, []))
    else:
        start.add_op(branch(test, original[0], [], meeting, results))
    reconstruct(kernel.body, dict(zip(meeting.args, needed, strict=True)) | barrier, lambda _, value: value.type)
    return True


def _split_join(kernel: KernelOp, run: GuardedRun) -> Block:
    """Leave in the join of the last guard what may run early and others wait for; put the rest into a new block behind.

    What is only for the next iteration can take the register of this one's value there, where nobody needs that any more.
    """
    join = run.guards[-1].join
    rest: list[Operation] = []
    for op in [op for op in before_last(join) if not isinstance(op, LabelOp)]:
        late = {result for other in rest for result in other.results}
        awaited = not run.decided.isdisjoint(op.results) and not _only_passed_on(op)
        passes = not effects(op).loads or not (run.waiting or any(not effects(other).pure for other in rest))
        if not (awaited and passes and runs_early(op, run.decided) and late.isdisjoint(internals.operands(op))):
            rest.append(op)
    together = Block()
    for op in [*rest, *([join.last_op] if join.last_op is not None else [])]:
        op.detach()
        together.add_op(op)
    kernel.body.insert_block_after(together, join)
    return together


def _only_passed_on(op: Operation) -> bool:
    users = [use.operation for result in op.results for use in result.uses]
    return bool(users) and all(user.parent is not None and user is user.parent.last_op for user in users)


def _set_apart(kernel: KernelOp, run: GuardedRun) -> list[Block]:
    """Move the run, from the branch of the first guard on, to where no control falls through. The blocks that it then is."""
    first, join = run.guards[0], run.guards[-1].join
    moved = {*run.trace, join}.union(*[guard.cold for guard in run.guards])
    blocks = [block for block in kernel.body.blocks if block in moved]
    place = first.start
    while place.next_block is not None and (place in moved or _goes_on(place)):
        place = place.next_block
    entry = Block()
    for op in (first.barrier, first.branch):
        op.detach()
        entry.add_op(op)
    kernel.body.insert_block_after(entry, place)
    place = entry
    for block in blocks:
        kernel.body.detach_block(block)
        kernel.body.insert_block_after(block, place)
        place = block
    return [entry, *blocks]


def _goes_on(block: Block) -> bool:
    """Control may come from `block` to the next one in memory, also back from a call."""
    last = block.last_op
    return not isinstance(last, SassBranch) or last.MNEMONIC == "CALL" or falls_through(last)


class _Fast(NamedTuple):
    """The fast ways of a run, once more."""

    values: dict[SSAValue, SSAValue]
    """From the values of the run to those of the copy."""
    guards: list[Condition]
    """Each holds where a slow way was to be taken."""
    waiting: list[Operation]
    """The stores, which stand nowhere yet."""


def _run_fast(block: Block, run: GuardedRun) -> _Fast:
    """Add to `block` what the run computes when all of its operations take their fast ways."""
    values: dict[SSAValue, SSAValue] = {}
    guards: list[Condition] = []
    waiting: list[Operation] = []

    def copy(ops: Iterable[Operation]) -> None:
        for op in ops:
            if not isinstance(op, LabelOp) and op.name != "sass.bssy":
                new = op.clone(values)
                new.properties.pop("origin", None)
                if op in run.waiting:
                    waiting.append(new)
                else:
                    block.add_op(new)

    def enter(terminator: Operation | None, target: Block) -> None:
        values.update(zip(target.args, [values.get(v, v) for v in passed(terminator, target)], strict=True))

    for guard in run.guards:
        if guard is not run.guards[0]:
            copy(before_last(guard.start))
        condition = guard.branch.guard
        assert condition is not None
        guards.append(Condition(values.get(condition, condition), (guard.fast == 0) == (guard.branch.unless is None)))
        way = guard.branch
        if guard.between is not None:
            enter(way, guard.between)
            copy(before_last(guard.between))
            way = guard.between.last_op
        enter(way, guard.meeting)
        copy(before_last(guard.meeting))
    copy(run.guards[-1].join.ops)
    return _Fast(values, guards, waiting)


def _used_outside(value: SSAValue, blocks: Sequence[Block]) -> bool:
    return any(use.operation.parent not in blocks for use in value.uses)


def _synchronise(
    kernel: KernelOp, last: Guard, barrier: B, start: Block, meeting: Block, together: Block
) -> dict[SSAValue, SSAValue]:
    """Let the warp come together at the end of `meeting`, if it is split at the end of `start`.

    The barrier is a register that is alive all along, through the routines too, whose other callers have nothing in it. It gets
    an argument of the kernel for a variable; the result says what is a definition of that.
    """
    nothing = kernel.body.blocks[0].insert_arg(barrier, len(kernel.body.blocks[0].args))
    label = _unused_label(kernel)
    opening = last.barrier.clone()
    opening.properties.pop("origin", None)
    opening.properties["place"] = StringAttr(label)
    internals.retype(opening.results[0], barrier)
    start.add_op(opening)
    end = last.meeting.last_op
    assert end is not None
    closing = end.clone(dict.fromkeys(end.operands, nothing), {last.join: together})
    closing.properties.pop("origin", None)
    meeting.add_op(closing)
    named = LabelOp.of(label, True)
    if together.first_op is None:
        together.add_op(named)
    else:
        together.insert_op_before(named, together.first_op)
    return {opening.results[0]: nothing}


def _unused_barrier(kernel: KernelOp) -> B | None:
    """A convergence barrier that is nowhere used in the section."""
    used = {v.type for block in kernel.body.blocks for v in (*block.args, *[r for op in block.ops for r in op.results])}
    return next((B.of(i) for i in range(B.COUNT) if B.of(i) not in used), None)


def _unused_label(kernel: KernelOp) -> str:
    used = {op.label.data for block in kernel.body.blocks for op in block.ops if isinstance(op, LabelOp)}
    return next(name for i in count() if (name := f"merged_{i}") not in used)
