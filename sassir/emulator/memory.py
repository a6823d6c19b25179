"""Global memory: buffers and module variables at distinct addresses, far enough apart that an overrun meets nothing."""

from __future__ import annotations

from bisect import bisect_right
from typing import Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from sassir.emulator.lanes import Array, Indices, LaneError
from sassir.errors import EmulationError

Access = Literal["read", "write", "update"]
"""`update` is an atomic operation."""
Bytes = NDArray[np.uint8]

GLOBAL_WINDOW = 0x7F00 << 32
"""Global memory lies in the 4 GiB from here: the high word of each of its addresses is the same."""
SHARED_WINDOW = 0x7E00 << 32
"""Generic addresses of shared memory; the low word is the address in shared memory."""
LOCAL_WINDOW = 0x7E01 << 32
"""Generic addresses of local memory."""

_FIRST = 1 << 24
"""Low word of the first address in use: no offset of an instruction (24 bits, signed) leaves the window."""
_GAP = 1 << 16
"""Bytes between two allocations that belong to nobody."""
_ALIGNMENT = 256
"""As cudaMalloc gives them."""


class HasBytes(Protocol):
    """Something that holds bytes."""

    data: Bytes


class Space(HasBytes, Protocol):
    """A memory space as a stretch of bytes."""

    def locate(self, addresses: NDArray[np.uint32], width: int, lanes: Indices, access: Access) -> Indices:
        """The places in `data` of one access of `width` bytes by each of the lanes. Raises LaneError for one that is not allowed."""
        ...


class Allocation(NamedTuple):
    """Consecutive bytes with a name."""

    name: str
    start: int
    """Low word of the address."""
    size: int

    @property
    def address(self) -> int:
        """The 64-bit address."""
        return GLOBAL_WINDOW + self.start


class GlobalMemory:
    """Allocations in the order in which they are made. Nothing else can be accessed."""

    def __init__(self) -> None:
        self.allocations: list[Allocation] = []
        self.data: Bytes = np.empty(0, np.uint8)
        self._contents: list[Bytes] = []
        self._starts: list[int] = []

    def allocate(self, name: str, content: Array) -> Allocation:
        """Room for `content`, filled with it. To be called before `fix`. Raises EmulationError when the window is full."""
        end = self.allocations[-1].start + self.allocations[-1].size + _GAP if self.allocations else _FIRST
        allocation = Allocation(name, -(-end // _ALIGNMENT) * _ALIGNMENT, content.nbytes)
        if allocation.start + allocation.size > (1 << 32) - _FIRST:
            raise EmulationError(f"{name} does not fit into the 4 GiB of emulated global memory")
        self.allocations.append(allocation)
        self._starts.append(allocation.start)
        self._contents.append(np.ascontiguousarray(content).reshape(-1).view(np.uint8))
        return allocation

    def fix(self) -> None:
        """Lay out the bytes; the index of a byte is the low word of its address (what is never touched costs no memory)."""
        last = self.allocations[-1] if self.allocations else Allocation("", _FIRST, 0)
        self.data = np.empty(-(-(last.start + last.size + _GAP) // _ALIGNMENT) * _ALIGNMENT, np.uint8)
        for allocation, content in zip(self.allocations, self._contents, strict=True):
            self.data[allocation.start : allocation.start + allocation.size] = content

    def content(self, allocation: Allocation) -> Bytes:
        """The bytes of an allocation as they are now."""
        return self.data[allocation.start : allocation.start + allocation.size]

    def fill(self, name: str, content: Array) -> None:
        """New content for an allocation of the same size."""
        allocation = next(a for a in self.allocations if a.name == name)
        self.content(allocation)[:] = np.ascontiguousarray(content).reshape(-1).view(np.uint8)

    def locate(self, addresses: NDArray[np.uint32], width: int, lanes: Indices, access: Access) -> Indices:
        """See `Space`; `addresses` are low words."""
        check_alignment(addresses, width, lanes, "global", GLOBAL_WINDOW)
        low, high = int(addresses.min()), int(addresses.max())
        place = bisect_right(self._starts, low) - 1
        allocation = self.allocations[place] if place >= 0 else Allocation("", 0, 0)
        if high + width > allocation.start + allocation.size or low < allocation.start:
            self._check_each(addresses, width, lanes, access)
        return addresses.astype(np.intp)

    def _check_each(self, addresses: NDArray[np.uint32], width: int, lanes: Indices, access: Access) -> None:
        """Lanes access several allocations, or something outside."""
        wide = addresses.astype(np.int64)
        place = np.searchsorted(np.array(self._starts, np.int64), wide, side="right") - 1
        ends = np.array([a.start + a.size for a in self.allocations] + [0], np.int64)
        outside = wide + width > ends[place]
        if outside.any():
            first = int(np.argmax(outside))
            raise LaneError(f"{access} of {width} bytes at {self.describe(GLOBAL_WINDOW + int(wide[first]))}", int(lanes[first]))

    def describe(self, address: int) -> str:
        """An address in words, by the nearest allocation."""
        low = address - GLOBAL_WINDOW
        if not 0 <= low < 1 << 32 or not self.allocations:
            return f"{address:#x}, which is not in global memory"
        allocation = self.allocations[max(0, bisect_right(self._starts, low) - 1)]
        where = f"{allocation.name}{low - allocation.start:+#x}"
        return f"{address:#x}, {where}, outside of its {allocation.size} bytes"


def check_alignment(addresses: NDArray[np.uint32], width: int, lanes: Indices, space: str, window: int = 0) -> None:
    """Raise LaneError when an address is not a multiple of `width`."""
    if width > 1 and int(np.bitwise_or.reduce(addresses)) & (width - 1):
        first = int(np.argmax(addresses & np.uint32(width - 1) != 0))
        raise LaneError(f"misaligned address {window + int(addresses[first]):#x} in {space} memory: {width} bytes wide", int(lanes[first]))


def load(space: HasBytes, places: Indices, width: int, signed: bool = False) -> list[Array]:
    """The 32-bit words at some places; a narrower value is extended to one word."""
    shift = width.bit_length() - 1
    if width < 4 and signed:
        return [space.data.view(f"i{width}")[places >> shift].astype(np.int32).view(np.uint32)]
    if width <= 4:
        return [space.data.view(f"u{width}")[places >> shift].astype(np.uint32, copy=False)]
    groups = space.data.view(np.uint32).reshape(-1, width // 4)[places >> shift]
    return [np.ascontiguousarray(groups[:, i]) for i in range(width // 4)]


def store(space: HasBytes, places: Indices, words: list[Array], width: int) -> None:
    """Write 32-bit words, or the low bits of one; the highest lane wins where several write the same place."""
    shift = width.bit_length() - 1
    if width <= 4:
        space.data.view(f"u{width}")[places >> shift] = words[0].astype(f"u{width}", copy=False)
    else:
        space.data.view(np.uint32).reshape(-1, width // 4)[places >> shift] = np.stack(words, axis=-1)
