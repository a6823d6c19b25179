"""The lanes of a warp wait for each other: BSSY, BSYNC, BREAK, BMOV, WARPSYNC."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sassir.asm.instruction import Instruction
from sassir.asm.operand import register_file
from sassir.emulator.batch import Batch, Step
from sassir.emulator.control import Builder, is_predicate, refuse_unknown
from sassir.emulator.flow import pack
from sassir.emulator.lanes import Lanes
from sassir.errors import SemanticsError

_FLAVOUR = frozenset({"RECONVERGENT", "RELIABLE"})


def start(batch: Batch, place: int, instruction: Instruction) -> Step:
    """BSSY: the lanes that execute it together will wait for each other at BSYNC."""
    refuse_unknown(instruction, _FLAVOUR)
    name = _register(instruction)

    def run(lanes: Lanes) -> None:
        register = batch.flow.register(name)
        register.mask = np.where(lanes.flags, pack(lanes.flags), register.mask)

    return run


def wait(batch: Batch, place: int, instruction: Instruction) -> Step:
    """BSYNC."""
    refuse_unknown(instruction, _FLAVOUR)
    name = _register(instruction)
    return lambda lanes: batch.flow.wait_for_warp(name, place + 1, lanes)


def give_up(batch: Batch, place: int, instruction: Instruction) -> Step:
    """BREAK: the lanes will not come to BSYNC; the others need not wait for them."""
    refuse_unknown(instruction, _FLAVOUR)
    name = _register(instruction)

    def run(lanes: Lanes) -> None:
        register = batch.flow.register(name)
        register.mask = np.where(lanes.flags, register.mask, register.mask & ~pack(lanes.flags))
        batch.flow.recheck()

    return run


def move(batch: Batch, place: int, instruction: Instruction) -> Step:
    """BMOV.32 between a B register and a general one; CLEAR empties the B register that is read. Raises SemanticsError for other forms."""
    refuse_unknown(instruction, frozenset({"32", "CLEAR"}))
    names = [o.registers[0] for o in instruction.operands if o.registers]
    if len(names) != 2 or sorted(register_file(name) for name in names) != ["B", "R"]:
        raise SemanticsError(f"`{instruction.text}`: this form of BMOV is not emulated")
    target, source = names
    registers, general = batch.registers, batch.registers.slot(target if register_file(source) == "B" else source)
    clear = "CLEAR" in instruction.modifiers

    def save(lanes: Lanes) -> None:
        register = batch.flow.register(source)
        if target != "RZ":
            registers.write(general, register.mask, lanes)
        if clear:
            register.mask = np.where(lanes.flags, np.uint32(0), register.mask)

    def restore(lanes: Lanes) -> None:
        registers.check(general, lanes)
        register = batch.flow.register(target)
        register.mask = np.where(lanes.flags, registers.values[general], register.mask)

    return save if register_file(source) == "B" else restore


def wait_for_mask(batch: Batch, place: int, instruction: Instruction) -> Step:
    """WARPSYNC: the lanes of the mask wait for each other, and go on where each of them waited.

    With COLLECTIVE the next instruction is executed by all of them together.
    """
    refuse_unknown(instruction, frozenset({"ALL", "EXCLUSIVE", "COLLECTIVE"}))
    operand = None if "ALL" in instruction.modifiers else next(o for o in instruction.operands if not is_predicate(o))
    name = "WARPSYNC.COLLECTIVE" if "COLLECTIVE" in instruction.modifiers else "WARPSYNC"
    number = 0xFFFFFFFF if operand is None else operand.integer
    slot = batch.registers.slot(operand.registers[0]) if operand is not None and number is None else None

    def run(lanes: Lanes) -> bool:
        if slot is not None:
            batch.registers.check(slot, lanes)
        value = np.uint32((number or 0) & 0xFFFFFFFF) if slot is None else batch.registers.values[slot]
        register = batch.flow.register(name)
        register.mask = np.where(lanes.flags, value, register.mask)
        return batch.flow.wait_for_warp(name, place + 1, lanes)

    return run


def give_way(batch: Batch, place: int, instruction: Instruction) -> Step:
    """YIELD, NANOSLEEP: other lanes may go on first."""
    return lambda lanes: batch.flow.give_way()


def _register(instruction: Instruction) -> str:
    return next(name for o in instruction.operands for name in o.registers if register_file(name) == "B")


BUILDERS: Mapping[str, Builder] = {
    "BMOV": move,
    "BREAK": give_up,
    "BSSY": start,
    "BSYNC": wait,
    "NANOSLEEP": give_way,
    "WARPSYNC": wait_for_mask,
    "YIELD": give_way,
}
