"""What each instruction computes: one function an instruction, bit for bit as the hardware does it.

`definition` has the table, `operands` the common front, `assemble` puts both together; the other files hold the functions.
"""

from __future__ import annotations

from sassir.asm.control import Control
from sassir.asm.instruction import Instruction
from sassir.isa.semantics import approximate, choice, compare, convert, double, half, integer, lea, logic, matrix, single, warp
from sassir.isa.semantics.approximate import Deviation, deviation
from sassir.isa.semantics.assemble import evaluator
from sassir.isa.semantics.dot import hgmma
from sassir.isa.semantics.evaluator import Constant, Evaluator, Register, Source, SpecialRegister

TABLE = (approximate, choice, compare, convert, double, half, integer, lea, logic, matrix, single, warp)
"""The files whose functions are registered."""

__all__ = ["Constant", "Deviation", "Evaluator", "Register", "Source", "SpecialRegister", "deviation", "hgmma", "semantics"]

_NO_CONTROL = Control()


def semantics(instruction: Instruction, arch: str) -> Evaluator:
    """The meaning of an instruction; its guard and control code do not matter. Cached.

    Raises SemanticsError, naming the instruction, where its meaning is not modelled. Memory, control flow and special
    registers are not modelled here.
    """
    return evaluator(instruction._replace(guard=None, control=_NO_CONTROL, word=None), arch)
