"""sass-flatten: a row of branches with one way out in common becomes straight code with selections.

So ends a search loop that was unrolled: each step tests whether to go on, and out leads to one place. Where the steps only
compute, all of them run, and each value behind them is selected by the tests. Exact: what is computed in vain has no effect.
A single branch is the matter of sass-convert-branches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from sassir.dialect.edges import decides, entered_from_elsewhere, forwarded
from sassir.dialect.instruction import SassBranch, SassInstruction
from sassir.dialect.operations import KernelOp, NextOp
from sassir.dialect.registers import P, R
from sassir.passes.dce import drop_dead_code
from sassir.rewrite.arms import needs_guard
from sassir.rewrite.build import arguments_of, instruction, name_of, rewritten
from sassir.rewrite.flow import tidy
from sassir.rewrite.kernels import free_kernels
from sassir.rewrite.layout import drop_terminator, is_jump, jump, repair_layout, replace_terminator

COST = 6
"""Instructions for each branch that goes: about what a branch and the wait for its predicate take."""
MOST = 64
"""Blocks between a branch and the place where its arms meet."""


@dataclass(frozen=True)
class Flatten(ModulePass):
    """Makes rows of branches without effects straight code where that costs no more than the branches."""

    name = "sass-flatten"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel, _ in free_kernels(op):
            while flatten(kernel):
                drop_dead_code(kernel.body)
                repair_layout(kernel)
                tidy(kernel)


def flatten(kernel: KernelOp) -> int:
    """Flatten the rows of branches that hold nothing which is not flat. Returns their number."""
    rooted = entered_from_elsewhere(kernel.body)
    flattened = 0
    for head in list(kernel.body.blocks):
        found = _arms(head, rooted) if head.parent is not None else None
        if found is not None and _pays(found):
            _flatten(kernel, head, found)
            flattened += 1
    return flattened


class _Arms(NamedTuple):
    """A row of branches, each of which leads on to the next one or out to the joint, straight or through one more block."""

    spine: tuple[SassBranch, ...]
    """The branches; between two of them lies a block that only the first leads to."""
    on: tuple[int, ...]
    """For each, the successor that leads on; the last one leads on to the joint."""
    joint: Block

    def blocks(self) -> list[Block]:
        """All blocks but the first and the joint."""
        ways = [s for last in self.spine for s in last.successors if s is not self.joint]
        return list(dict.fromkeys(ways))

    def ways(self) -> list[list[SSAValue]]:
        """What comes to the joint by each way out, in the order of the branches, and at last by going on."""
        passed: dict[SSAValue, SSAValue] = {a: v for block in self.blocks() for a, v in zip(block.args, _passed_to(block), strict=True)}
        last, on = self.spine[-1], self.on[-1]
        edges = [*[(branch, 1 - i) for branch, i in zip(self.spine, self.on, strict=True)], (last, on)]
        found: list[list[SSAValue]] = []
        for branch, i in edges:
            block = branch.successors[i]
            values = forwarded(branch)[i] if block is self.joint else _passed_by(block)
            found.append([_behind(v, passed) for v in values])
        return found


def _changes(ways: Sequence[Sequence[SSAValue]]) -> list[list[int]]:
    """For each argument of the joint, the ways that bring another value than the one before."""
    return [[k for k in range(1, len(ways)) if ways[k][i] is not ways[k - 1][i]] for i in range(len(ways[0]))]


def _pays(arms: _Arms) -> bool:
    """Whether running all arms is expected to cost no more than the branches, and whether it can be written."""
    ways, branches = arms.ways(), len(arms.spine)
    changes = _changes(ways)
    size = sum(len(block.ops) - 1 for block in arms.blocks()) + sum(len(ks) for ks in changes) + branches - 1
    chosen = [way[i] for i, ks in enumerate(changes) if ks for way in ways]
    writable = all(isinstance(v.type, R | P) for v in chosen) and all(isinstance(_guard(branch).type, P) for branch in arms.spine)
    return writable and branches > 1 and size <= COST * branches


def _flatten(kernel: KernelOp, head: Block, arms: _Arms) -> None:
    """Put the arms into the head, and selections behind them."""
    ways, blocks, last = arms.ways(), arms.blocks(), arms.spine[0]
    for block in blocks:
        for argument, value in zip(block.args, _passed_to(block), strict=True):
            argument.replace_all_uses_with(value)
        for op in list(block.ops):
            if op is not block.last_op:
                op.detach()
                head.insert_op_before(op, last)
    goes_on = _conditions(arms, last)
    values: list[SSAValue] = []
    for i, changes in enumerate(_changes(ways)):
        value = ways[-1][i]
        for k in reversed(changes):
            selected = _selection(goes_on[k - 1], value, ways[k - 1][i])
            head.insert_op_before(selected, last)
            value = selected.results[0]
        values.append(value)
    replace_terminator(head, jump(arms.joint, values))
    for block in blocks:
        drop_terminator(block)
    for block in blocks:
        kernel.body.detach_block(block)
        block.erase()


Condition = tuple[str, SSAValue]
"""A predicate as an operand, complemented or not."""


def _conditions(arms: _Arms, place: SassBranch) -> list[Condition]:
    """For each branch, whether it is reached and leads on; put before `place`."""
    found: list[Condition] = []
    for branch, on in zip(arms.spine, arms.on, strict=True):
        own = ("$P" if (on == 0) == (branch.unless is None) else "!$P", _guard(branch))
        found.append(_both(found[-1], own, place) if found else own)
    return found


def _both(before: Condition, own: Condition, place: SassBranch) -> Condition:
    """Both conditions in one predicate: by the comparison that makes the second one, if it has room for the first."""
    compare = own[1].owner
    block = place.parent
    assert block is not None
    both = instruction(f"PLOP3.LUT =P, PT, {before[0]}, {own[0]}, PT, 0x80, 0x0", [before[1], own[1]])
    if own[0] == "$P" and isinstance(compare, SassInstruction) and compare.parent is block and _has_room(compare):
        both = rewritten(compare, name_of(compare), [*arguments_of(compare)[:-1], before[0]], [*compare.reads, before[1]])
        if not own[1].has_one_use():  # the comparison stays for others than the branch
            both.properties.pop("origin", None)
    block.insert_op_before(both, place)
    return "$P", both.results[0]


def _has_room(compare: SassInstruction) -> bool:
    """Whether a comparison has one result and takes PT as what it is combined with."""
    shown = arguments_of(compare)
    plain = compare.MNEMONIC in ("FSETP", "ISETP") and compare.modifiers is not None and compare.modifiers.data.endswith(".AND")
    return plain and len(shown) == 5 and shown[4] == "PT" and len(compare.results) == 1 and compare.guard is None


def _selection(goes_on: Condition, a: SSAValue, b: SSAValue) -> SassInstruction:
    """`a` where control goes on, else `b`."""
    text, condition = goes_on
    if isinstance(a.type, R):
        return instruction(f"SEL =R, $R, $R, {text}", [a, b, condition])
    return instruction(f"PLOP3.LUT =P, PT, {text}, $P, $P, 0xca, 0x0", [condition, a, b])  # 0xca: x ? y : z


def _arms(head: Block, rooted: set[Block]) -> _Arms | None:
    """The row of branches that starts at the end of `head`, if all of it meets in one place."""
    spine: list[SassBranch] = []
    on: list[int] = []
    joint: Block | None = None
    block = head
    while block.last_op is not None and decides(block.last_op) and len(spine) < MOST:
        last = block.last_op
        branching: list[int] = []
        ends: list[Block] = []
        for i, successor in enumerate(last.successors):
            own = successor is not head and successor not in rooted and len(successor.predecessors()) == 1 and _only_computes(successor)
            ends.append(successor.last_op.successors[0] if own and successor.last_op is not None else successor)
            branching += [i] if own and successor.last_op is not None and decides(successor.last_op) else []
        spine.append(last)
        on.append(branching[0] if branching else 1)
        outs = {end for i, end in enumerate(ends) if i not in branching} | {b for b in [joint] if b is not None}
        if len(outs) != 1 or head in outs:
            return None
        (joint,) = outs
        if not branching:
            return _Arms(tuple(spine), tuple(on), joint)
        block = last.successors[branching[0]]
    return None


def _only_computes(block: Block) -> bool:
    """Whether it has no effect but its values, cannot fail, and goes on in a way that a selection can stand for."""
    last = block.last_op
    plain = isinstance(last, NextOp) or (last is not None and (decides(last) or is_jump(last)))
    return plain and all(_computes(op) for op in block.ops if op is not last)


def _computes(op: Operation) -> bool:
    return isinstance(op, SassInstruction) and op.place is None and not needs_guard(op)


def _guard(branch: SassBranch) -> SSAValue:
    assert branch.guard is not None
    return branch.guard


def _passed_to(block: Block) -> Sequence[SSAValue]:
    """What its one predecessor passes to a block."""
    (before,) = block.predecessors()
    last = before.last_op
    assert last is not None
    return forwarded(last)[list(last.successors).index(block)]


def _passed_by(block: Block) -> Sequence[SSAValue]:
    """What a block passes to its one successor."""
    assert block.last_op is not None
    return forwarded(block.last_op)[0]


def _behind(value: SSAValue, passed: Mapping[SSAValue, SSAValue]) -> SSAValue:
    """The value behind arguments of the arms."""
    while value in passed:
        value = passed[value]
    return value
