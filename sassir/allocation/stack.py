"""Room in local memory: the stack frame of a kernel, made or enlarged.

What ptxas does (all of 11.8 to 13.5, sm_75 to sm_120): the first instruction loads the initial stack pointer from constant bank 0
into R1, and where the kernel has a stack frame, a second one subtracts its size. Local memory is then addressed from R1.
"""

from __future__ import annotations

import re

from xdsl.ir import Operation, SSAValue

from sassir.allocation.registers import AllocationError, fixed
from sassir.dialect import internals
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.operations import KernelOp
from sassir.dialect.registers import NUMBER, register
from sassir.dialect.template import TemplateAttr
from sassir.machine.constant_bank import constant_bank
from sassir.rewrite.build import encodable, instruction

ALIGNMENT = 16
"""What a frame grows by is a multiple of this, so that the kernel's own 128-bit accesses stay aligned."""
POINTER = register("R1")
WORDS = 1 << 32
"""How many values a register has: a subtraction may be written as the addition of the complement."""
_SUBTRACT = ("IADD3 =R, $R, -{:#x}, RZ", "IADD3 =R, PT, PT, $R, -{:#x}, RZ")
_IMMEDIATE = re.compile(r"(=R, (?:PT, PT, )?\$R, )(-?0x[0-9a-f]+)((?:, RZ)?)")


def grow_frame(kernel: KernelOp, arch: str, size: int) -> tuple[SSAValue, int]:
    """Add `size` bytes to the stack frame. Returns the stack pointer and the offset of the new room from it.

    Raises AllocationError where the stack pointer is used in a way that does not tell how the frame is laid out.
    """
    size = -(-size // ALIGNMENT) * ALIGNMENT
    initial = _initial(kernel, arch)
    uses: list[Operation] = [use.operation for use in initial.results[0].uses]
    if not uses:
        frame = 0
        block = initial.parent
        assert block is not None
        adjustment = _subtraction(initial.results[0], size, arch)
        block.insert_op_after(adjustment, initial)
    else:
        adjustment = uses[0]
        frame = _frame(adjustment) if len(uses) == 1 else None
        if frame is None:
            raise AllocationError("cannot spill to local memory: the stack pointer is not just lowered by the size of the frame")
        _resize(adjustment, frame + size)
    pointer = adjustment.results[0]
    internals.retype(initial.results[0], POINTER)
    internals.retype(pointer, POINTER)
    for block in kernel.body.blocks:
        for value in (*block.args, *[r for op in block.ops for r in op.results]):
            if fixed(value) == NUMBER["R1"] and value not in (initial.results[0], pointer):
                raise AllocationError("cannot spill to local memory: the stack pointer moves inside of the kernel")
    return pointer, frame


def _initial(kernel: KernelOp, arch: str) -> SassInstruction:
    """The instruction that loads the initial stack pointer; made where there is none."""
    constant = f"c[0x0][{constant_bank(arch).stack:#x}]"
    entry = kernel.body.blocks[0]
    found = [op for block in kernel.body.blocks for op in block.ops if isinstance(op, SassInstruction) and constant in op.template.text]
    if not found:
        made = instruction(f"LDC =R, {constant}")
        entry.insert_op_before(made, next(op for op in entry.ops if isinstance(op, SassInstruction) or op is entry.last_op))
        return made
    if len(found) > 1 or found[0].parent is not entry or len(found[0].results) != 1:
        raise AllocationError("cannot spill to local memory: the initial stack pointer is loaded in more than one place")
    return found[0]


def _subtraction(value: SSAValue, size: int, arch: str) -> SassInstruction:
    texts = [text.format(size) for text in _SUBTRACT]
    return instruction(next(text for text in texts if encodable(instruction(text), arch)), [value])


def _frame(op: Operation) -> int | None:
    """The size that `op` subtracts; None for another operation."""
    if not isinstance(op, SassInstruction) or op.MNEMONIC not in ("IADD", "IADD3", "VIADD"):
        return None
    match = _IMMEDIATE.fullmatch(op.template.text)
    return -int(match[2], 16) % WORDS if match is not None and op.guard is None and op.modifiers is None else None


def _resize(op: Operation, size: int) -> None:
    """Let `op` subtract another size."""
    assert isinstance(op, SassInstruction)

    def resized(match: re.Match[str]) -> str:
        immediate = f"-{size:#x}" if match[2].startswith("-") else f"{WORDS - size:#x}"
        return match[1] + immediate + match[3]

    op.template = TemplateAttr.of(_IMMEDIATE.sub(resized, op.template.text))
