"""sass-gvn: compute once what is computed twice: the same operation on the same values, where one dominates the other."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass

from sassir.analysis.bits import Bits
from sassir.analysis.effects import effects
from sassir.analysis.flow import flow_of
from sassir.analysis.propagated import propagate
from sassir.dialect import internals
from sassir.dialect.instruction import SassBranch, SassInstruction
from sassir.dialect.operations import KernelOp
from sassir.rewrite.bits import simplify_bits
from sassir.rewrite.kernels import free_kernels
from sassir.rewrite.simplify import copied_values, replace


@dataclass(frozen=True)
class GlobalValueNumbering(ModulePass):
    """Drops every pure operation whose results are already there, and copies, also those put together from parts of a value.

    Constants are left where they are: they cost no register.
    """

    name = "sass-gvn"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel, arch in free_kernels(op):
            known = propagate(kernel, arch)
            if self.name in known.settled:
                continue
            simplified = simplify_bits(kernel, Bits(kernel, arch)) is not None
            if not number_values(kernel) and not simplified:
                known.settled.add(self.name)


def number_values(kernel: KernelOp) -> int:
    """Returns the number of operations dropped. A scoped table walks down the dominator tree (Click, 1995)."""
    blocks, _, cfg = flow_of(kernel.body)
    children: list[list[int]] = [[] for _ in blocks]
    for b in cfg.order:
        if cfg.dominators[b] >= 0:
            children[cfg.dominators[b]].append(b)
    table: dict[Hashable, SassInstruction] = {}
    dropped = 0
    work: list[tuple[int, list[Hashable] | None]] = [(b, None) for b in cfg.order if cfg.dominators[b] < 0]
    while work:
        b, added = work.pop()
        if added is not None:
            for key in added:
                del table[key]
            continue
        added = list[Hashable]()
        dropped += _visit(blocks[b], table, added)
        work.append((b, added))
        work += [(child, None) for child in children[b]]
    return dropped


def _visit(block: Block, table: dict[Hashable, SassInstruction], added: list[Hashable]) -> int:
    dropped = 0
    for op in internals.operations(block):
        key = _key(op)
        if key is None or not isinstance(op, SassInstruction):
            continue
        copied = copied_values(op)
        known = table.get(key)
        if copied is not None:
            replace(op, list(copied))
        elif known is not None:
            replace(op, list(known.results))
        else:
            table[key] = op
            added.append(key)
            continue
        dropped += 1
    return dropped


def _key(op: Operation) -> Hashable | None:
    """Equal for operations with equal results; None for one that must stay, or is a mere constant."""
    if not isinstance(op, SassInstruction) or isinstance(op, SassBranch) or not op.results or not effects(op).pure or op.place is not None:
        return None
    operands = internals.operands(op)
    if not operands and op.MNEMONIC in ("MOV", "UMOV"):
        return None
    kinds = tuple([r.type for r in op.results])
    return (op.name, op.template, op.modifiers, op.unless, op.constant_guard, op.link, op.fields, operands, kinds)
