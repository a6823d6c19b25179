"""sass-promote-local: keep in registers what lies in local memory: spilled values, and arrays whose indices are known.

The stack is private to its thread. Where every access to it is at a known distance from the stack pointer, and nothing else
is made of the stack pointer, a word of it is a variable like any other. A word that is read before it is written holds
anything; it gets 0.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.hints import isa

from sassir.analysis.affine import Affine, ConstantWords
from sassir.analysis.arguments import arguments
from sassir.analysis.effects import effects
from sassir.analysis.propagated import propagate
from sassir.analysis.propagation import Propagation
from sassir.dialect.facts import record_use
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.operations import KernelOp, LabelOp
from sassir.dialect.registers import R
from sassir.passes.dce import drop_dead_code
from sassir.rewrite.build import instruction
from sassir.rewrite.indexed import replace_load, replace_store, store_at_joint
from sassir.rewrite.kernels import free_kernels
from sassir.rewrite.reconstruct import reconstruct
from sassir.rewrite.sparing import sparing_ranges
from sassir.rewrite.variables import replace_by_moves

_ADDRESS = re.compile(r"\[\$(?P<offset>\+?-?0x[0-9a-f]+)?\]|\[(?P<absolute>0x[0-9a-f]+)\]")
_WORDS = {"64": 2, "128": 4}
_SUMS = frozenset({"IADD", "IADD3", "IMAD", "LEA", "MOV", "VIADD"})
"""What addresses on the stack are made with."""
_PART = frozenset({"U8", "S8", "U16", "S16"})


MOST = 32
"""Words that an access with an index that is not known may choose from."""


class _Access(NamedTuple):
    op: SassInstruction
    slots: tuple[int, ...]
    """Byte offsets of the words that it touches, from the initial stack pointer; with an index: of those that it may touch."""
    chosen_by: SSAValue | None
    """The index."""
    first: int
    """The index that means the first of the slots; the following ones mean the others."""


@dataclass(frozen=True)
class PromoteLocal(ModulePass):
    """Replaces local memory by registers in every kernel where all of it is understood."""

    name = "sass-promote-local"

    @sparing_ranges
    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel, arch in free_kernels(op):
            known = propagate(kernel, arch)
            found = _accesses(kernel, Affine(known))
            if found:
                _promote(kernel, found, known)
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
    roots = _roots(kernel, symbols.pop()) if len(symbols) == 1 else []
    if not roots or kernel.body.blocks[0].predecessors():
        return []
    return found if not any(_escapes(value, found) for value in [*roots, *derived]) else []


def _roots(kernel: KernelOp, base: object) -> list[SSAValue]:
    """The values that are the initial stack pointer `base`, or made of it: a value of the first block, or a word of constant memory."""
    if isa(base, SSAValue[Attribute]):
        return [base] if isinstance(base.owner, Operation) and base.owner.parent is kernel.body.blocks[0] else []
    ops = [op for block in kernel.body.blocks for op in block.ops if isinstance(op, SassInstruction)]
    readers = [op for op in ops if any(a.constant is not None and ConstantWords(*a.constant) == base for a in arguments(op))]
    return [result for op in readers for result in op.results] if all(op.MNEMONIC in _SUMS for op in readers) else []


def _access(op: SassInstruction, forms: Affine, symbols: set[object]) -> _Access | None:
    operands = arguments(op)
    modifiers = op.modifiers.data.split(".") if op.modifiers is not None else []
    address = next((a for a in operands if _ADDRESS.fullmatch(a.text)), None)
    match = _ADDRESS.fullmatch(address.text) if address is not None else None
    if address is None or match is None or match["absolute"] or op.constant_guard is not None or not _PART.isdisjoint(modifiers):
        return None
    form = forms.word(address.values[0])
    bases = [symbol for symbol, coefficient in form.terms if coefficient == 1]
    indices = [(symbol, coefficient) for symbol, coefficient in form.terms if coefficient != 1]
    words = next((_WORDS[m] for m in modifiers if m in _WORDS), 1)
    offset = int((match["offset"] or "0").replace("+-", "-"), 16) + form.constant
    if len(bases) != 1 or len(indices) > 1:
        return None
    symbols.add(bases[0])
    if not indices:
        return _Access(op, tuple([_signed(offset + 4 * i) for i in range(words)]), None, 0) if offset % 4 == 0 else None
    (index, stride), *_ = indices
    if not isa(index, SSAValue[Attribute]) or not isinstance(index.type, R) or (offset | stride) % 4 or words > 1:
        return None
    low, high = forms.known.range(index)
    return _Access(op, tuple([_signed(offset + stride * i) for i in range(low, high + 1)]), index, low) if high - low < MOST else None


def _signed(offset: int) -> int:
    return (offset + (1 << 31)) % (1 << 32) - (1 << 31)


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


def _promote(kernel: KernelOp, found: Sequence[_Access], known: Propagation) -> None:
    entry = kernel.body.blocks[0]
    first = next(op for op in entry.ops if not isinstance(op, LabelOp))
    variables: dict[int, SSAValue] = {}
    for slot in sorted({slot for access in found for slot in access.slots}):
        start = instruction("MOV =R, RZ")
        entry.insert_op_before(start, first)
        variables[slot] = start.results[0]
    definitions: dict[SSAValue, SSAValue] = {}
    words = {access.op: [variables[slot] for slot in access.slots] for access in found}
    indexed = [access for access in found if access.chosen_by is not None]
    at_joints = _store_at_joints(indexed, words, known, definitions)
    for access in found:
        elements = dict(enumerate(words[access.op], access.first))
        if access.chosen_by is None:
            definitions.update(zip(replace_by_moves(access.op, words[access.op]), words[access.op], strict=False))
        elif access.op.results:
            replace_load(access.op, access.chosen_by, elements)
        elif access.op not in at_joints:
            replace_store(access.op, access.chosen_by, elements, definitions)
    reconstruct(kernel.body, definitions, lambda _, value: value.type)


Words = Mapping[SassInstruction, Sequence[SSAValue]]
"""The variables that an access may touch."""


def _store_at_joints(
    indexed: Sequence[_Access], words: Words, known: Propagation, definitions: dict[SSAValue, SSAValue]
) -> set[SassInstruction]:
    """Let stores happen on the edges that tell their index, one for each joint, while all accesses are still in their places."""
    done: dict[SSAValue, SassInstruction] = {}
    for op, _, index, first in indexed:
        if index is None or op.results or any(index.owner is other.owner for other in done):
            continue
        elements = dict(enumerate(words[op], first))
        if store_at_joint(op, index, elements, lambda value: known.range(value).value, words, definitions):
            done[index] = op
    return set(done.values())
