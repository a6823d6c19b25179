"""The operands of an operation, each with its text and its values."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from xdsl.ir import SSAValue

from sassir import isa
from sassir.asm.operand import HOLE, Operand
from sassir.dialect import internals
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.sample import sample
from sassir.dialect.template import TemplateAttr


class Argument(NamedTuple):
    """One operand of an operation."""

    operand: Operand
    """Its text, with the register name `$` for each register that is a value: `-$`, `RZ`, `c[0x0][0x160]`, `[$+0x10]`."""
    values: tuple[SSAValue, ...]
    """The values read, in order."""
    results: tuple[SSAValue, ...]
    """The values written."""
    written: bool
    """It is a destination, which may also be a zero register."""

    @property
    def text(self) -> str:
        """The operand as text."""
        return self.operand.text

    @property
    def integer(self) -> int | None:
        """The value of an integer immediate or of a zero register."""
        return 0 if self.text in ("RZ", "URZ") else self.operand.integer

    @property
    def constant(self) -> tuple[int, int] | None:
        """Bank and byte offset of a word of constant memory whose address no register changes."""
        return None if self.values else self.operand.constant


@cache
def destinations(mnemonic: str, modifiers: str, template: TemplateAttr) -> frozenset[int]:
    """Which operands of an instruction are written, by position."""
    roles = isa.roles(sample(mnemonic, modifiers, template))
    return frozenset() if roles is None else frozenset([access.operand for access in roles.writes])


class _Place(NamedTuple):
    """Where the values of an operand are among those that the operation reads, and among its results."""

    operand: Operand
    reads: slice
    results: slice
    written: bool


@cache
def _places(mnemonic: str, modifiers: str, template: TemplateAttr) -> tuple[_Place, ...]:
    written = destinations(mnemonic, modifiers, template)
    holes = iter(template.data.holes)
    found: list[_Place] = []
    read = result = 0
    for argument in template.data.arguments:
        first_read, first_result = read, result
        for register in argument.registers:
            if register is None:
                hole = next(holes)
                read += hole.width * hole.reads
                result += hole.width * hole.writes
        operand = Operand.of(argument.template, tuple([HOLE if r is None else r for r in argument.registers]))
        found.append(_Place(operand, slice(first_read, read), slice(first_result, result), len(found) in written))
    return tuple(found)


def form_of(op: SassInstruction) -> tuple[str, str, TemplateAttr]:
    """All of `op` but its values and its guard: mnemonic, modifiers, template."""
    modifiers = op.modifiers
    return op.MNEMONIC, modifiers.data if modifiers is not None else "", op.template


def arguments(op: SassInstruction) -> list[Argument]:
    """The operands of `op` from left to right; those that its text hides are left out."""
    places = _places(*form_of(op))
    reads, results = tuple(internals.operands(op)), tuple(op.results)
    return [Argument(operand, reads[r], results[w], written) for operand, r, w, written in places]


@cache
def constants(mnemonic: str, modifiers: str, template: TemplateAttr) -> tuple[tuple[int, int], ...]:
    """The words of constant memory that an instruction reads whose addresses no register changes: bank and byte offset."""
    places = [place for place in _places(mnemonic, modifiers, template) if not place.written and place.reads.start == place.reads.stop]
    return tuple([place.operand.constant for place in places if place.operand.constant is not None])


@cache
def lowest_reads(mnemonic: str, modifiers: str, template: TemplateAttr) -> frozenset[int]:
    """Which of the values that an instruction reads are the first ones of its sources: of wide ones, the lowest words."""
    reads = [place.reads for place in _places(mnemonic, modifiers, template) if not place.written]
    return frozenset([r.start for r in reads if r.start < r.stop])


def main_destination(operands: Sequence[Argument]) -> Argument:
    """The destination that a transfer function is about: the word, or for a comparison its first predicate."""
    written = [a for a in operands if a.written]
    return next((a for a in written if "P" not in a.text), written[0])
