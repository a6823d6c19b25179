"""The instruction record that all layers share, and its text."""

from sassir.asm.control import Control
from sassir.asm.instruction import INSTRUCTION_BYTES, OPAQUE, Instruction
from sassir.asm.operand import Operand
from sassir.asm.program import Function, Line, Program

__all__ = ["INSTRUCTION_BYTES", "OPAQUE", "Control", "Function", "Instruction", "Line", "Operand", "Program"]
