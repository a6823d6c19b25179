"""sass-dce: drop what nobody needs: instructions without use or effect, block arguments that are only passed around."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import BlockArgument, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from sassir.analysis.effects import effects
from sassir.dialect import internals
from sassir.dialect.edges import entered_from_elsewhere, forwarded, keep_arguments, own_operands
from sassir.dialect.operations import KernelOp


@dataclass(frozen=True)
class DeadCodeElimination(ModulePass):
    """Drops every instruction whose results nothing with an effect depends on, over all blocks at once."""

    name = "sass-dce"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in op.body.ops:
            if isinstance(kernel, KernelOp) and kernel.fixed is None:
                drop_dead_code(kernel.body)


def drop_dead_code(region: Region) -> int:
    """Returns the number of operations dropped. Linear: what is needed is marked from the effects backwards."""
    passed = _sources(region)
    needed: set[SSAValue] = set()
    live: set[Operation] = set()
    rooted = entered_from_elsewhere(region)
    work: list[SSAValue] = [argument for block in rooted for argument in block.args]
    for block in region.blocks:
        last = block.last_op
        for op in internals.operations(block):
            if op is last or not op.results or not effects(op).droppable:
                live.add(op)
                work.extend(own_operands(op) if op is last else internals.operands(op))
    while work:
        value = work.pop()
        if value in needed:
            continue
        needed.add(value)
        if isinstance(value, BlockArgument):
            work.extend(passed.get(value, ()))
        elif isinstance(owner := value.owner, Operation) and owner not in live:
            live.add(owner)
            work.extend(internals.operands(owner))
    dead = [op for block in region.blocks for op in internals.operations(block) if op not in live]
    for op in reversed(dead):
        op.detach()
        op.erase(safe_erase=False)
    keep_arguments(region, lambda b: [i for i, a in enumerate(b.args) if a in needed])
    return len(dead)


def _sources(region: Region) -> dict[SSAValue, list[SSAValue]]:
    """What is passed to each block argument."""
    found: dict[SSAValue, list[SSAValue]] = {}
    for block in region.blocks:
        last = block.last_op
        for successor, values in zip(internals.successors(last), forwarded(last), strict=False) if last is not None else ():
            for argument, value in zip(successor.args, values, strict=False):
                found.setdefault(argument, []).append(value)
    return found
