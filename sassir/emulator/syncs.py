"""SYNCS, ARRIVES, UBLKCP: the instructions on barrier objects in shared memory, and bulk copies."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from sassir.asm.instruction import Instruction
from sassir.emulator.address import HIGH, Address, read_address
from sassir.emulator.batch import Batch, Step
from sassir.emulator.lanes import LaneError, Lanes
from sassir.emulator.mbarrier import BARRIER_BYTES, BulkCopy, form_of
from sassir.emulator.operands import slots, sources, words_of
from sassir.errors import SemanticsError

Builder = Callable[[Batch, Instruction], Step]


def _places(batch: Batch, address: Address, lanes: Lanes) -> list[tuple[int, int]]:
    """Place of the object and number of the lane, for each of the lanes."""
    places = batch.shared.place(address.low(lanes), BARRIER_BYTES, lanes.numbers, "operation on a barrier object")
    return [(int(place), int(lane)) for place, lane in zip(places, lanes.numbers, strict=True)]


def _write_pairs(batch: Batch, written: list[int], pairs: list[tuple[int, int]], lanes: Lanes) -> None:
    for slot, word in zip(written, np.array(pairs, np.uint32).T, strict=False):
        batch.registers.write(slot, lanes.expand(np.ascontiguousarray(word)), lanes)


def exchange(batch: Batch, instruction: Instruction) -> Step:
    """SYNCS.EXCH: sets up an object, once for the warp."""
    result, _, value = instruction.operands
    address = read_address(batch.registers, instruction, 1)
    written, read = slots(batch, result.registers[0], 8), sources(batch, value.registers[0], 8)

    def run(lanes: Lanes) -> None:
        some = lanes.warps
        low, high = words_of(batch, read, some)
        pairs = [batch.barriers.exchange(place, int(low[i]), int(high[i])) for i, (place, _) in enumerate(_places(batch, address, some))]
        _write_pairs(batch, written, pairs, some)

    return run


def arrive(batch: Batch, instruction: Instruction) -> Step:
    """SYNCS.ARRIVE: each lane arrives, announces transactions, or ends them."""
    known = {"ARRIVE", "TRANS64", "RED", "OPTOUT", *[m for m in instruction.modifiers if form_of((m,)) != ("1", "R") or m == "A1TR"]}
    if unknown := {*instruction.modifiers} - known:
        raise SemanticsError(f"`{instruction.text}`: the emulator does not know the modifier {min(unknown)}")
    result, _, value = instruction.operands
    address = read_address(batch.registers, instruction, 1)
    written, read = slots(batch, result.registers[0], 8), sources(batch, value.registers[0], 4)
    arrivals, transactions = form_of(instruction.modifiers)
    leaves = "OPTOUT" in instruction.modifiers

    def run(lanes: Lanes) -> None:
        (values,) = words_of(batch, read, lanes)
        pairs: list[tuple[int, int]] = []
        for (place, lane), number in zip(_places(batch, address, lanes), values.view(np.int32), strict=True):
            amount = {"0": 0, "1": 1, "R": int(number), "X": -int(number)}
            count = amount[arrivals]
            if leaves:
                batch.barriers.at(place, lane).expected -= count
            pairs.append(batch.barriers.arrive(place, lane, count, amount[transactions]))
        _write_pairs(batch, written, pairs, lanes)

    return run


def check_phase(batch: Batch, instruction: Instruction) -> Step:
    """SYNCS.PHASECHK: whether the phase whose parity is in bit 31 of the register has ended. One that has not lets others go on."""
    result, _, value = instruction.operands
    address = read_address(batch.registers, instruction, 1)
    written, read = batch.registers.slot(result.registers[0]), sources(batch, value.registers[0], 4)

    def run(lanes: Lanes) -> None:
        (parity,) = words_of(batch, read, lanes)
        asked = zip(_places(batch, address, lanes), parity >> np.uint32(31), strict=True)
        over = [batch.barriers.over(place, lane, int(phase)) for (place, lane), phase in asked]
        batch.registers.write(written, lanes.expand(np.array(over, np.bool_)), lanes)
        if not all(over):
            batch.flow.give_way()

    return run


def forget(batch: Batch, instruction: Instruction) -> Step:
    """SYNCS.CCTL.IV: ends an object."""
    address = read_address(batch.registers, instruction, 0)

    def run(lanes: Lanes) -> None:
        for place, _ in _places(batch, address, lanes.warps):
            batch.barriers.forget(place)

    return run


def arrive_after_copies(batch: Batch, instruction: Instruction) -> Step:
    """ARRIVES.LDGSTSBAR: the copies of the lane are there, and it arrives (ARVCNT) or ends a transaction (TRANSCNT)."""
    if not {*instruction.modifiers} <= {"LDGSTSBAR", "64", "ARVCNT", "TRANSCNT"}:
        raise SemanticsError(f"`{instruction.text}`: this form of ARRIVES is not known")
    address = read_address(batch.registers, instruction, 0)
    amounts = (0, -1) if "TRANSCNT" in instruction.modifiers else (1, 0)

    def run(lanes: Lanes) -> None:
        batch.copies.wait(batch.shared, lanes, -1)
        for place, lane in _places(batch, address, lanes):
            batch.barriers.arrive(place, lane, *amounts)

    return run


def bulk_copy(batch: Batch, instruction: Instruction) -> Step:
    """UBLKCP: 16-byte pieces from global to shared memory, which arrive when the barrier object is asked, or from shared to global."""
    to_shared = instruction.modifiers[:2] == ("S", "G")
    if instruction.modifiers not in (("S", "G"), ("G", "S")):
        raise SemanticsError(f"`{instruction.text}`: this form of UBLKCP is not known")
    first, second, size = [operand.registers[0] for operand in instruction.operands]
    shared, far = (first, second) if to_shared else (second, first)
    ours, theirs, length = sources(batch, shared, 8 if to_shared else 4), sources(batch, far, 8), sources(batch, size, 4)

    def copy(lane: int, start: int, barrier: int | None, address: int, pieces: int) -> None:
        offsets = np.arange(pieces, dtype=np.uint32) * np.uint32(16)
        givers = np.full(pieces, lane, np.intp)
        there = batch.memory.locate(np.uint32(address) + offsets, 16, givers, "read" if to_shared else "write")
        here = batch.shared.place(np.uint32(start) + offsets, 16, givers, "bulk copy")
        source = batch.memory.data.view(np.uint32).reshape(-1, 4)
        if barrier is None:
            source[there // 16] = batch.shared.data.view(np.uint32).reshape(-1, 4)[here // 16]
        else:
            place = int(batch.shared.place(np.array([barrier], np.uint32), BARRIER_BYTES, givers[:1], "bulk copy")[0])
            batch.barriers.at(place, lane).copies.append(BulkCopy(here, source[there // 16]))

    def run(lanes: Lanes) -> None:
        some = lanes.warps
        mine, far_words, (lengths,) = words_of(batch, ours, some), words_of(batch, theirs, some), words_of(batch, length, some)
        for i, lane in enumerate(some.numbers):
            if int(far_words[1][i]) != HIGH:
                raise LaneError("the bulk copy goes to an address that is not in global memory", int(lane))
            barrier = int(mine[1][i]) if to_shared else None
            copy(int(lane), int(mine[0][i]), barrier, int(far_words[0][i]), int(lengths[i]))

    return run


def syncs(batch: Batch, instruction: Instruction) -> Step:
    """SYNCS by its first modifier. Raises SemanticsError for one that is not known."""
    operation = instruction.modifiers[0] if instruction.modifiers else ""
    if operation not in _SYNCS:
        raise SemanticsError(f"`{instruction.text}`: this operation on barrier objects is not emulated")
    return _SYNCS[operation](batch, instruction)


_SYNCS: Mapping[str, Builder] = {"ARRIVE": arrive, "CCTL": forget, "EXCH": exchange, "PHASECHK": check_phase}
