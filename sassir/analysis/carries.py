"""The carries of sums of three words: two flags, of which it is not told which one is set when one is due; only how many are.

A term -x counts as 2³² - x, also where x is 0: the sum of 5 and -0 has a carry.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from sassir.analysis.arguments import Argument
from sassir.analysis.conditions import Known
from sassir.analysis.ranges import WORD_BITS, Range, exactly
from sassir.analysis.sources import source
from sassir.analysis.transfer import carry
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.registers import UP, P


def with_both_carries(operands: Sequence[Argument], sources: list[Range], known: Known) -> list[Range]:
    """The sources of an IADD3.X, its two carries as one where both come from one sum.

    That has as many carries as its terms go beyond 2³² times.
    """
    first, second = operands[-2:]
    lower = first.values[0].owner if first.values else None
    if not isinstance(lower, SassInstruction) or lower.MNEMONIC != "IADD3" or lower.kept or not second.values:
        return sources
    if first.text != "$" or second.text != "$" or first.values == second.values or second.values[0].owner is not lower:
        return sources
    terms = [_carrying(a, known) for a in known.operands(lower) if not a.written]
    carries = Range(sum(t.low for t in terms) >> WORD_BITS, sum(t.high for t in terms) >> WORD_BITS)
    return [*sources[:-2], carries, exactly(0)]


def carries_of(op: SassInstruction, modifiers: Sequence[str], terms: Sequence[Argument], known: Known) -> dict[SSAValue, Range]:
    """What is known of the carries that a sum writes."""
    flags: list[SSAValue] = [r for r in op.results if isinstance(r.type, P | UP)]
    return dict.fromkeys(flags, carry(modifiers, [_carrying(t, known) for t in terms], len(flags))) if flags else {}


def _carrying(term: Argument, known: Known) -> Range:
    """A term as the number that makes carries."""
    found = known.operand(term, True)
    if term.integer is None and source(term.operand).negative:
        return Range(found.low + (1 << WORD_BITS), found.high + (1 << WORD_BITS))
    return known.operand(term, False)
