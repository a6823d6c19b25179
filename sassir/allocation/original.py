"""The registers that values were in before they were freed: a wish, and no more than that."""

from __future__ import annotations

from xdsl.ir import Region, SSAValue

from sassir.asm.operand import ZERO_REGISTERS
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.registers import NUMBER, REGISTERS, file_of
from sassir.translate.shape import shape


def original_registers(region: Region) -> dict[SSAValue, int]:
    """From the original instruction of each operation of a region that still has one; results count more than operands.

    A pass may have put a value of another file in its place.
    """
    written: dict[SSAValue, int] = {}
    read: dict[SSAValue, int] = {}
    for block in region.blocks:
        for op in block.ops:
            if isinstance(op, SassInstruction):
                _collect(op, written, read)
    return {value: number for value, number in (read | written).items() if file_of(value) == REGISTERS[number].FILE}


def _collect(op: SassInstruction, written: dict[SSAValue, int], read: dict[SSAValue, int]) -> None:
    before = op.origin.data.instruction if op.origin is not None else None
    if before is None:
        return
    found = shape(before.mnemonic, before.modifiers, before.operands)
    reads, results = op.reads, op.results
    if len(reads) < len(found.reads) or len(results) != len(found.writes):
        return  # more values than operands are fine: those that are only held
    written.update(zip(results, found.writes, strict=True))
    read.update(zip(reads, found.reads, strict=False))
    read.update(zip(op.kept, found.writes, strict=False))
    guard = op.guard
    if guard is not None and before.guard is not None and before.guard.registers[0] not in ZERO_REGISTERS:
        read[guard] = NUMBER[before.guard.registers[0]]
