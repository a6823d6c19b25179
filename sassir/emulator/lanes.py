"""Sets of lanes."""

from __future__ import annotations

from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

LANES = 32
"""Lanes of a warp. Arrays over lanes have the shape (warps, 32), or one that broadcasts to it."""

Array: TypeAlias = NDArray[Any]
"""`uint32`, or `bool` for predicates."""
Flags: TypeAlias = NDArray[np.bool_]
Indices: TypeAlias = NDArray[np.intp]


class LaneError(Exception):
    """Something wrong in one lane; whoever runs the instruction says which one that is."""

    def __init__(self, message: str, lane: int | None = None) -> None:
        super().__init__(message)
        self.lane = lane
        """Index of the lane in the batch; None if the fault is of no particular lane."""


class SuspicionError(LaneError):
    """Something that is wrong in a correct kernel, but does not keep it from going on."""


class Lanes:
    """A set of lanes; never changed, so that what follows from it is computed once."""

    def __init__(self, flags: Flags, full: bool = False) -> None:
        self.flags = flags
        """Which lanes are in, shape (warps, 32)."""
        self.full = full
        """All lanes that still run are in: what the others' registers hold does not matter."""

    @cached_property
    def count(self) -> int:
        """How many are in."""
        return int(np.count_nonzero(self.flags))

    @cached_property
    def words(self) -> NDArray[np.uint32]:
        """All bits set for the lanes that are in."""
        return np.negative(self.flags.astype(np.uint32))

    @cached_property
    def indices(self) -> Indices:
        """The lanes that are in, in order."""
        return np.flatnonzero(self.flags)

    @cached_property
    def numbers(self) -> Indices:
        """The number in the batch of each lane that is in; of a warp, that of its first lane."""
        return self.indices * (LANES // self.flags.shape[1])

    @cached_property
    def warps(self) -> Lanes:
        """The warps with at least one of the lanes, shape (warps, 1): for uniform registers."""
        return Lanes(np.logical_or.reduce(self.flags, axis=1, keepdims=True), self.full)

    def where(self, flags: Flags) -> Lanes:
        """The lanes that are also in `flags`, whose shape broadcasts."""
        return Lanes(self.flags & flags)

    def of(self, value: Array) -> Array:
        """The elements of `value` in the lanes that are in, in order."""
        every = np.broadcast_to(value, self.flags.shape).reshape(-1)
        return every if self.count == every.size else every[self.indices]

    def expand(self, values: Array) -> Array:
        """One element a lane that is in, put in its place; the elements of the other lanes mean nothing."""
        if self.count == self.flags.size:
            return values.reshape(self.flags.shape)
        every = np.empty(self.flags.shape, values.dtype)
        every.reshape(-1)[self.indices] = values
        return every
