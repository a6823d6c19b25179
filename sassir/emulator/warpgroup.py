"""HGMMA: the matrix product of four warps, b (and often a) in shared memory, found through a descriptor.

A descriptor is 64 bits: address / 16 in bits 0-13, leading offset / 16 in 16-29, stride offset / 16 in 32-45, swizzle in 62-63
(PTX ISA, "Matrix descriptor format" of wgmma). Layouts: the canonical ones of CUTLASS, cute/arch/mma_sm90_desc.hpp.
The product is there at once; the hardware gives it when WARPGROUP.DEPBAR has been passed.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from sassir.asm.instruction import Instruction
from sassir.asm.operand import ZERO_REGISTERS, Operand
from sassir.emulator.batch import Batch, Step
from sassir.emulator.lanes import LANES, Array, Indices, LaneError, Lanes
from sassir.emulator.memory import load
from sassir.emulator.operands import sources
from sassir.errors import SemanticsError
from sassir.isa.description import kind_of
from sassir.isa.semantics.dot import hgmma
from sassir.isa.semantics.matrix import elements, gather, left_places, result_places

_WARPS = 4
_ROWS = 16
"""Rows of the product in one warp."""
_PIECE = 16
"""Bytes that stay together, and halves that a piece holds."""
_HALVES = 8

_SWIZZLES: Mapping[int, int] = {0: 0, 1: 3, 2: 2, 3: 1}
"""Address bits 4 and up that are exclusive-ored with the bits three above them, by the field of the descriptor."""


class _Tile:
    """A matrix in shared memory: `outer` counts along m or n, `inner` along k."""

    def __init__(self, low: int, high: int) -> None:
        self._start = (low & 0x3FFF) * 16
        self._leading = (low >> 16 & 0x3FFF) * 16
        self._stride = (high & 0x3FFF) * 16
        self._bits = _SWIZZLES[high >> 30]

    def pieces(self, outer: int, inner: int, transposed: bool) -> NDArray[np.uint32]:
        """Addresses of the pieces of 8 halves: (outer, inner / 8), or with k not contiguous (inner, outer / 8)."""
        row = _PIECE << self._bits
        if transposed:
            k, group = np.mgrid[0:inner, 0 : outer // _HALVES]
            along = 1 << self._bits  # pieces of a row of the swizzle pattern
            if self._bits:
                offset = group % along * _PIECE + group // along * self._leading + k % 8 * row + k // 8 * self._stride
            else:
                offset = group * self._stride + k % 8 * _PIECE + k // 8 * self._leading
        else:
            index, group = np.mgrid[0:outer, 0 : inner // _HALVES]
            between = _PIECE if self._bits else self._leading
            offset = index % 8 * row + index // 8 * self._stride + group * between
        address = self._start + offset
        return (address ^ (address >> 3 & ((1 << self._bits) - 1) << 4)).astype(np.uint32)


class _Operands:
    """What an HGMMA instruction names."""

    def __init__(self, batch: Batch, instruction: Instruction) -> None:
        """Raises SemanticsError for a form that is not emulated."""
        self.m, self.n, self.k = _shape(instruction)
        if self.k != _ROWS or batch.warps % _WARPS:
            raise SemanticsError(f"`{instruction.text}`: only products of 16-bit factors by whole warpgroups are emulated")
        self.wide = "F32" in instruction.modifiers
        self.kind = "BF16" if "BF16" in instruction.modifiers else "F16"
        target, *operands = [o for o in instruction.operands if not o.text.startswith("gsb")]
        place = next(i for i, o in enumerate(operands) if o.template.startswith("gdesc"))
        self.descriptor = sources(batch, operands[place].registers[0], 16)
        self.left = sources(batch, operands[0].registers[0], 16) if place else None
        self.transposed = tuple([f"tnsp{side}" in operands[place].template for side in "AB"])
        words = self.n // 8 * (4 if self.wide else 2)
        self.target = sources(batch, target.registers[0], 4 * words)
        addend = operands[place + 1].registers[0]
        self.addend = None if addend in ZERO_REGISTERS else sources(batch, addend, 4 * words)
        self.condition = next((o for o in operands[place + 2 :] if kind_of(o) == "predicate"), None)


def product_step(batch: Batch, instruction: Instruction) -> Step:
    """HGMMA with 16-bit factors. Raises SemanticsError for another form."""
    named = _Operands(batch, instruction)
    registers = batch.registers

    def run(lanes: Lanes) -> None:
        warps = _warpgroups(lanes)
        addend = named.addend if _adds(batch, named.condition, lanes) else None
        descriptor = [np.broadcast_to(registers.values[slot], (lanes.flags.shape[0], 1))[warps[:, 0], 0] for slot in named.descriptor]
        if named.left is not None:
            a = _fragment(batch, named.left, lanes, warps, named.kind)
        else:
            a = _read(batch, descriptor[:2], warps, named.m, named.transposed[0], named.kind)
        b = _read(batch, descriptor[2:], warps, named.n, named.transposed[1], named.kind).swapaxes(0, 1)
        c = np.zeros((named.m, named.n, len(warps)), np.float32)
        if addend is not None:
            c = _collect(batch, addend, lanes, warps, named)
        for slot, word in zip(named.target, _deal(hgmma(instruction, batch.kernel.arch, a, b, c), named.wide), strict=True):
            value = np.zeros(lanes.flags.shape, np.uint32)
            value[warps.reshape(-1)] = word.reshape(-1, LANES)
            registers.write(slot, value, lanes)

    return run


def _shape(instruction: Instruction) -> tuple[int, int, int]:
    m, n, k = next(m for m in instruction.modifiers if m.startswith("64x")).split("x")
    return int(m), int(n), int(k)


def _warpgroups(lanes: Lanes) -> Indices:
    """The warps of each warpgroup, (groups, 4). Raises LaneError unless all their lanes take part."""
    whole = lanes.flags.all(axis=1).reshape(-1, _WARPS)
    some = lanes.flags.any(axis=1).reshape(-1, _WARPS)
    if (whole.all(axis=1) != some.any(axis=1)).any():
        raise LaneError("a product of a warpgroup needs all its lanes, but some are elsewhere", int(lanes.numbers[0]))
    return np.flatnonzero(whole).reshape(-1, _WARPS)


def _adds(batch: Batch, condition: Operand | None, lanes: Lanes) -> bool:
    """Whether the product is added to what was there."""
    if condition is None:
        return True
    slot = batch.registers.slot(condition.registers[0])
    batch.registers.check(slot, lanes)
    values = lanes.of(batch.registers.values[slot]) ^ condition.negated
    if values.any() != values.all():
        raise LaneError("warpgroups disagree on whether to add, which is not emulated", int(lanes.numbers[0]))
    return bool(values.all())


def _read(batch: Batch, descriptor: list[Array], warps: Indices, outer: int, transposed: bool, kind: str) -> Array:
    """A matrix (outer, k, groups) from shared memory, read in the name of each warpgroup's first lane."""
    tiles: list[Array] = []
    for low, high, warp in zip(*descriptor, warps[:, 0], strict=True):
        addresses = _Tile(int(low), int(high)).pieces(outer, _ROWS, transposed)
        lane = np.full(addresses.size, warp * LANES, np.intp)
        places = batch.shared.locate(addresses.reshape(-1), _PIECE, lane, "read")
        words = np.stack(load(batch.shared, places, _PIECE), axis=-1)
        halves = words.view(np.uint16).reshape(addresses.shape[0], -1)
        tiles.append(halves.T if transposed else halves)
    return elements(np.stack(tiles, axis=-1).astype(np.uint32)[None], kind, 16)[0]


