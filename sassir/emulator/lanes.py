"""Sets of lanes, and the registers that every lane or warp has."""

from __future__ import annotations

from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sassir.asm.operand import register_file

LANES = 32
"""Lanes of a warp. Arrays over lanes have the shape (warps, 32), or one that broadcasts to it."""

Array: TypeAlias = NDArray[Any]
"""`uint32`, or `bool` for predicates."""
Flags: TypeAlias = NDArray[np.bool_]
Indices: TypeAlias = NDArray[np.intp]

UNDEFINED = 0xCDCDCDCD
"""What a register holds that nothing has written."""


class LaneError(Exception):
    """Something wrong in one lane; whoever runs the instruction adds which one it is."""

    def __init__(self, message: str, lane: int | None = None) -> None:
        super().__init__(message)
        self.lane = lane
        """Index of the lane in the batch; None if the fault is of no particular lane."""


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
        return Lanes(self.flags.any(axis=1, keepdims=True), self.full)

    def where(self, flags: Flags) -> Lanes:
        """The lanes that are also in `flags`, whose shape broadcasts."""
        both: Flags = self.flags & flags  # type: ignore[assignment]
        return Lanes(both)

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


class Registers:
    """The registers of a batch of warps, by slot. A value is never changed in place: it is replaced by a new array."""

    def __init__(self, strict: bool) -> None:
        """`strict`: it is a fault to read what was never written."""
        self.strict = strict
        self.names: list[str] = []
        self.values: list[Array] = []
        self.defined: list[Flags | bool] = []
        """Where a register has been written: everywhere, nowhere, or by lane."""
        self._slots: dict[str, int] = {}
        self._pinned: set[int] = set()
        for name, value in _ZERO.items():
            self.pin(name, value)

    def slot(self, name: str) -> int:
        """The number of a register, or of anything else with a name that is read like one."""
        if name not in self._slots:
            self._slots[name] = len(self.names)
            self.names.append(name)
            self.values.append(_initial(name))
            self.defined.append(False)
        return self._slots[name]

    def pin(self, name: str, value: Array) -> int:
        """A slot that always has this value."""
        slot = self.slot(name)
        self._pinned.add(slot)
        self.set(slot, value)
        return slot

    def reset(self) -> None:
        """Forget everything that was written."""
        for name, slot in self._slots.items():
            if slot not in self._pinned:
                self.values[slot] = _initial(name)
                self.defined[slot] = False

    def set(self, slot: int, value: Array) -> None:
        """Give all lanes a value."""
        self.values[slot] = value
        self.defined[slot] = True

    def write(self, slot: int, value: Array, lanes: Lanes) -> None:
        """Give `lanes` a value; the others keep theirs."""
        if lanes.full:
            self.values[slot] = value
            self.defined[slot] = True
            return
        old = self.values[slot]
        self.values[slot] = old ^ ((old ^ value) & (lanes.flags if value.dtype == np.bool_ else lanes.words))
        defined = self.defined[slot]
        if defined is not True:
            now = lanes.flags | defined
            self.defined[slot] = True if now.all() else now

    def check(self, slot: int, lanes: Lanes) -> None:
        """Raise LaneError if one of the lanes reads what it has not written."""
        if self.defined[slot] is True or not self.strict:
            return
        missing = lanes.where(np.logical_not(self.defined[slot]))
        if missing.count:
            name = self.names[slot]
            reason = "its value is not known to the emulator" if name.startswith(("c[", "SR")) else "it was never written"
            raise LaneError(f"{name} is read, but {reason}", int(missing.numbers[0]))


_ZERO: dict[str, Array] = {
    "RZ": np.zeros((1, 1), np.uint32),
    "URZ": np.zeros((1, 1), np.uint32),
    "PT": np.ones((1, 1), np.bool_),
    "UPT": np.ones((1, 1), np.bool_),
}


def _initial(name: str) -> Array:
    if register_file(name) in ("P", "UP"):
        return np.zeros((1, 1), np.bool_)
    return np.full((1, 1), UNDEFINED, np.uint32)
