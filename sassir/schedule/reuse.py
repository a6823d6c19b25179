"""Mark the operands that stay in the operand cache for a near instruction.

Each of the three operand slots keeps one register of each bank (even, odd) between instructions of a warp that stays
selected (Huerta et al., MICRO 2025, section 5.3). A marked operand is found there by the next instruction that reads it
in the same slot, which saves a read of the register file. The cache does not see writes, so the register must not be
written in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from sassir import isa
from sassir.asm.control import Control
from sassir.asm.instruction import Instruction
from sassir.asm.operand import HOLE, Operand
from sassir.dialect.registers import NUMBER
from sassir.encoders import table
from sassir.errors import EncodingError
from sassir.translate.shape import bits

_SLOT_BITS = (122, 123, 124)
_KEEPING = Control(1)
_LOOK_AHEAD = 4


class Slot(NamedTuple):
    """A source operand that the cache can keep."""

    operand: int
    """Its place among the operands."""
    slot: int
    first: int
    """The number of its first register."""
    registers: int
    """All of them, as bits."""

    def shares_bank(self, other: Slot) -> bool:
        """Reading one puts the other out of the cache."""
        wide = (self.registers | other.registers).bit_count() > 2 or self.registers.bit_count() > 1 or other.registers.bit_count() > 1
        return self.slot == other.slot and (wide or (self.first - other.first) % 2 == 0)


def find_reuse(code: Sequence[Instruction], controls: Sequence[Control], written: Sequence[int], block: range, arch: str) -> dict[int, list[int]]:
    """The operands to mark, by line. `written`: the registers that each line writes, as bits."""
    slots = {line: cached_slots(code[line], arch) for line in block}
    marks: dict[int, list[int]] = {}
    for line in block:
        for kept in slots[line]:
            changed = 0
            for behind in range(line + 1, min(line + 1 + _LOOK_AHEAD, block.stop)):
                changed |= written[behind - 1]
                if controls[behind - 1].yield_ or changed & kept.registers:
                    break
                sharing = [other for other in slots[behind] if kept.shares_bank(other)]
                if any(other.registers == kept.registers for other in sharing):
                    marks.setdefault(line, []).append(kept.operand)
                if sharing:
                    break
    return marks


def cached_slots(instruction: Instruction, arch: str) -> list[Slot]:
    """The source operands of an instruction that the cache can keep."""
    blank = tuple([o if not o.is_register else o.with_registers(*[r if r.endswith(("Z", "T")) else r.rstrip("0123456789") + "0" for r in o.registers]) for o in instruction.operands])
    return [
        Slot(operand, slot, first := NUMBER[instruction.operands[operand].registers[0]], bits(range(first, first + width)))
        for operand, slot, width in _slots(arch, instruction.mnemonic, instruction.modifiers, blank)
        if instruction.operands[operand].registers[0] != "RZ"
    ]


@cache
def _slots(arch: str, mnemonic: str, modifiers: tuple[str, ...], operands: tuple[Operand, ...]) -> tuple[tuple[int, int, int], ...]:
    """Operand, slot and width of each operand that can be marked, found out by encoding it with its mark."""
    roles = isa.roles(Instruction(mnemonic, modifiers, operands))
    found: list[tuple[int, int, int]] = []
    for access in roles.reads if roles is not None else ():
        operand = operands[access.operand]
        if not operand.is_register or not operand.registers[0].startswith("R"):
            continue
        marks = (*operands[: access.operand], marked(operand), *operands[access.operand + 1 :])
        try:
            word = table(arch).encode(Instruction(mnemonic, modifiers, marks, None, _KEEPING))
        except EncodingError:
            continue
        found += [(access.operand, slot, access.width) for slot, bit in enumerate(_SLOT_BITS) if word >> bit & 1]
    return tuple(found)


@cache
def marked(operand: Operand) -> Operand:
    """The operand with its mark: `R2.reuse`, `|R2|.reuse`, `R2.reuse.H0_H0`."""
    head, hole, tail = operand.template.partition(HOLE)
    bar = "|" if tail.startswith("|") else ""
    return Operand.of(f"{head}{hole}{bar}.reuse{tail[len(bar) :]}", operand.registers)
