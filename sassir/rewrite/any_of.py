"""Whether any of several conditions holds, as one predicate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from xdsl.ir import Block, SSAValue

from sassir.analysis.arguments import arguments
from sassir.analysis.ranges import COMPLEMENT
from sassir.dialect import internals
from sassir.dialect.instruction import SassInstruction
from sassir.rewrite.build import arguments_of, instruction, rewritten

_OPPOSITES = (("EQ", "NEU"), ("GE", "LTU"), ("GT", "LEU"), ("LE", "GTU"), ("LT", "GEU"), ("NE", "EQU"), ("NAN", "NUM"))
FLOAT_COMPLEMENT = dict(_OPPOSITES) | {b: a for a, b in _OPPOSITES}
"""What holds where the comparison does not, NaNs included."""
_COMPLEMENT = {"FSETP": FLOAT_COMPLEMENT, "ISETP": COMPLEMENT}
_EITHER = "0xfc"
"""The truth table of a ∨ b for PLOP3."""


class Condition(NamedTuple):
    """A predicate, or its complement."""

    value: SSAValue
    negated: bool


def any_of(block: Block, conditions: Sequence[Condition]) -> SSAValue:
    """Add to the end of `block`, which has none yet, what computes whether at least one condition holds.

    A comparison takes the others along in its third source, where that is free. What is known last comes last.
    """
    depth = _depths(block)
    found: SSAValue | None = None
    for condition in sorted(conditions, key=lambda c: depth.get(c.value, 0)):
        if found is None and not condition.negated:
            found = condition.value
            continue
        op = _comparison(condition, found) or _combination(condition, found)
        op.properties.pop("origin", None)
        block.add_op(op)
        found = op.results[0]
    assert found is not None
    return found


def _depths(block: Block) -> dict[SSAValue, int]:
    """For each value made in `block`, the operations in the longest chain of it that leads to the value."""
    found: dict[SSAValue, int] = {}
    for op in block.ops:
        deepest = max([found.get(v, 0) for v in internals.operands(op)], default=0)
        found.update(dict.fromkeys(op.results, deepest + 1))
    return found


def _comparison(condition: Condition, other: SSAValue | None) -> SassInstruction | None:
    """The comparison behind the condition with `other` in its third source; None if that is not free, or no comparison is there."""
    op = condition.value.owner
    if not isinstance(op, SassInstruction) or op.MNEMONIC not in _COMPLEMENT or op.guard is not None or op.constant_guard is not None:
        return None
    relation, *modifiers = op.modifiers.data.split(".") if op.modifiers is not None else [""]
    texts, shown = arguments_of(op), arguments(op)
    complement = _COMPLEMENT[op.MNEMONIC].get(relation)
    if complement is None or len(texts) != 5 or texts[1] != "PT" or texts[4] != "PT" or "AND" not in modifiers or not shown[0].results:
        return None
    name = [op.MNEMONIC, complement if condition.negated else relation, *modifiers]
    if other is None:
        return rewritten(op, ".".join(name), texts, op.reads)
    name[name.index("AND")] = "OR"
    return rewritten(op, ".".join(name), [*texts[:4], "$P"], [*op.reads, other])


def _combination(condition: Condition, other: SSAValue | None) -> SassInstruction:
    first, second = "!$P" if condition.negated else "$P", "PT" if other is None else "$P"
    table = _EITHER if other is not None else "0xf0"
    return instruction(f"PLOP3.LUT =P, PT, {first}, {second}, PT, {table}, 0x0", [condition.value, *([other] if other is not None else [])])

