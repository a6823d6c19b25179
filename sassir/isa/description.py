"""What an instruction does, as far as its mnemonic and modifiers tell: one table row each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sassir.asm.operand import Operand, register_file
from sassir.isa.width import Rule, rule_of

GENERIC = frozenset({"global", "shared", "local"})
SPACES = GENERIC | {"attribute", "constant", "surface", "tensor", "texture"}
"""Memory spaces. Surfaces and textures are views of global memory; `tensor` is the tensor memory of sm_100."""
CONTROL = frozenset({"branch", "call", "converge", "exit", "indirect", "return", "trap"})
"""How control may go on: at the target, there and back, only when the warp is together again, not at all, at a computed target …"""
FLAGS = frozenset({"clock", "ordered", "pinned", "warp"})

_CONSTANT = re.compile(r"[-~|@]*cx?\[")


class Word(NamedTuple):
    """One operand as a table row gives it: a kind of operand and its width."""

    kind: str
    """A kind that `kind_of` returns, or `register` for both kinds of registers."""
    width: Rule
    optional: bool
    """The operand may be missing; then the next operand is of another kind."""
    access: str
    """`r`, `w` or `rw`."""

    def fits(self, operand: Operand) -> bool:
        """Whether the operand is of this kind."""
        kind = kind_of(operand)
        return kind == self.kind or (self.kind == "register" and kind in ("vector", "uniform"))


def kind_of(operand: Operand) -> str | None:
    """`address`, `predicate`, `uniform` or `vector` (B registers too); None for an operand without registers, and for constant memory."""
    if _CONSTANT.match(operand.template):
        return None
    if "[" in operand.template:
        return "address"
    if not operand.registers:
        return None
    return {"P": "predicate", "UP": "predicate", "UR": "uniform"}.get(register_file(operand.registers[0]), "vector")


@dataclass(frozen=True)
class Description:
    """One row: the instruction of a mnemonic, or of a mnemonic with certain modifiers."""

    mnemonic: str
    modifiers: frozenset[str]
    """The row is for instructions that have all of these."""
    meaning: str
    writes: tuple[Word, ...]
    """Leading operands that are written."""
    reads: tuple[Word, ...]
    """The operands after them; any further one has the default width."""
    loads: frozenset[str]
    """Memory spaces read."""
    stores: frozenset[str]
    """Memory spaces written."""
    control: str | None
    """One of `CONTROL`; None when execution goes on with the next instruction."""
    warp: bool
    """Works with other lanes of the warp: must not move to where other lanes are active."""
    clock: bool
    """May read a clock, a counter or other state that changes by itself."""
    ordered: bool
    """Keeps memory accesses before and after it in order."""
    pinned: bool
    """Has an effect that is neither a register nor memory: stays, once, where it is."""

    @property
    def name(self) -> str:
        """Mnemonic and modifiers of the row."""
        return ".".join((self.mnemonic, *sorted(self.modifiers)))


def _words(column: str, access: str) -> tuple[Word, ...]:
    return tuple(_word(text, access) for text in column.split())


def _word(text: str, column_access: str) -> Word:
    """One word: `p`, a width (`r:` or `u:` before it for one register file only), or an address `[width]`.

    `?` if the operand may be missing; `/rw` if it is used otherwise than its column says.
    """
    text, _, access = text.partition("/")
    bare = text.rstrip("?")
    if bare == "p":
        kind, width = "predicate", "1"
    elif bare.startswith("["):
        kind, width = "address", bare.strip("[]") or "address"
    elif ":" in bare:
        file, _, width = bare.partition(":")
        kind = {"r": "vector", "u": "uniform"}[file]
    else:
        kind, width = "register", bare
    return Word(kind, rule_of(width), text.endswith("?"), access or column_access)


def _spaces(effects: Iterable[str], access: str) -> frozenset[str]:
    """Memory spaces that the effects `space:r`, `space:w`, `space:rw` access that way."""
    found = {space for space, _, accesses in (effect.partition(":") for effect in effects) if access in accesses}
    if unknown := found - SPACES - {"generic"}:
        raise ValueError(f"unknown memory space {unknown}")
    return frozenset(found - {"generic"} | (GENERIC if "generic" in found else frozenset()))


def parse_table(table: str) -> list[Description]:
    """The rows of a table text with the columns mnemonic, writes, reads, effects, meaning; lines that begin with # divide it.

    Raises ValueError naming the line for a row that does not follow the columns.
    """
    return [_row(line) for line in table.strip().splitlines() if line and not line.startswith("#")]


def _row(line: str) -> Description:
    try:
        name, writes, reads, effect, meaning = (column.strip() for column in line.split("|", 4))
        effects: Sequence[str] = effect.split()
        known = {e for e in effects if ":" not in e}
        if unknown := known - CONTROL - FLAGS:
            raise ValueError(f"unknown effect {unknown}")
        if not meaning:
            raise ValueError("it does not say what the instruction does")
        mnemonic, *modifiers = name.split(".")
        return Description(
            mnemonic,
            frozenset(modifiers),
            meaning,
            _words(writes, "w"),
            _words(reads, "r"),
            _spaces(effects, "r"),
            _spaces(effects, "w"),
            next(iter(known & CONTROL), None),
            **{flag: flag in known for flag in FLAGS},
        )
    except (ValueError, KeyError) as error:
        raise ValueError(f"table row {line!r}: {error}") from error
