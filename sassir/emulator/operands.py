"""Operands of the instructions that the emulator itself understands: their kinds, and the slots of their registers."""

from __future__ import annotations

from collections.abc import Sequence, Set

from sassir.asm.instruction import Instruction
from sassir.asm.operand import ZERO_REGISTERS
from sassir.emulator.address import following
from sassir.emulator.batch import Batch
from sassir.emulator.lanes import Array, Lanes
from sassir.errors import SemanticsError
from sassir.isa.description import kind_of


def expect(instruction: Instruction, kinds: Sequence[str], modifiers: Set[str]) -> None:
    """Raise SemanticsError unless the operands are of these kinds, and all modifiers are among those."""
    found = tuple([kind_of(operand) for operand in instruction.operands])
    if found != tuple(kinds):
        raise SemanticsError(f"`{instruction.text}`: the emulator knows only the operands {', '.join(kinds)}")
    if unknown := {*instruction.modifiers} - modifiers:
        raise SemanticsError(f"`{instruction.text}`: the emulator does not know the modifier {min(unknown)}")


def slots(batch: Batch, first: str, width: int) -> list[int]:
    """The slots of the registers that `width` bytes are written to; none for a zero register."""
    return [] if first in ZERO_REGISTERS else sources(batch, first, width)


def sources(batch: Batch, first: str, width: int) -> list[int]:
    """The slots of the registers that hold `width` bytes."""
    return [batch.registers.slot(following(first, i)) for i in range(max(1, width // 4))]


def words_of(batch: Batch, slots: list[int], lanes: Lanes) -> list[Array]:
    """The values of some registers in the lanes, checked."""
    for slot in slots:
        batch.registers.check(slot, lanes)
    return [lanes.of(batch.registers.values[slot]) for slot in slots]
