"""Instructions without memory or control flow: their semantics, applied to the registers."""

from __future__ import annotations

import numpy as np

from sassir.asm.instruction import Instruction
from sassir.emulator.batch import Batch, Step
from sassir.emulator.lanes import Lanes
from sassir.errors import SemanticsError
from sassir.isa.semantics import Constant, Register, Source, SpecialRegister, semantics


def arithmetic(batch: Batch, instruction: Instruction) -> Step:
    """Raises SemanticsError when the instruction's meaning is not known."""
    sources, results, evaluate, warp = semantics(instruction, batch.kernel.arch)
    registers = batch.registers
    values, defined, write = registers.values, registers.defined, registers.write
    read = tuple([_slot(batch, instruction, source) for source in sources])
    checked = read if instruction.mnemonic != "P2R" else ()  # P2R saves predicates whether they were set or not
    written = tuple([registers.slot(name) for name in results])
    uniform = bool(results) and all(name.startswith("U") for name in results)

    def run(lanes: Lanes) -> None:
        for slot in checked:
            if defined[slot] is not True:
                registers.check(slot, lanes)
        found = evaluate(*[values[slot] for slot in read])
        if lanes.full:
            for slot, value in zip(written, found, strict=True):
                values[slot], defined[slot] = value, True
        else:
            for slot, value in zip(written, found, strict=True):
                write(slot, value, lanes.warps if uniform else lanes)

    def run_together(lanes: Lanes) -> None:
        for slot in checked:
            if defined[slot] is not True:
                registers.check(slot, lanes)
        found = evaluate(lanes.flags, *[np.broadcast_to(values[slot], lanes.flags.shape) for slot in read])
        for slot, value in zip(written, found, strict=True):
            write(slot, value, lanes.warps if uniform else lanes)

    return run_together if warp else run


def _slot(batch: Batch, instruction: Instruction, source: Source) -> int:
    match source:
        case Register(name):
            return batch.registers.slot(name)
        case Constant(int(bank), offset, None):
            return batch.constant(bank, offset)
        case SpecialRegister(name, 0):
            return batch.special(name)
        case _:
            raise SemanticsError(f"`{instruction.text}`: the emulator cannot read {source}")