def _fragment(batch: Batch, slots: list[int], lanes: Lanes, warps: Indices, kind: str) -> Array:
    """The left matrix (64, 16, groups) from registers."""
    places = left_places(_ROWS, _ROWS, 2)
    matrix = gather(elements(_words(batch, slots, lanes, warps), kind, 16), places, _ROWS, _ROWS)
    return matrix.reshape(_ROWS, _ROWS, -1, _WARPS).transpose(3, 0, 1, 2).reshape(_WARPS * _ROWS, _ROWS, -1)


def _words(batch: Batch, slots: list[int], lanes: Lanes, warps: Indices) -> Array:
    """Registers as (registers, lanes, warps)."""
    for slot in slots:
        batch.registers.check(slot, lanes)
    shape = lanes.flags.shape
    return np.stack([np.broadcast_to(batch.registers.values[slot], shape)[warps.reshape(-1)].T for slot in slots])


def _collect(batch: Batch, slots: list[int], lanes: Lanes, warps: Indices, named: _Operands) -> Array:
    """The accumulator (64, n, groups) from registers."""
    found = elements(_words(batch, slots, lanes, warps), "F16", 32 if named.wide else 16)
    blocks = found.reshape(named.n // 8, 4, LANES, -1, _WARPS).transpose(1, 2, 4, 0, 3)
    matrix = np.empty((_WARPS, _ROWS, named.n // 8, 8, len(warps)), np.float32)
    row, column = result_places(_ROWS)
    matrix[:, row, :, column, :] = blocks
    return matrix.reshape(named.m, named.n, -1)


def _deal(product: Array, wide: bool) -> list[Array]:
    """A matrix (64, n, groups) as registers, each (groups, 4 warps, lanes)."""
    n = product.shape[1]
    row, column = result_places(_ROWS)
    blocks = product.reshape(_WARPS, _ROWS, n // 8, 8, -1)[:, row, :, column, :]
    each = blocks.transpose(3, 0, 4, 2, 1).reshape(-1, product.shape[-1], _WARPS, LANES)
    if wide:
        return list(np.ascontiguousarray(each).view(np.uint32))
    halves = each.astype(np.float16).view(np.uint16).astype(np.uint32)
    return list(halves[::2] | halves[1::2] << np.uint32(16))
