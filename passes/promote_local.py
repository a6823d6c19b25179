"""sass-promote-local: keep in registers what lies in local memory: spilled values, and arrays whose indices are known.

The stack is private to its thread. Where every access to it is at a known distance from the stack pointer, and nothing else
is made of the stack pointer, a word of it is a variable like any other. A word that is read before it is written holds
anything; it gets 0.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.hints import isa

from sassir.analysis.affine import Affine
from sassir.analysis.arguments import arguments
from sassir.analysis.effects import effects
from sassir.analysis.propagated import propagate
from sassir.dialect.facts import record_use
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.operations import KernelOp, LabelOp
from sassir.passes.dce import drop_dead_code
from sassir.rewrite.build import instruction
from sassir.rewrite.kernels import free_kernels
from sassir.rewrite.reconstruct import reconstruct
from sassir.rewrite.simplify import replace

_ADDRESS = re.compile(r"\[\$(?P<offset>\+?-?0x[0-9a-f]+)?\]|\[(?P<absolute>0x[0-9a-f]+)\]")
_WORDS = {"64": 2, "128": 4}
_SUMS = frozenset({"IADD", "IADD3", "IMAD", "MOV", "VIADD"})
"""What addresses on the stack are made with."""
_PART = frozenset({"U8", "S8", "U16", "S16"})


class _Access(NamedTuple):
    op: SassInstruction
    slots: tuple[int, ...]
    """Byte offsets of the words it touches, from the initial stack pointer."""
    stores: bool


@dataclass(frozen=True)
class PromoteLocal(ModulePass):
    """Replaces local memory by registers in every kernel where all of it is understood."""

    name = "sass-promote-local"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel, arch in free_kernels(op):
            known = propagate(kernel, arch)
            found = _accesses(kernel, Affine(known))
            if found:
                _promote(kernel, found)
                record_use(kernel, known.used)
                drop_dead_code(kernel.body)


def _accesses(kernel: KernelOp, forms: Affine) -> list[_Access]:
    """Every access to local memory; none if one is not understood or the stack pointer goes elsewhere."""
    found: list[_Access] = []
    derived: set[SSAValue] = set()
    symbols: set[object] = set()
    for block in kernel.body.blocks:
        for op in block.ops:
            if not isinstance(op, SassInstruction):
                continue
            if "local" in effects(op).loads | effects(op).stores and op.MNEMONIC in ("LDL", "STL"):
                access = _access(op, forms, symbols)
                if access is None:
                    return []
                found.append(access)
                derived.update(op.reads[:1])
    bases = [v for v in symbols if isa(v, SSAValue[Attribute])]
    return found if len(symbols) == 1 and not any(_escapes(value, found) for value in [*derived, *bases]) else []


def _access(op: SassInstruction, forms: Affine, symbols: set[object]) -> _Access | None:
    operands = arguments(op)
    modifiers = op.modifiers.data.split(".") if op.modifiers is not None else []
    address = next((a for a in operands if _ADDRESS.fullmatch(a.text)), None)
    match = _ADDRESS.fullmatch(address.text) if address is not None else None
    if address is None or match is None or match["absolute"] or not _PART.isdisjoint(modifiers):
        return None
    form = forms.word(address.values[0])
    if len(form.terms) != 1 or form.terms[0][1] != 1:
        return None
    symbols.add(form.terms[0][0])
    offset = int((match["offset"] or "0").replace("+-", "-"), 16) + form.constant
    offset = (offset + (1 << 31)) % (1 << 32) - (1 << 31)
    if offset % 4:
        return None
    words = next((_WORDS[m] for m in modifiers if m in _WORDS), 1)
    slots = tuple([offset + 4 * i for i in range(words)])
    return _Access(op, slots, op.MNEMONIC == "STL")


def _escapes(value: SSAValue, found: Sequence[_Access]) -> bool:
    """Whether an address on the stack is used for anything but these accesses and other addresses on the stack."""
    known = {access.op for access in found}
    seen = {value}
    work = [value]
    while work:
        current = work.pop()
        for use in current.uses:
            op = use.operation
            if op in known and use.index == 0:
                continue
            if not isinstance(op, SassInstruction) or op.MNEMONIC not in _SUMS:
                return True
            work += [r for r in op.results if r not in seen]
            seen.update(op.results)
    return False


def _promote(kernel: KernelOp, found: Sequence[_Access]) -> None:
    entry = kernel.body.blocks[0]
    first = next(op for op in entry.ops if not isinstance(op, LabelOp))
    variables: dict[int, SSAValue] = {}
    for slot in sorted({slot for access in found for slot in access.slots}):
        start = instruction("MOV =R, RZ")
        entry.insert_op_before(start, first)
        variables[slot] = start.results[0]
    definitions: dict[SSAValue, SSAValue] = {}
    for access in found:
        for move, slot in zip(_moves(access, variables), access.slots, strict=True):
            if access.stores:
                definitions[move.results[0]] = variables[slot]
    reconstruct(kernel.body, definitions, lambda _, value: value.type)


def _moves(access: _Access, variables: dict[int, SSAValue]) -> list[SassInstruction]:
    """Put moves in place of an access: from variables to the results of a load, or of what is stored."""
    op = access.op
    block = op.parent
    assert block is not None
    stored = arguments(op)[-1].values
    made: list[SassInstruction] = []
    for i, slot in enumerate(access.slots):
        kept = [variables[slot]] if access.stores else op.kept[i : i + 1]
        source = (stored[i] if stored else None) if access.stores else variables[slot]
        text = "MOV =R, RZ" if source is None else "MOV =R, $R"
        made.append(instruction(text, [] if source is None else [source], op.guard, op.unless is not None, kept))
    block.insert_ops_before(made, op)
    replace(op, [] if access.stores else [move.results[0] for move in made])
    return made
