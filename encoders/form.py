"""The encoding forms of an instruction: which bits say what, in both directions of use.

A form is one row of the manual: a syntax of literal text and holes, and its fields from high to low bit. A `Number` is a
register, integer or float in the text; a `Choice` selects text by the value of a few bits (a modifier, a sign, an
optional part); bits that no text shows are inert and have the value that ptxas writes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

FIRST_BIT, LAST_BIT = 16, 104
"""Bits that a form describes. Below are opcode and guard, above is the control code; bit 91 belongs to the opcode."""

OPCODE_BIT = 91


def opcode_of(word: int) -> int:
    """The 13-bit opcode: bits 0-11 and, as its highest bit, bit 91."""
    return word & 0xFFF | (word >> OPCODE_BIT & 1) << 12


class Number(NamedTuple):
    """A register or number in the text, spelled by bits of the word."""

    name: str
    kind: str
    """R, UR, P, UP, B, SB: a register; int; pc: a displacement from the instruction; f16 bf16 f32 f64: an immediate."""
    bits: tuple[int, ...]
    """From the highest to the lowest."""
    signed: bool = False
    scale: int = 1
    offset: int = 0
    """An integer prints as `offset + scale * bits`."""
    excluded: tuple[int, ...] = ()
    """Values of the bits that belong to another form."""


class Hole(NamedTuple):
    """The place of a number in the text; `kind` when it differs from the number's own (a half that is a bfloat16 there)."""

    number: str
    kind: str


Token = str | Hole


class Condition(NamedTuple):
    """The bits of a number have one particular value (RZ, PT, zero)."""

    number: str
    value: int


class Choice(NamedTuple):
    """Text selected by bits and conditions, at one or more places of the syntax."""

    name: str
    selectors: tuple[int | Condition, ...]
    """Bits and conditions, from the highest digit of the state to the lowest."""
    states: dict[int, tuple[tuple[Token, ...], ...]]
    """For each legal state, the tokens at each place."""


class Place(NamedTuple):
    """Where the text of a choice stands."""

    choice: str
    slot: int
    """Which of the choice's strings."""


Part = str | Hole | Place


@dataclass(frozen=True)
class Form:
    """One encoding form. `components[0]` is the mnemonic with modifiers, the others are the operands."""

    mnemonic: str
    opcode: int
    guard: str | None
    """File of the guard predicate, P or UP."""
    components: tuple[tuple[Part, ...], ...]
    numbers: dict[str, Number]
    choices: dict[str, Choice]
    fixed: tuple[tuple[int, int], ...]
    """(bit, value) that this form requires beside its opcode, high to low."""
    inert: tuple[int, ...]
    """Bits that no text shows, high to low."""
    default: int
    """Word bits of the inert bits as ptxas writes them."""
    example: int
    """A word of this form that nvdisasm accepts."""
    ambiguous: bool = False
    """Some words of this form read like words of another."""

    @property
    def relative(self) -> bool:
        """The text depends on where the instruction stands."""
        return any(n.kind == "pc" for n in self.numbers.values())

    @property
    def fixed_mask(self) -> int:
        """The bits of `fixed`."""
        return sum(1 << bit for bit, _ in self.fixed)

    @property
    def fixed_value(self) -> int:
        """Their values, in place."""
        return sum(value << bit for bit, value in self.fixed)

    @property
    def inert_mask(self) -> int:
        """The inert bits."""
        return sum(1 << bit for bit in self.inert)


def gather(word: int, bits: tuple[int, ...]) -> int:
    """The number that `bits` of the word spell, highest first."""
    value = 0
    for bit in bits:
        value = value << 1 | word >> bit & 1
    return value


def scatter(value: int, bits: tuple[int, ...]) -> int:
    """The word bits that spell `value`; the inverse of `gather`."""
    word = 0
    for bit in reversed(bits):
        word |= (value & 1) << bit
        value >>= 1
    return word


def choice_state(word: int, choice: Choice, numbers: dict[str, Number]) -> int:
    """The state that the word selects."""
    state = 0
    for selector in choice.selectors:
        if isinstance(selector, Condition):
            state = state << 1 | (gather(word, numbers[selector.number].bits) == selector.value)
        else:
            state = state << 1 | word >> selector & 1
    return state
