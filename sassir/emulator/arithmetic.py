"""Instructions without memory or control flow: their semantics, applied to the registers."""

from __future__ import annotations

import numpy as np

from sassir.asm.instruction import Instruction
from sassir.emulator.batch import Batch, Step
from sassir.emulator.lanes import Array, Lanes
from sassir.emulator.registers import Known
from sassir.errors import SemanticsError
from sassir.isa.semantics import Constant, Register, Source, SpecialRegister, semantics


def arithmetic(batch: Batch, instruction: Instruction) -> Step:
    """Raises SemanticsError when the instruction's meaning is not known."""
    evaluator = semantics(instruction, batch.kernel.arch)
    registers = batch.registers
    values, defined, write, evaluate = registers.values, registers.defined, registers.write, evaluator.evaluate
    read = tuple([_slot(batch, instruction, source) for source in evaluator.sources])
    watched = read if instruction.mnemonic != "P2R" else ()  # it saves all predicates, whether they were written or not
    written = tuple([registers.slot(name) for name in evaluator.results])
    uniform = bool(written) and all(name.startswith("U") for name in evaluator.results)

    def run(lanes: Lanes) -> None:
        found = evaluate(*[values[slot] for slot in read])
        for slot in watched:
            if defined[slot] is not True:
                return keep(found, lanes, registers.known(read))
        if lanes.full:
            for slot, value in zip(written, found, strict=True):
                values[slot], defined[slot] = value, True
        else:
            for slot, value in zip(written, found, strict=True):
                write(slot, value, lanes.warps if uniform else lanes)
        return None

    def run_together(lanes: Lanes) -> None:
        keep(evaluate(lanes.flags, *[np.broadcast_to(values[slot], lanes.flags.shape) for slot in read]), lanes, known_together(lanes))

    def known_together(lanes: Lanes) -> Known:
        """A shuffle moves what is known with the values; elsewhere one lane that has never written spoils the results of its warp."""
        known = registers.known(read)
        if known is True or not read:
            return True
        if instruction.mnemonic == "SHFL":
            moved = np.broadcast_to(np.where(defined[read[0]], np.uint32(1), np.uint32(0)), lanes.flags.shape)
            others = [np.broadcast_to(values[slot], lanes.flags.shape) for slot in read[1:]]
            return evaluate(lanes.flags, moved, *others)[-1] != 0
        return np.logical_and.reduce(known | ~lanes.flags, axis=1, keepdims=True)

    def keep(found: tuple[Array, ...], lanes: Lanes, known: Known) -> None:
        for slot, value in zip(written, found, strict=True):
            if known is not True:
                registers.blame(slot, read, instruction.text)
            write(slot, value, lanes.warps if uniform else lanes, known)

    return run_together if evaluator.warp else run


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
