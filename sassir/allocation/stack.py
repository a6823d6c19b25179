"""Room in local memory: the stack frame of a kernel, made or enlarged.

What ptxas does (all of 11.8 to 13.5, sm_75 to sm_120): the first instruction loads the initial stack pointer from constant bank 0
into R1, and where the kernel has a stack frame, a second one subtracts its size. Local memory is then addressed from R1.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue

from sassir.allocation.registers import AllocationError, fixed
from sassir.dialect import internals
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.operations import KernelOp, LabelOp
from sassir.dialect.registers import NUMBER, register
from sassir.dialect.template import TemplateAttr
from sassir.machine.constant_bank import constant_bank
from sassir.rewrite.build import encodable, instruction

ALIGNMENT = 16
"""What a frame grows by is a multiple of this, so that the kernel's own 128-bit accesses stay aligned."""
POINTER = register("R1")
POINTER_NUMBER = NUMBER["R1"]
WORDS = 1 << 32
"""How many values a register has: a subtraction may be written as the addition of the complement."""
_SUBTRACT = ("IADD3 =R, $R, -{:#x}, RZ", "IADD3 =R, PT, PT, $R, -{:#x}, RZ")
_IMMEDIATE = re.compile(r"(=R, (?:PT, PT, )?\$R, )(-?0x[0-9a-f]+)((?:, RZ)?)")


def reserve(kernel: KernelOp, arch: str) -> None:
    """Let the stack pointer be in R1, which nothing else is ever in: code is read that way (see `sassir.translate.resources`)."""
    for initial in _initial_loads(kernel, arch):
        uses = [use.operation for use in initial.results[0].uses]
        for op in (initial, *[op for op in uses if _frame(op) is not None]):
            internals.retype(op.results[0], POINTER)


def grow_frame(kernel: KernelOp, arch: str, size: int) -> tuple[SSAValue, int]:
    """Add `size` bytes to the stack frame. Returns the stack pointer and the offset of the new room from it.

    Raises AllocationError where the stack pointer is used in a way that does not tell how the frame is laid out.
    """
    size = -(-size // ALIGNMENT) * ALIGNMENT
    loads = _initial_loads(kernel, arch)
    if len(loads) > 1:
        raise AllocationError("cannot spill to local memory: the initial stack pointer is loaded in more than one place")
    initial = loads[0] if loads else instruction(f"LDC =R, {_initial(arch)}")
    uses: list[Operation] = [use.operation for use in initial.results[0].uses]
    adjustment = uses[0] if uses else _subtraction(initial.results[0], arch)
    frame = _frame(adjustment) if len(uses) < 2 else None
    if frame is None:
        raise AllocationError("cannot spill to local memory: the stack pointer is not just lowered by the size of the frame")
    _resize(adjustment, frame + size)
    pointers = (initial.results[0], adjustment.results[0])
    for pointer in pointers:
        internals.retype(pointer, POINTER)
    for block in kernel.body.blocks:
        for value in (*block.args, *[r for op in block.ops for r in op.results]):
            if fixed(value) == POINTER_NUMBER and value not in pointers:
                raise AllocationError("cannot spill to local memory: the stack pointer moves inside of the kernel")
    put_first(kernel, (initial, adjustment))
    return adjustment.results[0], frame


def _initial(arch: str) -> str:
    """The operand that is the initial stack pointer."""
    return f"c[0x0][{constant_bank(arch).stack:#x}]"


def _initial_loads(kernel: KernelOp, arch: str) -> list[SassInstruction]:
    """The instructions that load the initial stack pointer into a register."""
    ops = [op for op in kernel.body.walk() if isinstance(op, SassInstruction) and _initial(arch) in op.template.text]
    return [op for op in ops if not internals.operands(op) and len(op.results) == 1]


def put_first(kernel: KernelOp, ops: Sequence[Operation]) -> None:
    """Move operations to the start of the kernel, in front of whatever may have to be spilled."""
    entry = kernel.body.blocks[0]
    for op in ops:
        if op.parent is not None:
            op.detach()
    place = next((op for op in entry.ops if not isinstance(op, LabelOp)), None)
    assert place is not None
    entry.insert_ops_before(ops, place)


def _subtraction(value: SSAValue, arch: str) -> SassInstruction:
    """What lowers a stack pointer, as yet by nothing."""
    form = next(text for text in _SUBTRACT if encodable(instruction(text.format(ALIGNMENT)), arch))
    return instruction(form.format(0), [value])


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
