"""sass-share-addresses: one address register for accesses a known distance apart, the distance in their displacements."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, SSAValue
from xdsl.passes import ModulePass

from sassir.analysis.affine import Affine, Form
from sassir.analysis.arguments import arguments
from sassir.analysis.flow import flow_of
from sassir.analysis.propagated import propagate
from sassir.dialect import internals
from sassir.dialect.facts import record_use
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.operations import KernelOp
from sassir.dialect.registers import R
from sassir.passes.dce import drop_dead_code
from sassir.rewrite.build import arguments_of, name_of, rewritten
from sassir.rewrite.kernels import free_kernels
from sassir.rewrite.simplify import exchange
from sassir.rewrite.sparing import sparing_ranges

_ADDRESS = re.compile(r"(?P<before>(?:desc\[\$UR2\])?\[)(?P<register>\$R2?)(?P<wide>\.64)?(?P<offset>[-+](?:0x[0-9a-f]+|-0x[0-9a-f]+))?\]")
_REACH = 1 << 23
"""Displacements are signed numbers of 24 bits (sass-facts: bits 40 to 63 of memory instructions)."""

Terms = tuple[bool, object]
Base = tuple[tuple[SSAValue, ...], int]
"""Address registers and the constant part of what is in them."""


@dataclass(frozen=True)
class ShareAddresses(ModulePass):
    """Addresses that differ by a number are computed once."""

    name = "sass-share-addresses"

    @sparing_ranges
    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel, arch in free_kernels(op):
            known = propagate(kernel, arch)
            if share_addresses(kernel, Affine(known), arch):
                record_use(kernel, known.used)
                drop_dead_code(kernel.body)


def share_addresses(kernel: KernelOp, forms: Affine, arch: str) -> int:
    """Returns the number of accesses that use another register now."""
    blocks, _, cfg = flow_of(kernel.body)
    tables: list[dict[Terms, Base]] = [{} for _ in blocks]
    changed = 0
    for b in cfg.order:
        above = cfg.dominators[b]
        tables[b] = dict(tables[above]) if above >= 0 else {}
        changed += _share(blocks[b], tables[b], forms, arch)
    return changed


def _share(block: Block, table: dict[Terms, Base], forms: Affine, arch: str) -> int:
    changed = 0
    for op in internals.operations(block):
        if not isinstance(op, SassInstruction):
            continue
        shown = arguments_of(op)
        place = next((k for k, text in enumerate(shown) if _ADDRESS.fullmatch(text)), None)
        match = _ADDRESS.fullmatch(shown[place]) if place is not None else None
        if place is None or match is None:
            continue
        operands = arguments(op)
        wide = match["wide"] is not None
        values = operands[place].values[2 if match["before"].startswith("desc") else 0 :]
        if not all(isinstance(v.type, R) and v.type.number is None for v in values):
            continue
        form = forms.pair(values[0], values[1]) if wide else forms.word(values[0])
        key = (wide, form.terms)
        base = table.setdefault(key, (values, form.constant))
        if base[0] == values or not form.terms:
            continue
        offset = int(match["offset"].replace("+-", "-") if match["offset"] else "0", 16) + _distance(form, base[1], wide)
        if not -_REACH <= offset < _REACH:
            table[key] = (values, form.constant)
            continue
        new = _moved(op, place, match, base[0], offset)
        changed += exchange(op, new, arch)
    return changed


def _distance(form: Form, constant: int, wide: bool) -> int:
    """What the address is more than the base, as a signed number."""
    half = 1 << (63 if wide else 31)
    return (form.constant - constant + half) % (2 * half) - half


def _moved(op: SassInstruction, place: int, match: re.Match[str], base: Sequence[SSAValue], offset: int) -> SassInstruction:
    """A copy of `op` that reaches its address from `base`."""
    shown = arguments_of(op)
    displacement = f"{offset:+#x}" if offset >= 0 else f"+-{-offset:#x}"
    shown[place] = f"{match['before']}{match['register']}{match['wide'] or ''}{displacement if offset else ''}]"
    reads: list[SSAValue] = []
    for k, argument in enumerate(arguments(op)):
        reads += [*argument.values[: len(argument.values) - len(base)], *base] if k == place else argument.values
    return rewritten(op, name_of(op), shown, reads)
