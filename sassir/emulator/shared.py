"""Shared memory of a batch of blocks, with a record of who touched what: reads before any write, and races.

A race is an access by one warp to what another warp of its block has written, or a write to what another has read, with no
barrier of the block in between (a barrier for a part of it counts). Within a warp the order is the program's. Atomic operations
do not race with each other, nor with reads: compare-and-swap loops begin with a plain one. Barriers are the only order between
warps, as in Li and Gopalakrishnan, Scalable SMT-based verification of GPU kernel functions (FSE 2010).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sassir.emulator.lanes import LANES, Flags, Indices, LaneError
from sassir.emulator.memory import Access, Bytes, check_alignment
from sassir.launch.data import POISON

Stamps = NDArray[np.int64]
"""Interval and warp of an access: 64 * interval + warp."""

_SEVERAL, _ATOMIC = LANES, LANES + 1
"""In the place of a warp: more than one warp, and an atomic operation. A block has at most 32 warps."""
_INTERVAL = 64
_NEVER, _BEFORE = -1, 0
"""Not accessed; and accessed before the first interval, which is number 1."""


class SharedMemory:
    """One block behind the other."""

    def __init__(self, blocks: int, warps: int, size: int, granule: int, check_races: bool) -> None:
        """`size` in bytes a block; `warps` a block; `granule`: bytes of the narrowest access of the kernel."""
        self._size = size
        self._granule = granule
        self._check_races = check_races
        self._stride = -(-size // 16) * 16
        self.data: Bytes = np.full(blocks * self._stride, POISON, np.uint8)
        lanes = np.arange(blocks * warps * LANES)
        self._block: Indices = lanes // (warps * LANES)
        self._base: Indices = self._block * self._stride
        self._warp: Stamps = lanes // LANES % warps
        self._interval = np.full(blocks, _INTERVAL, np.int64)
        self._written = np.full(len(self.data) // granule, _NEVER, np.int64)
        self._read = np.full(len(self.data) // granule, _NEVER, np.int64)

    def next_interval(self, blocks: Flags) -> None:
        """These blocks have passed a barrier."""
        self._interval[blocks] += _INTERVAL

    def locate(self, addresses: NDArray[np.uint32], width: int, lanes: Indices, access: Access) -> Indices:
        """See `Space`."""
        places = self.place(addresses, width, lanes, access)
        for part in range(max(1, width // self._granule)):
            self._observe(places // self._granule + part, lanes, access)
        return places

    def place(self, addresses: NDArray[np.uint32], width: int, lanes: Indices, access: str) -> Indices:
        """Like `locate`, without a look at the order of accesses: for asynchronous copies and barrier objects."""
        check_alignment(addresses, width, lanes, "shared")
        if int(addresses.max()) + width > self._size:
            first = int(np.argmax(addresses.astype(np.int64) + width > self._size))
            where = f"{int(addresses[first]):#x} in shared memory of {self._size} bytes"
            raise LaneError(f"{access} of {width} bytes at {where}", int(lanes[first]))
        return addresses + self._base[lanes]

    def initialise(self, places: Indices, width: int) -> None:
        """Bytes that were written by no lane but are there, and ordered before whatever follows."""
        for part in range(max(1, width // self._granule)):
            self._written[places // self._granule + part] = _BEFORE

    def _observe(self, granules: Indices, lanes: Indices, access: Access) -> None:
        """Check one access against the record, then add it."""
        written = self._written[granules]
        if access != "write" and (written == _NEVER).any():
            first = int(np.argmax(written == _NEVER))
            raise LaneError(f"shared memory at {self._address(granules[first])} is read, but was never written", int(lanes[first]))
        if not self._check_races:
            self._written[granules] = np.maximum(written, _BEFORE)
            return
        start = self._interval[self._block[lanes]]
        stamp = start + self._warp[lanes]
        racing = (written >= start) & (written != stamp)
        if access != "write":
            racing &= written != start + _ATOMIC
        self._refuse(racing, written, granules, lanes, access, "wrote")
        if access == "read":
            self._record_read(granules, start, stamp)
            return
        if access == "update":
            self._written[granules] = start + _ATOMIC
            return
        read = self._read[granules]
        self._refuse((read >= start) & (read != stamp), read, granules, lanes, access, "read")
        self._written[granules] = stamp
        last = self._written[granules]
        self._refuse(last != stamp, last, granules, lanes, access, "writes, too,")

    def _record_read(self, granules: Indices, start: Stamps, stamp: Stamps) -> None:
        before = self._read[granules]
        several = (before >= start) & (before != stamp)
        self._read[granules] = np.where(several, start + _SEVERAL, stamp)
        lost = self._read[granules] != stamp  # lanes of other warps read the same place at the same time
        self._read[granules[lost]] = (start + _SEVERAL)[lost]

    def _refuse(self, racing: Flags, record: Stamps, granules: Indices, lanes: Indices, access: Access, did: str) -> None:
        if not racing.any():
            return
        first = int(np.argmax(racing))
        other = int(record[first]) % _INTERVAL
        who = {_SEVERAL: "several warps", _ATOMIC: "an atomic operation"}.get(other, f"warp {other}")
        place = f"shared memory at {self._address(granules[first])}"
        message = f"race: {access} of {place} by warp {int(self._warp[lanes[first]])}, which {who} {did} with no barrier in between"
        raise LaneError(message, int(lanes[first]))

    def _address(self, granule: np.intp) -> str:
        return f"{int(granule) * self._granule % self._stride:#x}"
