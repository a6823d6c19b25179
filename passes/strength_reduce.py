"""sass-strength-reduce: index arithmetic in fewer instructions.

- An address in two words, the sum of a base and of a multiple of an index with the carry from word to word, is one IMAD.WIDE.
- A product of 64 bits whose upper word nobody needs is one of 32 bits.
- What differs from an operand by a known number is the sum of both, without a register for a factor or a shift of it.

What an operation computes is known as a sum (`sassir.analysis.affine`), whatever instructions made it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from sassir.analysis.affine import Affine, distance, multiple
from sassir.analysis.arguments import Argument, arguments
from sassir.analysis.effects import effects
from sassir.analysis.propagated import propagate
from sassir.dialect import internals
from sassir.dialect.facts import record_use
from sassir.dialect.instruction import SassBranch, SassInstruction
from sassir.dialect.operations import KernelOp, LabelOp
from sassir.dialect.registers import P, R
from sassir.passes.dce import drop_dead_code
from sassir.rewrite.build import addition, arguments_of, encodable, instruction, signed
from sassir.rewrite.kernels import free_kernels
from sassir.rewrite.simplify import put_in_place, replace
from sassir.rewrite.sparing import sparing_ranges

_UPPER = frozenset({"X", "HI.X", "HI.X.SX32"})
"""Modifiers of the instructions that add upper words."""
AHEAD = 8
"""Instructions between a constant load and what needs it: it takes 28 cycles on an H200 (sassir/machine/tables/sm_90.costs.txt)."""
_CONSTANT_LOADS = frozenset({"LDC", "LDCU", "ULDC"})


@dataclass(frozen=True)
class StrengthReduce(ModulePass):
    """Replaces index arithmetic where fewer instructions give the same."""

    name = "sass-strength-reduce"

    @sparing_ranges
    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel, arch in free_kernels(op):
            known = propagate(kernel, arch)
            if reduce_strength(kernel, Affine(known), arch):
                record_use(kernel, known.used)
                drop_dead_code(kernel.body)


def reduce_strength(kernel: KernelOp, forms: Affine, arch: str) -> int:
    """Returns the number of operations replaced."""
    ops = [op for block in kernel.body.blocks for op in block.ops if isinstance(op, SassInstruction) and _always(op)]
    changed = sum([_add_number(op, forms, arch) for op in ops if op.MNEMONIC in ("IMAD", "LEA") and op.modifiers is None])
    changed += sum([_multiply_wide(op, forms, arch) for op in ops if op.parent is not None and _is_lower(op)])
    return changed + sum([_narrow(op, arch) for op in ops if op.parent is not None and op.MNEMONIC == "IMAD"])


def _always(op: SassInstruction) -> bool:
    return op.guard is None and op.constant_guard is None and op.link is None and not isinstance(op, SassBranch)


def _add_number(op: SassInstruction, forms: Affine, arch: str) -> bool:
    """v + n for an operation that reads v and something else."""
    if len(op.reads) < 2 or len(op.results) != 1:
        return False
    for value in [v for v in op.reads if v.type == op.results[0].type]:
        number = distance(forms.word(value), forms.word(op.results[0]))
        if number is not None:
            put_in_place(op, addition("$R", signed(number), [value], arch))
            return True
    return False


def _narrow(op: SassInstruction, arch: str) -> bool:
    """The lower word of a b + c, from the lower word of c."""
    if op.modifiers is None or op.modifiers.data not in ("WIDE", "WIDE.U32") or len(op.results) != 2 or [*op.results[1].uses]:
        return False
    *factors, summand = [a for a in arguments(op) if not a.written]
    *shown, last = arguments_of(op)[1:]
    if len(factors) != 2 or summand.text not in ("$", "RZ"):
        return False
    reads = [*[v for a in factors for v in a.values], *summand.values[:1]]
    new = instruction(f"IMAD =R, {', '.join(shown)}, {last.removesuffix('2')}", reads)
    if not encodable(new, arch):
        new.erase()
        return False
    assert op.parent is not None
    op.parent.insert_op_before(new, op)
    op.results[0].replace_all_uses_with(new.results[0])
    op.detach()
    op.erase()
    return True


def _is_lower(op: SassInstruction) -> bool:
    """It writes the lower word of a sum, and its carry."""
    named = op.MNEMONIC in ("IADD3", "LEA") and op.modifiers is None
    return named and len(op.results) == 2 and isinstance(op.results[0].type, R) and isinstance(op.results[1].type, P)


def _upper(lower: SassInstruction) -> SassInstruction | None:
    """The operation on the upper words; None if the carry goes elsewhere."""
    users = [use.operation for use in lower.results[1].uses]
    upper = users[0] if len(users) == 1 else None
    if not isinstance(upper, SassInstruction) or not _always(upper) or len(upper.results) != 1:
        return None
    return upper if upper.modifiers is not None and upper.modifiers.data in _UPPER and isinstance(upper.results[0].type, R) else None


class _Product(NamedTuple):
    """What a sum of 64 bits is: base + number · value."""

    base: tuple[Argument, Argument]
    """Lower and upper word."""
    value: SSAValue
    number: int
    signed: bool
    spared: int
    """How many instructions need not be there then."""


def _multiply_wide(lower: SassInstruction, forms: Affine, arch: str) -> bool:
    upper = _upper(lower)
    if upper is None:
        return False
    found = max(_products(lower, upper, forms), key=lambda product: product.spared, default=None)
    new = _written(found, arch) if found is not None else None
    if found is None or new is None or _cost(new) >= found.spared or not all(encodable(op, arch) for op in new):
        for op in reversed(new or []):
            op.erase()
        return False
    *before, product = new
    assert lower.parent is not None
    lower.parent.insert_op_before(product, lower)
    lower.parent.insert_ops_before(before, _ahead(product))
    replace(upper, product.results[1:])
    lower.results[0].replace_all_uses_with(product.results[0])
    lower.detach()
    lower.erase()
    return True


def _ahead(op: Operation) -> Operation:
    """Where to load what `op` needs, so that it is there by then."""
    for _ in range(AHEAD):
        op = op.prev_op if op.prev_op is not None and not isinstance(op.prev_op, LabelOp) else op
    return op


def _cost(ops: Sequence[SassInstruction]) -> int:
    """As how many instructions they count. LDC goes through the queue of memory instructions, the ULDC in its place did not."""
    return sum([2 if op.MNEMONIC == "LDC" else 1 for op in ops])


def _products(lower: SassInstruction, upper: SassInstruction, forms: Affine) -> Iterator[_Product]:
    """The ways to see a sum as a base and a product, those from a later index first."""
    total = forms.pair(lower.results[0], upper.results[0])
    lows, highs = [[a for a in arguments(op) if not a.written] for op in (lower, upper)]
    for base in [(x, y) for x in lows for y in highs if _is_pair(x, y)]:
        start = forms.joined(*base)
        for index in _indices([a for a in lows if a is not base[0]], [lower, upper]):
            for is_signed in (True, False):
                number = multiple(total, start, forms.extended(index, is_signed))
                if number is not None:
                    kept = [index, *[v for word in base for v in word.values if isinstance(v.type, R)]]
                    yield _Product(base, index, number, is_signed, len(_spared([lower, upper], kept)))


def _is_pair(low: Argument, high: Argument) -> bool:
    """Whether two operands are the words of one number that lies in registers side by side, or in constant memory."""
    if low.constant is not None and high.constant is not None:
        return high.constant == (low.constant[0], low.constant[1] + 4)
    if not low.text == high.text == "$":
        return False
    owner = low.values[0].owner
    return isinstance(owner, SassInstruction) and tuple(owner.results[:2]) == (*low.values, *high.values)


def _indices(operands: Sequence[Argument], users: Sequence[Operation]) -> Iterator[SSAValue]:
    """What may be the index: the operands, and what they are made from by operations that nothing else needs."""
    work = [a.values[0] for a in operands if a.text == "$" and isinstance(a.values[0].type, R)]
    while work:
        value = work.pop()
        yield value
        owner = value.owner
        if isinstance(owner, SassInstruction) and owner in _spared(users, ()):
            work += [v for v in owner.reads if isinstance(v.type, R)]


def _spared(users: Sequence[Operation], kept: Sequence[SSAValue]) -> set[Operation]:
    """These operations, and what only they need, but for what makes a value that is `kept`."""
    found = {*users}
    work = [*users]
    while work:
        for value in internals.operands(work.pop()):
            op = value.owner
            if not isinstance(op, SassInstruction) or op in found or not effects(op).pure or any(r in kept for r in op.results):
                continue
            if all(use.operation in found for result in op.results for use in result.uses):
                found.add(op)
                work.append(op)
    return found


def _written(product: _Product, arch: str) -> list[SassInstruction] | None:
    """The instructions of a product, the last of them the IMAD.WIDE; None if its base is in uniform registers, but no constant."""
    name = "IMAD.WIDE" if product.signed else "IMAD.WIDE.U32"
    low, high = product.base
    if low.constant is not None:
        factor = instruction(f"MOV =R, {product.number:#x}")
        return [factor, instruction(f"{name} =R2, $R, $R, {low.text}", [product.value, factor.results[0]])]
    if isinstance(low.values[0].type, R):
        return [instruction(f"{name} =R2, $R, {product.number:#x}, $R2", [product.value, *low.values, *high.values])]
    load = low.values[0].owner
    assert isinstance(load, SassInstruction)
    place = arguments(load)[-1]
    if load.MNEMONIC not in _CONSTANT_LOADS or place.constant is None:
        return None
    base = instruction(f"LDC.64 =R2, {place.text}")
    return [base, instruction(f"{name} =R2, $R, {product.number:#x}, $R2", [product.value, *base.results])]
