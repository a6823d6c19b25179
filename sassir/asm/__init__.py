"""The instruction record that all layers share, and its text."""

from sassir.asm.control import Control
from sassir.asm.instruction import OPAQUE, Instruction
from sassir.asm.operand import Operand

__all__ = ["OPAQUE", "Control", "Instruction", "Operand"]
