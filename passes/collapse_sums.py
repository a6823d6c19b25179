"""sass-collapse-sums: of sums of sums with numbers, each starts from where the first one did.

After unrolling a counter is raised once for each copy, (i + 1) + 1 + …, and so are addresses, in two words with a carry. Where
only the last one is still needed, one addition is left. Within a block, so that nothing stays in a register for longer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from sassir.analysis.affine import Affine, distance
from sassir.analysis.arguments import arguments
from sassir.analysis.propagated import propagate
from sassir.analysis.ranges import LARGEST, LARGEST_SIGNED
from sassir.dialect.facts import record_use
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.operations import KernelOp
from sassir.dialect.registers import P, number_of
from sassir.passes.dce import drop_dead_code
from sassir.rewrite.build import arguments_of, encodable, name_of, rewritten, signed
from sassir.rewrite.kernels import free_kernels
from sassir.rewrite.products import collapse_products
from sassir.rewrite.simplify import replace
from sassir.rewrite.sparing import sparing_ranges

_SUMS = frozenset({"IADD", "IADD3", "UIADD3", "VIADD"})


@dataclass(frozen=True)
class CollapseSums(ModulePass):
    """Adds each number to what a chain of such additions in its block starts from."""

    name = "sass-collapse-sums"

    @sparing_ranges
    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel, arch in free_kernels(op):
            known = propagate(kernel, arch)
            if collapse_sums(kernel, Affine(known), arch):
                record_use(kernel, known.used)
                drop_dead_code(kernel.body)
            if collapse_products(kernel, arch):
                drop_dead_code(kernel.body)


def collapse_sums(kernel: KernelOp, forms: Affine, arch: str) -> int:
    """Returns the number of sums that start from another value now."""
    ops = [op for block in kernel.body.blocks for op in block.ops if isinstance(op, SassInstruction) and _is_sum(op)]
    return sum([_collapse_pair(op, forms, arch) if op.modifiers is not None else _collapse(op, forms, arch) for op in ops])


def _is_sum(op: SassInstruction) -> bool:
    modifiers = op.modifiers.data if op.modifiers is not None else ""
    named = (op.MNEMONIC in _SUMS and modifiers in ("", "X")) or (op.MNEMONIC, modifiers) == ("IMAD", "X")
    return named and op.guard is None and op.constant_guard is None and op.link is None


def _collapse(op: SassInstruction, forms: Affine, arch: str) -> bool:
    start = op.reads[0] if len(op.reads) == len(op.results) == 1 else op.results[0]
    while isinstance(below := start.owner, SassInstruction) and below.parent is op.parent and _is_sum(below) and _adds_to_one(below):
        start = below.reads[0]
    number = distance(forms.word(start), forms.word(op.results[0]))
    return start not in (*op.reads, *op.results) and number is not None and _put([(op, _from(op, [start], number))], arch)


def _adds_to_one(op: SassInstruction) -> bool:
    """Not to the stack pointer: what is in R1 goes where the kernel makes room on its stack."""
    one = op.modifiers is None and len(op.reads) == len(op.results) == 1 and op.reads[0].type == op.results[0].type
    return one and number_of(op.reads[0]) is None


def _collapse_pair(upper: SassInstruction, forms: Affine, arch: str) -> bool:
    """The same for the upper word of a sum of 64 bits and the lower one, whose carry goes nowhere else."""
    first = below = _words_below(upper)
    while below is not None and isinstance(below.high.owner, SassInstruction) and (deeper := _words_below(below.high.owner)) is not None:
        if below.low is not deeper.lower.results[0] or deeper.lower.parent is not upper.parent:
            break
        below = deeper
    if first is None or below is None or below is first or len([*first.lower.results[1].uses]) != 1:
        return False
    number = distance(forms.pair(below.low, below.high), forms.pair(first.lower.results[0], upper.results[0]))
    if number is None or not 0 < number <= LARGEST_SIGNED:
        return False
    new = _from(first.lower, [below.low], number)
    above = _from(upper, [below.high, new.results[1]]) if new is not None else None
    return _put([(upper, above), (first.lower, new)], arch)


class _Words(NamedTuple):
    """What a sum of 64 bits adds a number to, and the operation on the lower words."""

    low: SSAValue
    high: SSAValue
    lower: SassInstruction


def _words_below(upper: SassInstruction) -> _Words | None:
    """For the operation on the upper words; None if it is none, or the number is not one of 32 bits that is not negative."""
    carry = next((v for v in upper.reads if isinstance(v.type, P)), None)
    lower = carry.owner if carry is not None and _is_sum(upper) and len(upper.reads) == 2 else None
    if not isinstance(lower, SassInstruction) or (lower.MNEMONIC, lower.modifiers) != ("IADD3", None) or lower.parent is not upper.parent:
        return None
    if not _is_sum(lower) or (len(lower.reads), len(lower.results)) != (1, 2) or any(a.integer for a in arguments(upper) if not a.written):
        return None
    (high,) = (v for v in upper.reads if v is not carry)
    return _Words(lower.reads[0], high, lower)


def _from(op: SassInstruction, reads: Sequence[SSAValue], number: int | None = None) -> SassInstruction | None:
    """The same sum of other values, and of another number if one is given; None if it is not one of a value and a number."""
    shown, operands = arguments_of(op), arguments(op)
    places = [i for i, a in enumerate(operands) if not a.written and a.integer not in (None, 0)]
    if len(op.reads) != len(reads) or any(a.text.startswith("-") for a in operands if a.values) or len(places) != (number is not None):
        return None
    if number is not None:
        complement = (operands[places[0]].integer or 0) > LARGEST_SIGNED  # how VIADD writes negative numbers
        shown[places[0]] = f"{number & LARGEST:#x}" if complement else signed(number)
    return rewritten(op, name_of(op), shown, reads)


def _put(new: Sequence[tuple[SassInstruction, SassInstruction | None]], arch: str) -> bool:
    """Replace operations, those that read from others first, if all of them can be written."""
    made = [op for _, op in new if op is not None]
    if len(made) < len(new) or not all(encodable(op, arch) for op in made):
        for op in made:
            op.erase()
        return False
    for old, op in zip([old for old, _ in new], made, strict=True):
        assert old.parent is not None
        old.parent.insert_op_before(op, old)
        replace(old, op.results)
    return True
