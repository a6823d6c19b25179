"""Instruction: the one currency of sassir. Decoder, grammar, dialect and encoder all speak it."""

from __future__ import annotations

from typing import NamedTuple

from sassir.asm.control import Control
from sassir.asm.operand import Operand

OPAQUE = "OPAQUE"
INSTRUCTION_BYTES = 16


class Instruction(NamedTuple):
    """One machine instruction, position-independent: a branch target is a displacement from the instruction itself."""

    mnemonic: str
    """Base name, `FFMA`; `OPAQUE` for a word that no table row describes (its one operand is the word without the control code)."""
    modifiers: tuple[str, ...] = ()
    """What follows the mnemonic, without dots: ('FTZ', 'SAT')."""
    operands: tuple[Operand, ...] = ()
    """In assembly order, destinations first."""
    guard: Operand | None = None
    """`P0` or `!P0`; None when the instruction always executes (@PT)."""
    control: Control = Control()
    """Stall count, yield, scoreboards."""
    extra: tuple[tuple[str, int], ...] = ()
    """Fields that the text of NVIDIA's tools hides, where they differ from what ptxas writes: (name, value)."""
    word: int | None = None
    """The 128 bits it was decoded from; None once anything was changed or when it came from text alone."""

    @property
    def name(self) -> str:
        """Mnemonic and modifiers as written: `FFMA.FTZ.SAT`."""
        return ".".join((self.mnemonic, *self.modifiers))

    @property
    def text(self) -> str:
        """The instruction as sassir writes it, without control code: `@!P0 FFMA.FTZ R1, -R2.reuse, c[0x0][0x160], R3`."""
        guard = f"@{self.guard.text} " if self.guard is not None else ""
        operands = ", ".join([o.text for o in self.operands])
        extra = "".join([f" {{{name}={value:#x}}}" for name, value in self.extra])
        return f"{guard}{self.name} {operands}".rstrip() + extra

    def __str__(self) -> str:
        return self.text
