"""Local memory: the stacks of a batch of threads."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sassir.emulator.lanes import Indices, LaneError, SuspicionError
from sassir.emulator.memory import Access, Bytes, check_alignment
from sassir.launch.data import POISON

STACK_TOP = 0x00FFFDC0
"""What the driver lets the stack pointer start at is not documented; any multiple of 64 below 16 MiB does."""


class LocalMemory:
    """One thread behind the other; each stack ends below `STACK_TOP`."""

    def __init__(self, threads: int, size: int, granule: int) -> None:
        """`size` in bytes a thread; `granule`: bytes of the narrowest access of the kernel."""
        self._size = -(-size // 16) * 16
        self.strict = True
        """Whether it is refused to read what was never written."""
        self._granule = granule
        self.data: Bytes = np.full(threads * self._size, POISON, np.uint8)
        self._written = np.zeros(len(self.data) // granule, np.bool_)

    @property
    def lowest(self) -> int:
        """The lowest address of each stack. A kernel that ptxas did not optimise traps where its stack pointer is below SR_LMEMHIOFF."""
        return STACK_TOP - self._size

    def locate(self, addresses: NDArray[np.uint32], width: int, lanes: Indices, access: Access) -> Indices:
        """See `Space`."""
        check_alignment(addresses, width, lanes, "local")
        depth = STACK_TOP - addresses.astype(np.int64)
        outside = (depth < width) | (depth > self._size)
        if outside.any():
            first = int(np.argmax(outside))
            where = f"{int(addresses[first]):#x}, {int(depth[first]):#x} below the top of a stack of {self._size} bytes"
            raise LaneError(f"{access} of {width} bytes of local memory at {where}", int(lanes[first]))
        places = (lanes + 1) * self._size - depth
        for part in range(max(1, width // self._granule)):
            granules = places // self._granule + part
            if access == "write":
                self._written[granules] = True
            elif self.strict and not self._written[granules].all():
                first = int(np.argmin(self._written[granules]))
                raise SuspicionError(f"local memory at {int(addresses[first]):#x} is read, but was never written", int(lanes[first]))
        return places
