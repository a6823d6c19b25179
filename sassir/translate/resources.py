"""What code needs of the machine: registers and barriers, counted as ptxas counts them.

ptxas asks for two registers more than the highest number in use: held by all 11,963 functions of 5.7 million instructions (sm_75 to
sm_121, CUDA 11.8 to 13.5) that call no code of another file; the hardware keeps the program counter there (Mesa NAK). The count of
barriers is the highest number plus one in all 12,396 of them.
"""

from __future__ import annotations

from collections.abc import Iterable

from sassir.asm.instruction import INSTRUCTION_BYTES, Instruction
from sassir.asm.program import Function
from sassir.cubin.code import Resources
from sassir.dialect.registers import R
from sassir.translate.branches import is_direct
from sassir.translate.shape import Shape, shape

RESERVED_REGISTERS = 2
_GENERAL = (1 << R.COUNT) - 1 << R.FIRST


def resources(function: Function, before: Resources) -> Resources:
    """The counts for new code of a kernel; `before` are those of the old.

    Where the code alone does not tell (opaque instructions, calls to other code, registers that are asked for at run time, a
    barrier whose number is in a register) a count does not go down.
    """
    code = [line.instruction for line in function.lines]
    shapes = [shape(c.mnemonic, c.modifiers, c.operands) for c in code]
    registers = highest_register(shapes) + 1 + RESERVED_REGISTERS
    if before.registers is not None and not _is_alone(function, shapes):
        registers = max(registers, before.registers)
    barriers = [number for c in code if c.mnemonic == "BAR" for number in barrier_numbers(c)]
    known = max([-1, *[number for number in barriers if number is not None]]) + 1
    if before.barriers is not None and None in barriers:
        known = max(known, before.barriers)
    return Resources(registers, known)


def highest_register(shapes: Iterable[Shape]) -> int:
    """The highest number of a general register that is read or written; -1 if there is none."""
    used = 0
    for found in shapes:
        used |= found.read_set | found.write_set
    return ((used & _GENERAL) >> R.FIRST).bit_length() - 1


def barrier_numbers(barrier: Instruction) -> tuple[int | None, ...]:
    """The named barriers of a BAR; None stands for one that is in a register."""
    return (barrier.operands[0].integer,) if barrier.operands else ()


def _is_alone(function: Function, shapes: list[Shape]) -> bool:
    """The registers in use are all that are needed."""
    for i, (line, found) in enumerate(zip(function.lines, shapes, strict=True)):
        instruction = line.instruction
        if found.problem is not None or instruction.mnemonic == "USETMAXREG":
            return False
        if instruction.mnemonic == "CALL":
            target = found.displacement
            if not is_direct(instruction) or target is None or not 0 <= INSTRUCTION_BYTES * i + target < function.size:
                return False
    return True
