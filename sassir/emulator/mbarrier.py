"""Barrier objects in shared memory (mbarrier), and the bulk copies that complete on them.

The 64 bits of a barrier, as nvcc 13.0 sets up (init), hands out (arrive) and takes apart (pending_count): bit 63 is the phase,
bits 43 to 62 are 2^20 minus the arrivals still pending, bits 1 to 20 are 2^20 minus the arrivals of a whole phase.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from sassir.emulator.lanes import Array, Indices, LaneError

if TYPE_CHECKING:
    from sassir.emulator.batch import Batch

_COUNT = 1 << 20
BARRIER_BYTES = 8

_FORM = re.compile(r"A([01R])T([01RX])")


@dataclass
class BulkCopy:
    """Bytes on their way to shared memory."""

    places: Indices
    """Of the 16-byte pieces."""
    pieces: Array


@dataclass
class Barrier:
    """One barrier object."""

    expected: int
    """Arrivals of a phase."""
    pending: int
    """Arrivals that are missing."""
    bytes: int = 0
    """Transactions that are announced and not there yet (negative: there, but not announced)."""
    phase: int = 0
    copies: list[BulkCopy] = field(default_factory=list[BulkCopy])

    def token(self) -> tuple[int, int]:
        """What an arrival gets: the low and the high word of the object."""
        value = self.phase << 63 | (_COUNT - self.pending) % _COUNT << 43 | (_COUNT - self.expected) % _COUNT << 1
        return value & 0xFFFFFFFF, value >> 32

    def arrive(self, count: int, transactions: int) -> bool:
        """Whether that ends the phase."""
        self.bytes += transactions
        self.pending -= count
        return self.settle()

    def settle(self) -> bool:
        """End the phase if nothing is missing."""
        if self.pending or self.bytes:
            return False
        self.phase ^= 1
        self.pending = self.expected
        return True


class Barriers:
    """The barrier objects of a batch, by their place in shared memory."""

    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        self._objects: dict[int, Barrier] = {}

    def exchange(self, place: int, low: int, high: int) -> tuple[int, int]:
        """Set up an object from its 64 bits; what was there before."""
        before = self._objects[place].token() if place in self._objects else (0, 0)
        count = (_COUNT - (low >> 1)) % _COUNT
        self._objects[place] = Barrier(count, count)
        self._batch.shared.initialise(np.array([place]), BARRIER_BYTES)
        return before

    def forget(self, place: int) -> None:
        """The memory is ordinary memory again."""
        self._objects.pop(place, None)

    def at(self, place: int, lane: int) -> Barrier:
        """The object at a place. Raises LaneError when none was set up there."""
        if place not in self._objects:
            raise LaneError("there is no barrier object at this address: it was never initialised", lane)
        return self._objects[place]

    def arrive(self, place: int, lane: int, count: int, transactions: int) -> tuple[int, int]:
        """Arrivals of one lane; its token. Raises LaneError when more arrive than are expected."""
        barrier = self.at(place, lane)
        if count > barrier.pending:
            raise LaneError(f"{count} arrivals at a barrier object that waits for {barrier.pending}", lane)
        token = barrier.token()
        if barrier.arrive(count, transactions):
            self._batch.pass_barrier(lane)
        return token

    def over(self, place: int, lane: int, parity: int) -> bool:
        """Whether the phase of that parity has ended; bulk copies under way arrive now."""
        barrier = self.at(place, lane)
        copies, barrier.copies = barrier.copies, []
        for copy in copies:
            self._batch.shared.data.view(np.uint32).reshape(-1, 4)[copy.places // 16] = copy.pieces
            self._batch.shared.initialise(copy.places, 16)
            barrier.bytes -= copy.pieces.nbytes
        if copies and barrier.settle():
            self._batch.pass_barrier(lane)
        return barrier.phase != parity


def form_of(modifiers: tuple[str, ...]) -> tuple[str, str]:
    """Where SYNCS.ARRIVE has its arrivals and its transactions from: `0`, `1`, `R` the register, `X` the register, negative."""
    found = next((match for modifier in modifiers if (match := _FORM.fullmatch(modifier))), None)
    return (found[1], found[2]) if found else ("1", "R")
