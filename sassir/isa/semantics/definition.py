"""The table of instructions: a function that builds the meaning of a form, registered under its mnemonic."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from sassir.asm.instruction import Instruction
from sassir.errors import SemanticsError

Unary = Callable[[Any], Any]
Binary = Callable[[Any, Any], Any]
Ternary = Callable[[Any, Any, Any], Any]
Quaternary = Callable[[Any, Any, Any, Any], Any]
Quinary = Callable[[Any, Any, Any, Any, Any], Any]
"""Functions from operand values to the results: one array, or a tuple with one for each destination."""
Choice = TypeVar("Choice")


@dataclass(frozen=True)
class Form:
    """What a builder may look at: everything of an instruction but the numbers of its registers."""

    instruction: Instruction
    arch: str
    writes: tuple[str, ...]
    """The types of the destinations asked for."""
    first_read: int
    """Index of the first operand that is read."""
    immediates: tuple[int, ...]
    """Its operands of type `imm`."""

    @property
    def modifiers(self) -> tuple[str, ...]:
        """As written, in order."""
        return self.instruction.modifiers

    def has(self, *modifiers: str) -> bool:
        """Whether one of the modifiers is there."""
        return any(m in self.instruction.modifiers for m in modifiers)

    def choose(self, choices: Mapping[str, Choice], default: Choice | None = None) -> Choice:
        """What the one modifier that is among `choices` stands for; `default` if there is none."""
        found = [choices[m] for m in self.instruction.modifiers if m in choices]
        if len(found) == 1:
            return found[0]
        if not found and default is not None:
            return default
        raise self.refusal(f"expected one of the modifiers {', '.join(choices)}, found {len(found)}")

    @property
    def rounding(self) -> str:
        """To nearest even (RN), down (RM), up (RP) or to zero (RZ)."""
        return self.choose({"RM": "RM", "RP": "RP", "RZ": "RZ"}, "RN")

    def prefix(self, index: int) -> str:
        """What stands before the operand read at this place: `-`, `~` or nothing."""
        operand = self.instruction.operands[self.first_read + index]
        return operand.template[0] if operand.integer is None and operand.template[0] in "-~" else ""

    def refusal(self, reason: str) -> SemanticsError:
        """The error that says what is not modelled."""
        return SemanticsError(f"`{self.instruction.text}` on {self.arch}: {reason}")


Builder = Callable[[Form], Callable[..., Any]]


@dataclass(frozen=True)
class Definition:
    """One row of the table."""

    required: tuple[str, ...]
    """The row is for instructions that have all of these modifiers, in this order."""
    modifiers: frozenset[str]
    """All modifiers that the builder understands; any other one is refused."""
    writes: tuple[tuple[str, ...], ...]
    """Types of the destinations, `u32`, `u64`, `f32`, `f64`, `p` or `pr`; alternatives, since some may be left out."""
    reads: tuple[str, ...]
    """Types of the operands read, as `operands` lists them; `?` behind one that may be missing at the end."""
    warp: bool
    build: Builder

    def fits(self, modifiers: Sequence[str]) -> bool:
        """Whether the required ones are among the modifiers, in order."""
        rest = iter(modifiers)
        return all(m in rest for m in self.required)

    def written(self, kinds: Sequence[str]) -> tuple[str, ...] | None:
        """The alternative of `writes` whose types are of these kinds, `p`, `pr` or `r`; None when no one is."""
        return next((a for a in self.writes if [t if t in ("p", "pr") else "r" for t in a] == list(kinds)), None)


_table: dict[str, list[Definition]] = {}


def instruction(names: str, writes: str, reads: str, modifiers: str = "", warp: bool = False) -> Callable[[Builder], Builder]:
    """Register a builder under `names`: mnemonics, each with the modifiers that the row is for (`IMAD.WIDE UIMAD.WIDE`)."""
    alternatives = tuple(tuple(a.split()) for a in writes.split("|"))

    def register(build: Builder) -> Builder:
        for name in names.split():
            mnemonic, *required = name.split(".")
            known = frozenset((*modifiers.split(), *required))
            row = Definition(tuple(required), known, alternatives, tuple(reads.split()), warp, build)
            _table.setdefault(mnemonic, []).append(row)
        return build

    return register


def definition(instruction: Instruction, kinds: Sequence[str]) -> Definition | None:
    """The row with the most required modifiers that fits an instruction with destinations of these kinds, `p`, `pr` or `r`."""
    rows = [r for r in _table.get(instruction.mnemonic, ()) if r.fits(instruction.modifiers) and r.written(kinds) is not None]
    return max(rows, key=lambda row: len(row.required), default=None)


def mnemonics() -> frozenset[str]:
    """All mnemonics that have a row."""
    return frozenset(_table)
