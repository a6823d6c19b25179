"""The arm of a branch: a block that some threads run before all of them go on at one place."""

from __future__ import annotations

from collections.abc import Set
from typing import NamedTuple

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Block, Operation, SSAValue

from sassir.analysis.effects import effects
from sassir.dialect import internals
from sassir.dialect.edges import decides, forwarded
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.operations import NextOp, UndefinedOp
from sassir.dialect.registers import P, R, SassRegister
from sassir.rewrite.build import instruction
from sassir.rewrite.layout import is_jump, jump, replace_terminator


class Arm(NamedTuple):
    """A block that only those threads run in which the guard of the branch before it is as said."""

    before: Block
    block: Block
    join: Block
    """Where all go on."""
    guard: SSAValue
    unless: bool
    """It runs where the guard does not hold."""
    skipped: tuple[SSAValue, ...]
    """What `join` takes from the threads that do not run it."""
    passed: tuple[SSAValue, ...]
    """What it takes from those that do."""


def find_arm(before: Block, lone: Set[Block], most: int) -> Arm | None:
    """The arm behind `before` that can be guarded, if there is one of at most `most` instructions.

    `lone`: the blocks to which only one branch leads.
    """
    branch = before.last_op
    if branch is None or not decides(branch) or branch.guard is None or not isinstance(branch.guard.type, P):
        return None
    for i, block in enumerate(branch.successors):
        join, end = branch.successors[1 - i], block.last_op
        if block is join or block not in lone or end is None or not _goes_to(end, join) or not _is_guardable(block, most):
            continue
        unless = (branch.unless is not None) == (i == 0)
        arm = Arm(before, block, join, branch.guard, unless, forwarded(branch)[1 - i], forwarded(end)[0])
        if all(isinstance(p.type, R) or p is s or _selects_itself(p, block) for s, p in zip(arm.skipped, arm.passed, strict=True)):
            return arm
    return None


def convert(arm: Arm) -> None:
    """Put the instructions of the arm in front of the branch, which becomes a jump to the join."""
    branch, end = arm.before.last_op, arm.block.last_op
    assert branch is not None
    assert end is not None
    kept: dict[SSAValue, SSAValue] = {}
    moves: dict[int, SassInstruction] = {}
    for k, (skipped, passed) in enumerate(zip(arm.skipped, arm.passed, strict=True)):
        if passed is not skipped and not (_selects_itself(passed, arm.block) and kept.setdefault(passed, skipped) is skipped):
            moves[k] = instruction("MOV =R, $R", [passed], arm.guard, arm.unless, [skipped])
    for op in list(arm.block.ops)[:-1]:
        op.detach()
        arm.before.insert_op_before(op, branch)
        if isinstance(op, SassInstruction) and (needs_guard(op) or any(result in kept for result in op.results)):
            _guard(op, arm, kept)
    arm.before.insert_ops_before(list(moves.values()), branch)
    values = [moves[k].results[0] if k in moves else value for k, value in enumerate(arm.passed)]
    replace_terminator(arm.before, jump(arm.join, values))
    end.operands, end.successors = (), ()
    assert arm.block.parent is not None
    arm.block.parent.detach_block(arm.block)
    arm.block.erase(safe_erase=False)


def _guard(op: SassInstruction, arm: Arm, kept: dict[SSAValue, SSAValue]) -> None:
    """Replace `op` by one that executes only in the threads of the arm."""
    block = op.parent
    assert block is not None
    old: list[SSAValue] = []
    for result in op.results:
        if result not in kept:
            assert isinstance(result.type, SassRegister)
            block.insert_op_before(undefined := UndefinedOp.of(result.type), op)
            old.append(undefined.value)
        else:
            old.append(kept[result])
    op.operands = [*internals.operands(op), arm.guard, *old]
    if arm.unless:
        op.unless = UnitAttr()


def _goes_to(end: Operation, join: Block) -> bool:
    """Whether `end` does nothing but to go on at `join`."""
    return [*end.successors] == [join] and (isinstance(end, NextOp) or is_jump(end))


def _is_guardable(block: Block, most: int) -> bool:
    """Whether each instruction of the block can be guarded, or may as well run in all threads."""
    ops = list(block.ops)[:-1]
    return len(ops) <= most and all(isinstance(op, SassInstruction) and (not needs_guard(op) or _can_be_guarded(op)) for op in ops)


def needs_guard(op: SassInstruction) -> bool:
    """Whether it does more than compute what can be thrown away. An indexed constant may lie outside of the bank."""
    found = effects(op)
    return not found.pure or bool(found.loads and op.reads)


def _can_be_guarded(op: SassInstruction) -> bool:
    found = effects(op)
    plain = op.guard is None and op.constant_guard is None and op.place is None and op.link is None
    return plain and not (found.warp or found.ordered or found.pinned or found.clock) and all(isinstance(r.type, R | P) for r in op.results)


def _selects_itself(passed: SSAValue, block: Block) -> bool:
    """Whether the value is made in the arm by an instruction that, guarded, leaves the other threads' value as it is."""
    owner = passed.owner
    return isinstance(owner, SassInstruction) and owner.parent is block and _can_be_guarded(owner)
