"""What the text of a source operand says about its range, once for all operands with that text."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from sassir.analysis.ranges import Range, exactly, word
from sassir.asm.operand import Operand
from sassir.dialect.facts import KernelFacts
from sassir.machine.constant_bank import constant_bank

_NAMED = {"RZ": 0, "URZ": 0, "PT": 1, "UPT": 1, "!PT": 0, "!UPT": 0}
"""Registers that always hold the same."""

WIDER = frozenset({"64", "S64", "U64"})
"""Modifiers of instructions on pairs of registers, which the functions of `sassir.analysis.transfer` do not know."""


class Source(NamedTuple):
    """A source operand."""

    number: Range | None
    """An immediate, as an unsigned word."""
    signed_number: Range
    """The same as it is written."""
    constant: tuple[int, int] | None
    """Bank and offset of a word of constant memory."""
    plain: bool
    """Registers, of which at most the sign is changed."""
    negative: bool


@cache
def source(operand: Operand) -> Source:
    """Operands are interned, so that this is a look-up."""
    text = operand.text
    integer = _NAMED.get(text, operand.integer)
    number = None if integer is None else exactly(integer)
    plain = text.removesuffix(".reuse").lstrip("-!") == "$"
    return Source(number, Range(integer or 0, integer or 0), operand.constant, plain, text[:1] in ("-", "!"))


@cache
def parts(modifiers: str) -> list[str]:
    """The modifiers of an instruction one by one; not to be changed."""
    return modifiers.split(".")


def known_words(facts: KernelFacts, arch: str) -> dict[int, tuple[Range, str]]:
    """What facts tell of words of constant bank 0, by offset, and the fact."""
    bank = constant_bank(arch)
    known = {r.offset: (word(r.low, r.high), r.use) for r in facts.ranges}
    known |= {offset: (exactly(value), f"word {offset:#x}") for offset, value in facts.words}
    for name, first, sizes in (("block", bank.block, facts.block), ("grid", bank.grid, facts.grid)):
        known |= {first + 4 * i: (exactly(size), name) for i, size in enumerate(sizes or ())}
    return known
