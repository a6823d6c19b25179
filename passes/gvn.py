"""sass-gvn: compute once what is computed twice: the same operation on the same values, where one dominates the other."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass

from sassir.analysis.bits import Bits
from sassir.analysis.bonds import bound
from sassir.analysis.effects import effects
from sassir.analysis.flow import flow_of
from sassir.analysis.propagated import propagate
from sassir.dialect import internals
from sassir.dialect.instruction import SassBranch, SassInstruction
from sassir.dialect.operations import KernelOp, NextOp
from sassir.rewrite.bits import simplify_bits
from sassir.rewrite.kernels import free_kernels
from sassir.rewrite.simplify import copied_values, replace

MOST_KEPT = 32
"""Registers of loads that are not made again: they may stay in use over much of the kernel."""


@dataclass(frozen=True)
class GlobalValueNumbering(ModulePass):
    """Drops every pure operation whose results are already there, and copies, also those put together from parts of a value.

    A load of memory that nobody writes (`.CONSTANT`, see `sass-constant-loads`) is one, as long as that keeps few registers in use.
    Constants are shared within a block only: over more of the kernel they cost a register, and the allocator makes them again where it has
    none. Where an operand is made of several registers, each needs constants of its own. Uniform registers are few: there constants stay.
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
    table, kept = dict[Hashable, SassInstruction](), set[SassInstruction]()
    dropped = 0
    work: list[tuple[int, list[Hashable] | None]] = [(b, None) for b in cfg.order if cfg.dominators[b] < 0]
    while work:
        b, added = work.pop()
        if added is not None:
            for key in added:
                del table[key]
            continue
        added = list[Hashable]()
        dropped += _visit(blocks[b], table, added, kept)
        work.append((b, added))
        work += [(child, None) for child in children[b]]
    return dropped


def _visit(block: Block, table: dict[Hashable, SassInstruction], added: list[Hashable], kept: set[SassInstruction]) -> int:
    """Number one block. What it adds to the `table` is `added`; `kept` are the loads whose results are read instead of loaded again."""
    dropped = 0
    constants: dict[Hashable, SassInstruction] = {}
    for op in internals.operations(block):
        key = _key(op)
        if key is None or not isinstance(op, SassInstruction):
            continue
        copied = copied_values(op)
        scope = constants if _is_constant(op) else table
        known = scope.get(key)
        if copied is not None:
            replace(op, list(copied))
        elif known is None or not _may_share(known, op, kept):
            if known is None and scope is table:
                added.append(key)
            if known is None or scope is constants:
                scope[key] = op
            continue
        else:
            replace(op, list(known.results))
        dropped += 1
    return dropped


def _may_share(known: SassInstruction, op: SassInstruction, kept: set[SassInstruction]) -> bool:
    """Whether the results of `known` may be those of `op` too. A load may become one of those `kept`."""
    if _is_constant(op):
        return _is_alone(known) and _is_alone(op)
    if _is_constant_load(op) and known not in kept:
        if len(op.results) + sum([len(load.results) for load in kept]) > MOST_KEPT:
            return False
        kept.add(known)
    return True


def _is_constant_load(op: SassInstruction) -> bool:
    """It loads what nobody writes while the kernel runs."""
    return op.MNEMONIC == "LDG" and op.modifiers is not None and "CONSTANT" in op.modifiers.data.split(".")


def _is_constant(op: SassInstruction) -> bool:
    """It writes a number to a general register; not one that the linker fills in."""
    return op.MNEMONIC == "MOV" and not internals.operands(op) and op.link is None


def _is_alone(constant: SassInstruction) -> bool:
    """Whether no user binds the register to another one."""
    users = [use.operation for use in constant.results[0].uses]
    return not any(isinstance(op, SassBranch | NextOp) or constant.results[0] in bound(op) for op in users)


def _key(op: Operation) -> Hashable | None:
    """Equal for operations with equal results; None for one that must stay."""
    if not isinstance(op, SassInstruction) or isinstance(op, SassBranch) or not op.results or op.place is not None:
        return None
    if not effects(op).pure and not _is_constant_load(op):
        return None
    if op.MNEMONIC in ("MOV", "UMOV") and not internals.operands(op) and not _is_constant(op):
        return None
    kinds = tuple([r.type for r in op.results])
    return (op.name, op.template, op.modifiers, op.unless, op.constant_guard, op.link, op.fields, internals.operands(op), kinds)
