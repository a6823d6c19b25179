"""What code needs of the machine: registers and barriers, counted as ptxas counts them."""

from __future__ import annotations

from collections.abc import Iterable

from sassir import isa
from sassir.asm.instruction import INSTRUCTION_BYTES, Instruction
from sassir.asm.program import Function
from sassir.cubin.code import Resources
from sassir.dialect.instruction import SassBranch
from sassir.dialect.registers import NUMBER, R
from sassir.machine.constant_bank import constant_bank
from sassir.translate.branches import is_direct
from sassir.translate.shape import Shape, shape

RESERVED_REGISTERS = 2
"""The hardware keeps the program counter there (Mesa NAK)."""
REGISTER_RULE = "ptxas asks for two registers more than the highest number in use, never for fewer: docs/container.md"
BARRIER_RULE = "ptxas counts barriers up to the highest number in use: docs/container.md"
_GENERAL = (1 << R.COUNT) - 1 << R.FIRST
_STACK_POINTER = 1 << NUMBER["R1"]


def resources(function: Function, before: Resources, arch: str) -> Resources:
    """The counts for new code of a kernel; `before` are those of the old.

    Where the code alone does not tell (opaque instructions, calls to other code, registers that are asked for at run time, a
    barrier whose number is in a register) a count does not go down. The stack frame grows, or goes where nothing can be on it any
    more; None where it stays as it is.
    """
    code = [line.instruction for line in function.lines]
    shapes = [shape(c.mnemonic, c.modifiers, c.operands) for c in code]
    registers = max(highest_register(shapes) + 1 + RESERVED_REGISTERS, function.registers)
    if before.registers is not None and not _is_alone(function, shapes):
        registers = max(registers, before.registers)
    barriers = [number for c in code if c.mnemonic == "BAR" for number in barrier_numbers(c)]
    known = max([-1, *[number for number in barriers if number is not None]]) + 1
    if before.barriers is not None and None in barriers:
        known = max(known, before.barriers)
    frame = stack_frame(code, arch)
    if frame is None and before.stack and _is_alone(function, shapes) and _needs_no_stack(code, arch):
        return Resources(registers, known, 0)
    return Resources(registers, known, frame if frame is not None and frame > (before.stack or 0) else None)


def stack_frame(code: Iterable[Instruction], arch: str) -> int | None:
    """Bytes of local memory that a kernel takes at its start; None for code that does not begin as ptxas begins a kernel.

    The initial stack pointer is loaded from constant bank 0 into R1; where there is a frame, its size is subtracted before the first
    branch. That is the FRAME_SIZE in the file for all that begin so: docs/container.md.
    """
    frame: int | None = None
    for instruction in code:
        found = shape(instruction.mnemonic, instruction.modifiers, instruction.operands)
        if issubclass(found.op, SassBranch):
            break
        if not found.write_set & _STACK_POINTER:
            continue
        if frame is None:
            if all(o.constant != (0, constant_bank(arch).stack) for o in instruction.operands):
                return None
            frame = 0
            continue
        sizes = [-o.integer % (1 << 32) for o in instruction.operands if o.integer is not None]
        if instruction.mnemonic not in ("IADD", "IADD3", "VIADD") or not found.read_set & _STACK_POINTER or len(sizes) != 1:
            break  # the register is in use for something else from here on
        frame += sizes[0]
    return frame


def _needs_no_stack(code: Iterable[Instruction], arch: str) -> bool:
    """Whether there is no access to local memory, nor the stack pointer that an address of it could be made from."""
    pointer = (0, constant_bank(arch).stack)
    for instruction in code:
        row = isa.describe(instruction.mnemonic, instruction.modifiers)
        if row is None or "local" in row.loads | row.stores or any(o.constant == pointer for o in instruction.operands):
            return False
    return True


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
