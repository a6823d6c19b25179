"""What accesses of warps cost: passes through the load/store unit, sectors that the first-level cache does not have.

Addresses are those of single lanes, each with the number of its warp.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sassir.machine.hierarchy import LINE, SECTOR
from sassir.timing.profile import LANES, Traffic, access_bytes

BANKS, WORD = 32, 4
_CHUNK = 16
"""Logarithm of the sectors whose times are kept in one array."""
_NEVER = -(1 << 40)
_LOCAL = 1 << 36
"""Where local memory lies for the cache, as a sector."""
_ATOMICS = frozenset({"ATOM", "ATOMG", "ATOMS", "RED", "REDG"})
_STORES = frozenset({"ST", "STG", "STL", "STS"})
Numbers = NDArray[np.int64]


class Access(NamedTuple):
    """What one memory instruction does."""

    width: int
    """Bytes of one lane."""
    stores: bool
    atomic: bool


def access_of(mnemonic: str, modifiers: Sequence[str]) -> Access:
    """What the instruction of that name does."""
    return Access(access_bytes(modifiers), mnemonic in _STORES | _ATOMICS, mnemonic in _ATOMICS)


class Moves:
    """What one memory instruction did in all executions."""

    def __init__(self) -> None:
        self.passes = self.sectors = self.missed = 0
        self.by_buffer: dict[int, int] = {}
        """Sectors that went to the second level, by buffer; the complement of its number for writes."""

    def traffic(self, executions: float, shares: Mapping[int, float]) -> Traffic:
        """On average; `shares` as `memory_shares` gives them."""
        memory = sum([count * shares.get(buffer, 0.0) for buffer, count in self.by_buffer.items()])
        memory_share = memory / self.sectors if self.sectors else 0.0
        return Traffic(self.passes / executions, self.sectors / executions, self.missed / executions, memory_share)


class Cache:
    """A first-level cache for one block, which keeps the sectors that were used last."""

    def __init__(self, size: int) -> None:
        self.capacity = size // SECTOR
        self._seen: dict[int, Numbers] = {}
        """By the upper part of the number of a sector: when each sector was used, counted in sectors that came."""
        self._clock = 0

    def misses(self, sectors: Numbers) -> NDArray[np.bool_]:
        """Which of the sectors, each named once and in order, are not there; they come."""
        missed = np.zeros(sectors.size, np.bool_)
        chunks = sectors >> _CHUNK
        oldest = self._clock - self.capacity
        for chunk in np.unique(chunks).tolist():
            here = chunks == chunk
            if chunk not in self._seen:
                self._seen[chunk] = np.full(1 << _CHUNK, _NEVER, np.int64)
            seen = self._seen[chunk]
            places = sectors[here] & (1 << _CHUNK) - 1
            missed[here] = seen[places] < oldest
            seen[places] = self._clock + 1
        self._clock += int(np.count_nonzero(missed))
        return missed


def move_global(moves: Moves, cache: Cache, access: Access, warps: Numbers, addresses: Numbers, starts: Numbers) -> None:
    """An access to global memory, in which buffers begin at `starts`. Stores are written through; atomics on one sector take turns."""
    moves.passes += _lines(warps, addresses, access.width)
    owners, sectors = _distinct(warps, addresses // SECTOR)
    once, first = np.unique(sectors, return_index=True)
    fresh = cache.misses(once)
    went = sectors if access.stores else once[fresh]
    moves.missed += int(np.unique(warps if access.stores else owners[first[fresh]]).size)
    moves.sectors += went.size
    if access.atomic:
        moves.passes += addresses.size - sectors.size
    buffers, counts = np.unique(np.searchsorted(starts, went * SECTOR, side="right") - 1, return_counts=True)
    for buffer, count in zip(buffers.tolist(), counts.tolist(), strict=True):
        key = ~buffer if access.stores else buffer
        moves.by_buffer[key] = moves.by_buffer.get(key, 0) + count


def move_local(moves: Moves, cache: Cache, access: Access, warps: Numbers, addresses: Numbers, lanes: Numbers, count: int) -> None:
    """An access to local memory of `count` warps, whose words lie so that those of a warp at one address are a line."""
    places = (addresses // WORD * count + warps) * LINE + lanes * WORD
    moves.passes += _lines(warps, places, access.width)
    owners, sectors = _distinct(warps, places // SECTOR + _LOCAL)
    fresh = cache.misses(sectors)
    moves.missed += int(np.unique(owners[fresh]).size)
    moves.sectors += int(np.count_nonzero(fresh))


def move_shared(moves: Moves, access: Access, warps: Numbers, addresses: Numbers) -> None:
    """An access to shared memory: different words of a bank go one after the other, and so do atomics on one word."""
    words = np.concatenate([addresses // WORD + k for k in range(max(1, access.width // WORD))])
    owners = np.tile(warps, max(1, access.width // WORD))
    if not access.atomic:
        owners, words = _distinct(owners, words)
    ends, number = np.unique(owners, return_inverse=True)
    depth = np.bincount(number * BANKS + words % BANKS, minlength=ends.size * BANKS).reshape(-1, BANKS).max(axis=1)
    active = np.bincount(np.searchsorted(ends, warps), minlength=ends.size)
    moves.passes += int(np.maximum(depth, -(-active * access.width // LINE)).sum())


def move_constant(moves: Moves, warps: Numbers, addresses: Numbers) -> None:
    """A load from constant memory, one address of a warp after the other."""
    moves.passes += _distinct(warps, addresses)[0].size


def memory_shares(moves: Iterable[Moves], sizes: Sequence[float], scale: float) -> dict[int, float]:
    """By buffer, the share of its sectors that memory delivers or takes, if all blocks move `scale` times as much.

    The second level keeps what came once, so memory sees each of the `sizes` bytes once.
    """
    total: dict[int, float] = {}
    for move in moves:
        for buffer, sectors in move.by_buffer.items():
            total[buffer] = total.get(buffer, 0.0) + sectors * SECTOR * scale
    return {buffer: min(1.0, sizes[max(buffer, ~buffer)] / count) for buffer, count in total.items() if count}


def _lines(warps: Numbers, addresses: Numbers, width: int) -> int:
    """Passes for whole lines: as many as there are, and as the data need."""
    return max(_distinct(warps, addresses // LINE)[0].size, math.ceil(addresses.size * width / (LANES * WORD)))


def _distinct(warps: Numbers, places: Numbers) -> tuple[Numbers, Numbers]:
    """Each pair of a warp and a place once."""
    pairs = np.unique(warps << 40 | places)
    return pairs >> 40, pairs & (1 << 40) - 1
