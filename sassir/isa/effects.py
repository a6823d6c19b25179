"""What an instruction does besides its registers, where the operands or modifiers decide."""

from __future__ import annotations

import re

from sassir.asm.instruction import Instruction
from sassir.isa.table import describe

_ORDERED = frozenset({"MMIO", "ORDERED", "STRONG"})
_STEADY = re.compile(r"SRZ|SR_(?:N?TID|N?CTAID|LANEID|VIRTID|SMEMSZ|SWIN(?:HI|LO)|(?:EQ|LT|LE|GT|GE)MASK|Cga\w+)(?:\.[XYZ])?")


def is_ordered(instruction: Instruction) -> bool:
    """Whether memory accesses must stay on their side of it: fences, barriers, atomics, and accesses marked strong or MMIO.

    True for an unknown instruction.
    """
    description = describe(instruction.mnemonic, instruction.modifiers)
    return description is None or description.ordered or not _ORDERED.isdisjoint(instruction.modifiers)


def reads_clock(instruction: Instruction) -> bool:
    """Whether it may give another value when it is executed again: a clock, a counter, or a special register not known to be steady.

    True for an unknown instruction.
    """
    description = describe(instruction.mnemonic, instruction.modifiers)
    return description is None or (description.clock and not any(_STEADY.fullmatch(o.text) for o in instruction.operands))
