"""What the comparisons that decide a branch tell about values on each of its ways."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from xdsl.ir import Operation, SSAValue

from sassir.analysis.arguments import Argument
from sassir.analysis.ranges import COMPLEMENT, MIRROR, Range
from sassir.dialect.edges import decides
from sassir.dialect.instruction import SassInstruction

Learned = dict[SSAValue, list[tuple[str, Range, bool]]]
"""For some values how they compare with which numbers: relation, bound, and whether it is signed."""
COMPARES = frozenset({"ISETP", "UISETP"})


class Known(Protocol):
    """What is known of operands."""

    def operands(self, op: SassInstruction) -> Sequence[Argument]:
        """The operands of an operation."""
        ...

    def operand(self, argument: Argument, signed: bool) -> Range:
        """The range of one."""
        ...


def learn(op: Operation, i: int, known: Known) -> Learned:
    """What holds when control goes on from the terminator `op` to successor `i`."""
    learned: Learned = {}
    decisions: list[tuple[SSAValue, bool]] = []
    if decides(op) and op.guard is not None:
        decisions.append((op.guard, (i == 0) == (op.unless is None)))
    while decisions:
        flag, holds = decisions.pop()
        compare = flag.owner
        if not isinstance(compare, SassInstruction) or compare.MNEMONIC not in COMPARES or compare.guard is not None:
            continue
        name, *modifiers = compare.modifiers.data.split(".") if compare.modifiers is not None else [""]
        operands = known.operands(compare)
        first, second, other, *lower = [a for a in operands if not a.written]
        if name not in COMPLEMENT or flag not in operands[0].results or "AND" not in modifiers:
            continue
        if lower:
            if lower[0].values and other.text == "PT" and _equal(first, second, known):
                decisions.append((lower[0].values[0], holds != lower[0].operand.negated))
            continue
        if other.values and holds:
            decisions.append((other.values[0], not other.operand.negated))
        elif other.text != "PT" and not holds:
            continue
        relation = name if holds else COMPLEMENT[name]
        for this, bound, related in ((first, second, relation), (second, first, MIRROR[relation])):
            if this.text == "$":
                fact = (related, known.operand(bound, False), "U32" not in modifiers)
                learned.setdefault(this.values[0], []).append(fact)
    return learned


def _equal(a: Argument, b: Argument, known: Known) -> bool:
    """Two operands have the same, known value."""
    x, y = known.operand(a, False).value, known.operand(b, False).value
    return x is not None and x == y
