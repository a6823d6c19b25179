"""An instruction that stands for all with the same text: with a register of its own in each hole."""

from __future__ import annotations

from sassir import isa
from sassir.asm.control import Control
from sassir.asm.instruction import Instruction
from sassir.asm.operand import target
from sassir.dialect.registers import FILES
from sassir.dialect.template import TemplateAttr

_LEGAL = Control(stall=1)
"""A control code that every instruction can have; the absent one has no encoding."""


def sample(mnemonic: str, modifiers: str, template: TemplateAttr) -> Instruction:
    """The instruction with a register of its own in each hole, aligned as its width asks."""
    parts = tuple(modifiers.split(".")) if modifiers else ()
    operands = template.fill(sample_registers(template), target(16) if template.places else None)
    return Instruction(mnemonic, parts, operands, control=_LEGAL)


def sample_registers(template: TemplateAttr) -> list[str]:
    """A register for each visible hole; no two overlap as long as the file has room."""
    following = dict.fromkeys(FILES, 0)
    names: list[str] = []
    for _, file, width in template.data.holes[: template.data.visible]:
        step = isa.alignment(width)
        first = -(-following[file] // step) * step
        following[file] = first + width
        names.append(f"{file}{first}")
    return names
