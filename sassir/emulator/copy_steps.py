"""LDGSTS, LDGDEPBAR and DEPBAR: asynchronous copies to shared memory, and waiting for them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sassir.asm.instruction import Instruction
from sassir.emulator.address import read_address
from sassir.emulator.batch import Batch, Step, access_width
from sassir.emulator.lanes import Array, Lanes
from sassir.emulator.memory import load
from sassir.emulator.operands import expect
from sassir.errors import SemanticsError

_WITHOUT_EFFECT = frozenset({"128", "64", "ACCESS", "BYPASS", "CONSTANT", "E", "EF", "EL", "LTC128B", "LTC256B", "LTC64B", "ZFILL"})


def copy_step(batch: Batch, instruction: Instruction) -> Step:
    """LDGSTS. Where the predicate behind the addresses does not hold, zeros are written; with ZFILL the low bits of the global
    address tell how many of the last bytes become zero. Raises SemanticsError for a form that is not known."""
    predicate = instruction.operands[2] if len(instruction.operands) == 3 else None
    expect(instruction, ("address", "address", "predicate")[: len(instruction.operands)], _WITHOUT_EFFECT)
    width = access_width(instruction.modifiers)
    target, source = read_address(batch.registers, instruction, 0), read_address(batch.registers, instruction, 1)
    registers = batch.registers
    slot = registers.slot(predicate.registers[0] if predicate is not None else "PT")
    negated = predicate is not None and predicate.negated
    fill = "ZFILL" in instruction.modifiers

    def run(lanes: Lanes) -> None:
        registers.check(slot, lanes)
        chosen = registers.values[slot]
        some = lanes.where(~chosen if negated else chosen)
        addresses = source.global_low(some) if some.count else np.zeros(0, np.uint32)
        missing = addresses & np.uint32(width - 1) if fill else np.zeros_like(addresses)
        words = [np.zeros(lanes.count, np.uint32) for _ in range(width // 4)]
        if some.count:
            places = batch.memory.locate(addresses - missing, width, some.indices, "read")
            here = some.flags.reshape(-1)[lanes.indices]
            for word, found in zip(words, _cut(load(batch.memory, places, width), width - missing.astype(np.int64)), strict=True):
                word[here] = found
        batch.copies.add(lanes.indices, target.low(lanes), words)

    return run


def _cut(words: list[Array], length: NDArray[np.int64]) -> list[Array]:
    """Only the first `length` bytes, zeros behind them."""
    kept = [np.clip(length - 4 * i, 0, 4) for i in range(len(words))]
    masks = [((np.uint64(1) << (8 * k).astype(np.uint64)) - np.uint64(1)).astype(np.uint32) for k in kept]
    return [word & mask for word, mask in zip(words, masks, strict=True)]


def close_step(batch: Batch, instruction: Instruction) -> Step:
    """LDGDEPBAR."""
    return lambda lanes: batch.copies.close_group(lanes)


def wait_step(batch: Batch, instruction: Instruction) -> Step:
    """DEPBAR: waits for copies if its scoreboard is one that closes groups; other scoreboards order registers, which is given here."""
    if not instruction.operands:
        return lambda lanes: None
    scoreboard, *rest = instruction.operands
    count = rest[0].integer if rest else 0
    if count is None or not scoreboard.text.startswith("SB"):
        raise SemanticsError(f"`{instruction.text}`: this form of DEPBAR is not known")
    if int(scoreboard.text.removeprefix("SB")) not in batch.copy_scoreboards:
        return lambda lanes: None
    return lambda lanes: batch.copies.wait(batch.shared, lanes, count)
