"""sass-collapse-sums: of sums of sums with numbers, each starts from where the first one did.

After unrolling a counter is raised once for each copy, (i + 1) + 1 + …, and so are addresses, in two words with a carry. Where
only the last one is still needed, one addition is left. Within a block, so that nothing stays in a register for longer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.hints import isa

from sassir.analysis.affine import Affine, Form, Pair
from sassir.analysis.arguments import arguments
from sassir.analysis.counted import home
from sassir.analysis.propagation import Propagation
from sassir.analysis.ranges import LARGEST_SIGNED
from sassir.dialect.facts import facts_of, record_use
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.operations import KernelOp
from sassir.passes.dce import drop_dead_code
from sassir.rewrite.build import arguments_of, encodable, name_of, rewritten, signed
from sassir.rewrite.kernels import free_kernels
from sassir.rewrite.simplify import replace

_SUMS = frozenset({"IADD", "IADD3", "UIADD3", "VIADD"})


@dataclass(frozen=True)
class CollapseSums(ModulePass):
    """Adds each number to what a chain of such additions in its block starts from."""

    name = "sass-collapse-sums"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel, arch in free_kernels(op):
            known = Propagation(kernel, facts_of(kernel), arch)
            if collapse_sums(kernel, Affine(known), arch):
                record_use(kernel, known.used)
                drop_dead_code(kernel.body)


def collapse_sums(kernel: KernelOp, forms: Affine, arch: str) -> int:
    """Returns the number of sums that start from another value now."""
    ops = [op for block in kernel.body.blocks for op in block.ops if isinstance(op, SassInstruction) and _is_sum(op)]
    return sum([_collapse_pair(op, forms, arch) if op.modifiers is not None else _collapse(op, forms, arch) for op in ops])


def _is_sum(op: SassInstruction) -> bool:
    modifiers = op.modifiers.data if op.modifiers is not None else ""
    return op.MNEMONIC in _SUMS and modifiers in ("", "X") and op.guard is None and op.constant_guard is None and op.link is None


def _collapse(op: SassInstruction, forms: Affine, arch: str) -> bool:
    form = forms.word(op.results[0])
    start = _start(form)
    if len(op.results) > 1 or not isa(start, SSAValue[Attribute]) or start.type != op.results[0].type or home(start) is not op.parent:
        return False
    return start not in op.reads and _put([(op, _from(op, [start], form.constant))], arch)


def _collapse_pair(upper: SassInstruction, forms: Affine, arch: str) -> bool:
    """The same for the upper word of a sum of 64 bits and the lower one, whose carry goes nowhere else."""
    lower = next((o for v in upper.reads if isinstance(o := v.owner, SassInstruction) and len(o.results) == 2 and v is o.results[1]), None)
    if lower is None or lower.MNEMONIC != "IADD3" or lower.modifiers is not None or len([*lower.results[1].uses]) != 1:
        return False
    form = forms.pair(lower.results[0], upper.results[0])
    start = _start(form)
    if not isinstance(start, Pair) or start.low in lower.reads or form.constant > LARGEST_SIGNED:
        return False
    if not all(home(v) is lower.parent is upper.parent for v in start) or any(a.integer for a in arguments(upper) if not a.written):
        return False
    below = _from(lower, [start.low], form.constant)
    above = _from(upper, [start.high, below.results[1]]) if below is not None else None
    return _put([(upper, above), (lower, below)], arch)


def _start(form: Form) -> object:
    """What a number is added to; None where that is not all."""
    return form.terms[0][0] if len(form.terms) == 1 and form.terms[0][1] == 1 else None


def _from(op: SassInstruction, reads: Sequence[SSAValue], number: int | None = None) -> SassInstruction | None:
    """The same sum of other values, and of another number if one is given; None if it is not one of a value and a number."""
    shown, operands = arguments_of(op), arguments(op)
    places = [i for i, a in enumerate(operands) if not a.written and a.integer not in (None, 0)]
    if len(op.reads) != len(reads) or any(a.text.startswith("-") for a in operands if a.values) or len(places) != (number is not None):
        return None
    if number is not None:
        shown[places[0]] = signed(number)
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
