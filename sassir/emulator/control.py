"""Branches, calls and exits; and how a control instruction parts the lanes for which its conditions hold from the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from sassir.asm.instruction import INSTRUCTION_BYTES, Instruction
from sassir.asm.operand import Operand, register_file
from sassir.emulator.batch import Batch, Step
from sassir.emulator.flow import pack
from sassir.emulator.lanes import LaneError, Lanes
from sassir.emulator.operands import slots, sources, words_of
from sassir.errors import SemanticsError

Builder = Callable[[Batch, int, Instruction], Step]
"""Makes the step of the instruction at a place, for lanes whose conditions hold. False of that step: they go on behind it."""

_FLAVOUR = frozenset({"ABS", "ANY", "CONV", "DEC", "DIV", "INC", "NODEC", "NOINC", "OPT", "REL", "RELIABLE", "U"})


def conditional(batch: Batch, place: int, instruction: Instruction, step: Step) -> Step:
    """The step for the lanes where the guard holds, and predicate operands (but those of barriers: they are votes); the others go on."""
    registers = batch.registers
    operands = () if instruction.mnemonic in ("BAR", "B2R") else instruction.operands
    conditions = [o for o in (instruction.guard, *operands) if o is not None and is_predicate(o)]
    tested = [(registers.slot(o.registers[0]), o.negated) for o in conditions]
    any_lane = "ANY" in instruction.modifiers

    def run(lanes: Lanes) -> bool | None:
        some = lanes
        for slot, negated in tested:
            registers.check(slot, some)
            some = some.where(~registers.values[slot] if negated else registers.values[slot])
        if any_lane:
            some = lanes.where(some.warps.flags)
        if some.count == lanes.count:
            return step(lanes)
        if not some.count:
            return False
        batch.flow.go(place + 1, lanes.flags & ~some.flags)
        if not step(some):
            batch.flow.go(place + 1, some.flags)
        return True

    return run if tested else step


def is_predicate(operand: Operand) -> bool:
    """Whether the operand is a predicate, perhaps complemented."""
    return operand.is_register and register_file(operand.registers[0]) in ("P", "UP")


def refuse_unknown(instruction: Instruction, known: frozenset[str]) -> None:
    """Raise SemanticsError for a modifier that is not known."""
    if unknown := {*instruction.modifiers} - known:
        raise SemanticsError(f"`{instruction.text}`: the emulator does not know the modifier {min(unknown)}")


def branch(batch: Batch, place: int, instruction: Instruction) -> Step:
    """BRA and CALL to a place that the instruction names. BRA.CONV goes there if the lanes are exactly those of a mask, BRA.DIV if not."""
    refuse_unknown(instruction, _FLAVOUR)
    target = target_of(place, instruction)
    if not {"CONV", "DIV"} & {*instruction.modifiers}:

        def run(lanes: Lanes) -> bool:
            batch.flow.go(target, lanes.flags)
            return True

        return run

    operand = next(o for o in instruction.operands if o.registers and not is_predicate(o))
    mask, converged = batch.registers.slot(operand.registers[0]), "CONV" in instruction.modifiers

    def run_by_mask(lanes: Lanes) -> bool:
        batch.registers.check(mask, lanes.warps)
        value = batch.registers.values[mask]
        together = pack(lanes.flags) == (~value if operand.inverted else value)
        taken = lanes.where(together if converged else ~together)
        batch.flow.go(target, taken.flags)
        batch.flow.go(place + 1, lanes.flags & ~taken.flags)
        return True

    return run_by_mask


def indirect(batch: Batch, place: int, instruction: Instruction) -> Step:
    """BRX, BRXU, RET, and CALL through a register: each lane goes to its register plus the place or number in the instruction."""
    refuse_unknown(instruction, _FLAVOUR)
    register = next(o for o in instruction.operands if o.registers and not is_predicate(o)).registers[0]
    displacement = next((o.displacement for o in instruction.operands if o.displacement is not None), None)
    number = next((o.integer for o in instruction.operands if o.integer is not None), 0)
    relative = instruction.mnemonic in ("BRX", "BRXU")
    pair = sources(batch, register, 8)
    if displacement is not None:
        start = batch.kernel.stretches.address(place) + displacement
    else:
        start = batch.kernel.stretches.address(place) + INSTRUCTION_BYTES + number if relative else number

    def run(lanes: Lanes) -> bool:
        low, high = words_of(batch, pair, lanes)
        targets = (high.astype(np.int64) << 32 | low) + start
        for target in np.unique(targets):
            there = Lanes(lanes.expand(targets == target) & lanes.flags)
            batch.flow.go(_place_of(batch, int(target), there), there.flags)
        return True

    return run


def _place_of(batch: Batch, address: int, lanes: Lanes) -> int:
    """The instruction at a code address."""
    if address in batch.kernel.driver_functions:
        raise LaneError(f"calls {batch.kernel.driver_functions[address]}, which only the driver has", int(lanes.numbers[0]))
    place = batch.kernel.stretches.place(address)
    if place is None:
        raise LaneError(f"goes to {address:#x}, where this kernel has no instruction", int(lanes.numbers[0]))
    return place


def call(batch: Batch, place: int, instruction: Instruction) -> Step:
    """CALL: the return address is in registers already."""
    through_register = any(o.registers and not is_predicate(o) for o in instruction.operands)
    if through_register:
        return indirect(batch, place, instruction)
    address = next((o.integer for o in instruction.operands if o.integer is not None), None)
    if address is None:
        return branch(batch, place, instruction)
    refuse_unknown(instruction, _FLAVOUR)

    def run(lanes: Lanes) -> bool:
        batch.flow.go(_place_of(batch, address, lanes), lanes.flags)
        return True

    return run


def leave(batch: Batch, place: int, instruction: Instruction) -> Step:
    """EXIT."""
    refuse_unknown(instruction, frozenset())

    def run(lanes: Lanes) -> bool:
        batch.flow.exit(lanes)
        return True

    return run


def code_address(batch: Batch, place: int, instruction: Instruction) -> Step:
    """LEPC, ULEPC: the address of the target, or of the instruction itself (ptxas subtracts that from a place to get a distance)."""
    target = place if all(o.displacement is None for o in instruction.operands) else target_of(place, instruction)
    written = slots(batch, instruction.operands[0].registers[0], 8)
    high, low = divmod(batch.kernel.stretches.address(target), 1 << 32)
    uniform = instruction.mnemonic == "ULEPC"

    def run(lanes: Lanes) -> None:
        for slot, word in zip(written, (low, high), strict=False):
            batch.registers.write(slot, np.full((1, 1), word, np.uint32), lanes.warps if uniform else lanes)

    return run


def stop(batch: Batch, place: int, instruction: Instruction) -> Step:
    """BPT: a trap, as assert and __trap make it."""

    def run(lanes: Lanes) -> bool:
        raise LaneError("the kernel stops itself", int(lanes.numbers[0]))

    return run


def target_of(place: int, instruction: Instruction) -> int:
    """The place that a branch names. Raises SemanticsError when it names none."""
    displacement = next((o.displacement for o in instruction.operands if o.displacement is not None), None)
    if displacement is None or displacement % INSTRUCTION_BYTES:
        raise SemanticsError(f"`{instruction.text}`: its target is not known")
    return place + displacement // INSTRUCTION_BYTES


BUILDERS: Mapping[str, Builder] = {
    "BPT": stop,
    "BRA": branch,
    "BRX": indirect,
    "BRXU": indirect,
    "CALL": call,
    "EXIT": leave,
    "LEPC": code_address,
    "ULEPC": code_address,
    "RET": indirect,
}
