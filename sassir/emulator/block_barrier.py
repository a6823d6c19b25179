"""The warps of a block wait for each other: BAR, with its votes, and B2R."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sassir.asm.instruction import Instruction
from sassir.asm.operand import Operand
from sassir.emulator.batch import Batch, Step
from sassir.emulator.control import Builder, is_predicate, refuse_unknown
from sassir.emulator.lanes import LaneError, Lanes
from sassir.errors import SemanticsError

_VOTES = ("POPC", "AND", "OR")


def barrier(batch: Batch, place: int, instruction: Instruction) -> Step:
    """BAR.SYNC, BAR.ARV and BAR.RED, with or without the number of threads. Raises SemanticsError for other forms."""
    refuse_unknown(instruction, frozenset({"SYNC", "ARV", "RED", "DEFER_BLOCKING", *_VOTES}))
    numbers = [o for o in instruction.operands if not is_predicate(o)]
    packed = len(numbers) == 2 and numbers[0].registers == numbers[1].registers != ()
    if not 1 <= len(numbers) <= 2:
        raise SemanticsError(f"`{instruction.text}`: this form of BAR is not emulated")
    waits = "ARV" not in instruction.modifiers
    vote = next((m for m in instruction.modifiers if m in _VOTES), None)
    voter = next((o for o in instruction.operands if is_predicate(o)), None) if vote else None

    def run(lanes: Lanes) -> bool:
        number, *count = [_same(batch, operand, lanes) for operand in numbers]
        if packed:  # one register for both: the number below, the count from bit 16 on
            number, count = number & 15, [number >> 16 & 0xFFF]
        counts = np.full(batch.flow.blocks, count[0], np.int64) if count else None
        if not waits:
            batch.flow.arrive_at_block(number, lanes, counts)
            return False
        if voter is not None:
            batch.registers.check(batch.registers.slot(voter.registers[0]), lanes)
            value = batch.registers.values[batch.registers.slot(voter.registers[0])]
            batch.flow.vote(number, vote or "", lanes, ~value if voter.negated else value)
        return batch.flow.wait_for_block(number, place + 1, lanes, counts)

    return run


def _same(batch: Batch, operand: Operand, lanes: Lanes) -> int:
    """The value of an operand, which all lanes must agree on."""
    if operand.integer is not None:
        return operand.integer
    slot = batch.registers.slot(operand.registers[0])
    batch.registers.check(slot, lanes)
    values = lanes.of(batch.registers.values[slot])
    if (values != values[0]).any():
        raise LaneError(f"{operand.registers[0]} holds different barriers or counts in lanes that arrive together", int(lanes.numbers[0]))
    return int(values[0])


def result(batch: Batch, place: int, instruction: Instruction) -> Step:
    """B2R.RESULT: the number of the votes, and whether the vote holds. Raises SemanticsError for other forms."""
    refuse_unknown(instruction, frozenset({"RESULT"}))
    registers = batch.registers
    targets = [(registers.slot(o.registers[0]), is_predicate(o)) for o in instruction.operands if o.text not in ("RZ", "PT")]

    def run(lanes: Lanes) -> None:
        number = np.repeat(batch.flow.votes, batch.warps).reshape(-1, 1)
        for slot, flag in targets:
            registers.write(slot, number > 0 if flag else number.astype(np.uint32), lanes)

    return run


BUILDERS: Mapping[str, Builder] = {"B2R": result, "BAR": barrier}
