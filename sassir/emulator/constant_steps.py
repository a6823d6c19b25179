"""What comes from outside: constants (LDC, ULDC, LDCU) and special registers (S2R, S2UR, CS2R, CS2UR)."""

from __future__ import annotations

import numpy as np

from sassir.asm.instruction import Instruction
from sassir.asm.operand import ZERO_REGISTERS
from sassir.emulator.batch import WIDTHS, Batch, Step, access_width
from sassir.emulator.lanes import Lanes
from sassir.emulator.operands import slots
from sassir.errors import SemanticsError


def constant_step(batch: Batch, instruction: Instruction) -> Step:
    """LDC, and ULDC and LDCU for the warp. Raises SemanticsError for a form that is not known."""
    target, source = instruction.operands[0], instruction.operands[-1]
    if source.constant is None or len(instruction.operands) != 2 or not {*instruction.modifiers} <= WIDTHS.keys():
        raise SemanticsError(f"`{instruction.text}`: this form of a constant load is not known")
    number, offset = source.constant
    width = access_width(instruction.modifiers)
    signed = not {"S8", "S16"}.isdisjoint(instruction.modifiers)
    uniform = instruction.mnemonic != "LDC"
    registers = batch.registers
    written = slots(batch, target.registers[0], width)
    index = registers.slot(source.registers[0]) if source.registers else registers.slot("RZ")
    if number not in batch.banks:
        raise SemanticsError(f"`{instruction.text}`: the cubin has no constant bank {number:#x}")
    bank = batch.banks[number]
    fixed = [batch.constant(number, offset + 4 * i) for i in range(max(1, width // 4))]

    def run_fixed(lanes: Lanes) -> None:
        some = lanes.warps if uniform else lanes
        for slot, word in zip(written, fixed, strict=False):
            registers.check(word, some)
            registers.write(slot, registers.values[word], some)

    def run(lanes: Lanes) -> None:
        some = lanes.warps if uniform else lanes
        registers.check(index, some)
        places = some.of(registers.values[index] + np.uint32(offset & 0xFFFFFFFF)).astype(np.intp)
        for slot, word in zip(written, bank.gather(places, width, signed, some.numbers), strict=False):
            registers.write(slot, some.expand(word), some)

    return run_fixed if width >= 4 and registers.names[index] in ZERO_REGISTERS else run


def special_step(batch: Batch, instruction: Instruction) -> Step:
    """S2R, S2UR, CS2R, CS2UR."""
    target, name = instruction.operands[0].registers[0], instruction.operands[1].text
    words = 1 if instruction.mnemonic.startswith("S2") or "32" in instruction.modifiers else 2
    read = [batch.special(name), batch.special(name.replace("LO", "HI")) if name != "SRZ" else batch.special(name)][:words]
    written = slots(batch, target, 4 * words)
    uniform = target.startswith("U")
    registers = batch.registers

    def run(lanes: Lanes) -> None:
        some = lanes.warps if uniform else lanes
        for slot, source in zip(written, read, strict=False):
            registers.check(source, some)
            registers.write(slot, registers.values[source], some)

    return run
