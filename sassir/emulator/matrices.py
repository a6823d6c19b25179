"""LDSM and STSM: 8 × 8 matrices of 16-bit elements between shared memory and the registers of a warp.

Lane 8 k + r gives the address of row r of matrix k (16 bytes). In registers, lane l holds elements 2 (l mod 4) and the next one
of row l / 4; with MT88 the matrix is transposed on the way. (PTX ISA, ldmatrix and stmatrix.)
"""

from __future__ import annotations

import numpy as np

from sassir.asm.instruction import Instruction
from sassir.emulator.address import Address, read_address
from sassir.emulator.batch import Batch, Step
from sassir.emulator.lanes import LANES, Array, Indices, LaneError, Lanes
from sassir.emulator.memory import Access, load, store
from sassir.emulator.operands import expect, slots, sources

_ROW_BYTES = 16
_ROWS = 8
_MODIFIERS = frozenset({"16", "M88", "MT88", "2", "4"})


def load_matrices(batch: Batch, instruction: Instruction) -> Step:
    """LDSM. Raises SemanticsError for a form that is not known."""
    expect(instruction, ("vector", "address"), _MODIFIERS)
    count, transposed = _count(instruction), "MT88" in instruction.modifiers
    address = read_address(batch.registers, instruction, 1)
    written = slots(batch, instruction.operands[0].registers[0], 4 * count)

    def run(lanes: Lanes) -> None:
        places = _rows(batch, address, lanes, count, "read")
        rows = np.stack(load(batch.shared, places, _ROW_BYTES), axis=-1).reshape(-1, count, _ROWS, 4)
        matrices = _transpose(rows) if transposed else rows
        for k, slot in enumerate(written):
            batch.registers.write(slot, _expand(matrices[:, k].reshape(-1, LANES), lanes), lanes)

    return run


def store_matrices(batch: Batch, instruction: Instruction) -> Step:
    """STSM. Raises SemanticsError for a form that is not known."""
    expect(instruction, ("address", "vector"), _MODIFIERS)
    count, transposed = _count(instruction), "MT88" in instruction.modifiers
    address = read_address(batch.registers, instruction, 0)
    read = sources(batch, instruction.operands[1].registers[0], 4 * count)

    def run(lanes: Lanes) -> None:
        places = _rows(batch, address, lanes, count, "write")
        for slot in read:
            batch.registers.check(slot, lanes)
        matrices = np.stack([lanes.of(batch.registers.values[slot]).reshape(-1, _ROWS, 4) for slot in read], axis=1)
        rows = (_transpose(matrices) if transposed else matrices).reshape(-1, 4)
        store(batch.shared, places, [np.ascontiguousarray(rows[:, i]) for i in range(4)], _ROW_BYTES)

    return run


def _count(instruction: Instruction) -> int:
    return next((int(m) for m in instruction.modifiers if m in ("2", "4")), 1)


def _rows(batch: Batch, address: Address, lanes: Lanes, count: int, access: Access) -> Indices:
    """The places of all rows, warp after warp, matrix after matrix. Raises LaneError unless whole warps take part."""
    if lanes.count != LANES * int(np.count_nonzero(lanes.warps.flags)):
        raise LaneError("matrices are moved by whole warps, but some lanes are elsewhere", int(lanes.numbers[0]))
    addresses = address.low(lanes).reshape(-1, LANES)[:, : _ROWS * count].reshape(-1)
    givers = lanes.indices.reshape(-1, LANES)[:, : _ROWS * count].reshape(-1)
    return batch.shared.locate(np.ascontiguousarray(addresses), _ROW_BYTES, givers, access)


def _transpose(matrices: Array) -> Array:
    """Matrices as (…, 8 rows, 4 words), transposed as 8 × 8 halves."""
    halves = np.ascontiguousarray(matrices).view(np.uint16).reshape(*matrices.shape[:-1], 8)
    return np.ascontiguousarray(halves.swapaxes(-1, -2)).view(np.uint32)


def _expand(values: Array, lanes: Lanes) -> Array:
    return lanes.expand(np.ascontiguousarray(values).reshape(-1))
