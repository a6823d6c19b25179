"""Change what blocks take and what branches pass, both ends at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeGuard

from xdsl.ir import Block, Operation, Region, SSAValue

from sassir.dialect import internals
from sassir.dialect.instruction import SassBranch
from sassir.dialect.operations import NextOp
from sassir.dialect.template import PLACE


def forwarded(terminator: Operation) -> list[tuple[SSAValue, ...]]:
    """What a terminator passes to each of its successors; nothing where code of another section runs between."""
    operands = internals.operands(terminator)
    if isinstance(terminator, NextOp):
        return [operands]
    if not isinstance(terminator, SassBranch):
        return []
    successors = internals.successors(terminator)
    if terminator.produces:
        return [() for _ in successors]
    counts = [len(block.args) for block in successors]
    values, at = tuple(operands), len(operands) - sum(counts)
    found: list[tuple[SSAValue, ...]] = []
    for count in counts:
        found.append(values[at : at + count])
        at += count
    return found


def own_operands(terminator: Operation) -> tuple[SSAValue, ...]:
    """The operands that a terminator reads itself: all but those that it passes on."""
    operands = tuple(internals.operands(terminator))
    if isinstance(terminator, NextOp):
        return ()
    if not isinstance(terminator, SassBranch) or terminator.produces:
        return operands
    return operands[: len(operands) - sum([len(block.args) for block in internals.successors(terminator)])]


def decides(op: Operation) -> TypeGuard[SassBranch]:
    """A BRA that its guard alone decides: to the first successor where it holds, else to the second."""
    return (
        isinstance(op, SassBranch)
        and (op.MNEMONIC, op.modifiers, op.template.text) == ("BRA", None, PLACE)
        and op.guard is not None
        and len(op.successors) == 2
    )


def terminators(region: Region) -> Iterable[Operation]:
    """The last operation of each block."""
    return [block.last_op for block in region.blocks if block.last_op is not None]


def predecessors(region: Region) -> dict[Block, list[Block]]:
    """The blocks from which control comes, once for each edge."""
    found: dict[Block, list[Block]] = {block: [] for block in region.blocks}
    for block in region.blocks:
        for successor in internals.successors(block.last_op) if block.last_op is not None else ():
            found[successor].append(block)
    return found


def entered_from_elsewhere(region: Region) -> set[Block]:
    """The blocks whose arguments no branch of the kernel passes: the entry, device functions, the places where calls return."""
    found = {block for block, others in predecessors(region).items() if not others}
    found.update([region.blocks[0]])
    for terminator in terminators(region):
        if isinstance(terminator, SassBranch) and terminator.produces:
            found.update(terminator.successors)
    return found


def keep_arguments(region: Region, kept: Callable[[Block], Sequence[int]]) -> None:
    """Let every block take only the arguments with these indices; the others must have no uses besides being passed on."""
    keep = {block: kept(block) for block in region.blocks}
    changed = {block for block, indices in keep.items() if len(indices) != len(block.args)}
    operands: list[tuple[Operation, list[SSAValue]]] = []
    for terminator in terminators(region):
        if changed.isdisjoint(terminator.successors):
            continue
        passed = [v[i] for s, v in zip(terminator.successors, forwarded(terminator), strict=False) for i in (keep[s] if v else ())]
        operands.append((terminator, [*own_operands(terminator), *passed]))
    for terminator, values in operands:
        terminator.operands = values
    for block in changed:
        indices = set(keep[block])
        for i in reversed(range(len(block.args))):
            if i not in indices:
                block.erase_arg(block.args[i])


def pass_values(terminator: Operation, passed: Sequence[Sequence[SSAValue]]) -> None:
    """Let a terminator pass `passed[i]` to its successor `i`. Call before the successors' arguments change."""
    terminator.operands = [*own_operands(terminator), *[v for values in passed for v in values]]
