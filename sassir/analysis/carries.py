"""The carries of sums of three words: two flags, of which it is not told which one is set when one is due; only how many are."""

from __future__ import annotations

from collections.abc import Sequence

from sassir.analysis.arguments import Argument
from sassir.analysis.conditions import Known
from sassir.analysis.ranges import WORD_BITS, Range, exactly
from sassir.dialect.instruction import SassInstruction


def with_both_carries(operands: Sequence[Argument], sources: list[Range], known: Known) -> list[Range]:
    """The sources of an IADD3.X, its two carries as one where both come from one sum.

    That has as many carries as its terms, which must not be negative, go beyond 2³² times.
    """
    first, second = operands[-2:]
    lower = first.values[0].owner if first.values else None
    if not isinstance(lower, SassInstruction) or lower.MNEMONIC != "IADD3" or lower.kept or not second.values:
        return sources
    if first.text != "$" or second.text != "$" or first.values == second.values or second.values[0].owner is not lower:
        return sources
    terms = [known.operand(a, True) for a in known.operands(lower) if not a.written]
    if any(t.low < 0 for t in terms):
        return sources
    carries = Range(sum(t.low for t in terms) >> WORD_BITS, sum(t.high for t in terms) >> WORD_BITS)
    return [*sources[:-2], carries, exactly(0)]
