"""sass-unguard: what only computes needs no guard where nobody reads its result without the same guard.

ptxas guards all of a short arm. Of that only what stores, loads or decides has to be; the rest is part of no address and no sum that other
passes understand, and waits for the comparison, until it executes in all threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from sassir.dialect import internals
from sassir.dialect.instruction import SassBranch, SassInstruction
from sassir.dialect.operations import KernelOp, UndefinedOp
from sassir.dialect.registers import SassRegister
from sassir.passes.dce import drop_dead_code
from sassir.rewrite.arms import needs_guard
from sassir.rewrite.kernels import free_kernels
from sassir.rewrite.simplify import put_in_place, without_guard

MOST = 400
"""Readers that are looked at for one result."""

Guard = tuple[SSAValue, bool]
"""A predicate, and whether it must not hold."""


@dataclass(frozen=True)
class Unguard(ModulePass):
    """Drops guards, and with them the old values that the results kept in the other threads; where a guard must stay, those alone."""

    name = "sass-unguard"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel, _ in free_kernels(op):
            if unguard(kernel):
                drop_dead_code(kernel.body)


def unguard(kernel: KernelOp) -> int:
    """Returns the number of operations that lost their guard, or an old value."""
    changed = 0
    for block in kernel.body.blocks:
        for op in internals.operations(block):
            if not isinstance(op, SassInstruction) or isinstance(op, SassBranch) or not op.results or (guard := _guard(op)) is None:
                continue
            free = [not _is_needed(result, guard) for result in op.results]
            if all(free) and op.place is None and not needs_guard(op):
                put_in_place(op, without_guard(op))
                changed += 1
            else:
                changed += _forget(op, free)
    return changed


def _forget(op: SassInstruction, free: Sequence[bool]) -> bool:
    """Keep no old value where nobody needs it. Returns whether there was one."""
    found = False
    first = len(op.operands) - len(op.kept)
    for i, (kept, unneeded) in enumerate(zip(op.kept, free, strict=True)):
        if unneeded and not isinstance(kept.owner, UndefinedOp) and isinstance(kept.type, SassRegister) and kept.type.number is None:
            assert op.parent is not None
            op.parent.insert_op_before(undefined := UndefinedOp.of(kept.type), op)
            op.operands[first + i] = undefined.value
            found = True
    return found


def _guard(op: SassInstruction) -> Guard | None:
    return None if op.guard is None else (op.guard, op.unless is not None)


def _is_needed(value: SSAValue, guard: Guard) -> bool:
    """Whether a thread in which the guard does not hold may need the value."""
    work = [(frozenset([guard]), value)]
    seen = set(work)
    left = MOST
    while work:
        guards, value = work.pop()  # it is where none of the guards holds
        for use in value.uses:
            user = use.operation
            left -= 1
            if not left or not isinstance(user, SassInstruction) or isinstance(user, SassBranch) or value is user.guard:
                return True
            own, found = _guard(user), list[tuple[frozenset[Guard], SSAValue]]()
            if value in user.reads and own not in guards:
                if needs_guard(user):
                    return True
                found += [(guards, result) for result in user.results]
            if own is not None and value in user.kept:
                found += [(guards | {own}, result) for kept, result in zip(user.kept, user.results, strict=True) if kept is value]
            work += [state for state in found if state not in seen]
            seen.update(found)
    return False
