"""Shared memory of a batch of blocks, with a record of who touched what: reads before any write, and races.

A race is an access by one warp to what another warp of its block has written, or a write to what another has read, with no
barrier of the block in between (a barrier for a part of it counts). Within a warp the order is the program's. Atomic operations
do not race with each other, nor with reads: compare-and-swap loops begin with a plain one. Barriers are the only order between
warps, as in Li and Gopalakrishnan, Scalable SMT-based verification of GPU kernel functions (FSE 2010).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sassir.emulator.lanes import LANES, Flags, Indices, LaneError, SuspicionError
from sassir.emulator.memory import Access, Bytes, check_alignment
from sassir.launch.data import POISON

Stamps = NDArray[np.int64]
"""Interval and warp of an access: 64 * interval + warp."""

_SEVERAL, _ATOMIC = LANES, LANES + 1
"""In the place of a warp: more than one warp, and an atomic operation. A block has at most 32 warps."""
_INTERVAL = 64
_NEVER, _BEFORE = -1, 0
"""Not accessed; and accessed before the first interval, which is number 1."""
_MOST_READS = 256
"""Reads that are kept before they go into the record."""


class SharedMemory:
    """One block behind the other."""

    def __init__(self, blocks: int, warps: int, size: int, granule: int, check_races: bool) -> None:
        """`size` in bytes a block; `warps` a block; `granule`: bytes of the narrowest access of the kernel."""
        self._size = size
        self._granule = granule
        self.strict = True
        """Whether what is suspicious is refused."""
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
        self._reads: list[tuple[Indices, int, Indices]] = []
        """Reads that are not in the record yet: places, width, lanes. Most are forgotten at a barrier before they matter."""

    def next_interval(self, blocks: Flags) -> None:
        """These blocks have passed a barrier."""
        if blocks.all():
            self._reads.clear()
        else:
            self._record_reads()
        self._interval[blocks] += _INTERVAL

    def locate(self, addresses: NDArray[np.uint32], width: int, lanes: Indices, access: Access) -> Indices:
        """See `Space`."""
        places = self.place(addresses, width, lanes, access)
        self._observe(places, width, lanes, access)
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
        self._part(self._written, width)[places // max(width, self._granule)] = _BEFORE

    def _part(self, record: Stamps, width: int) -> Stamps:
        """The record as rows, one for each place where an access of that width can lie."""
        return record.reshape(-1, max(1, width // self._granule))

    def _observe(self, places: Indices, width: int, lanes: Indices, access: Access) -> None:
        """Check one access against the record, then add it."""
        rows = places // max(width, self._granule)
        record = self._part(self._written, width)
        written = record[rows]
        if access != "write" and self.strict and int(written.min()) == _NEVER:
            first = int(np.argmax((written == _NEVER).any(axis=1)))
            raise SuspicionError(f"shared memory at {self._address(places[first])} is read, but was never written", int(lanes[first]))
        if not self._check_races:
            record[rows] = np.maximum(written, _BEFORE)
            return
        start, stamp = self._stamps(lanes)
        if int(written.max()) >= int(self._interval.min()):
            racing = (written >= start) & (written != stamp)
            if access != "write":
                racing &= written != start + _ATOMIC
            self._refuse(racing, written, places, lanes, access, "wrote")
        if access == "read":
            self._reads.append((places, width, lanes))
            if len(self._reads) > _MOST_READS:
                self._record_reads()
            return
        if access == "update":
            record[rows] = start + _ATOMIC
            return
        self._record_reads()
        read = self._part(self._read, width)[rows]
        self._refuse((read >= start) & (read != stamp), read, places, lanes, access, "read")
        record[rows] = stamp
        last = record[rows]
        self._refuse(last != stamp, last, places, lanes, access, "writes, too,")

    def _stamps(self, lanes: Indices) -> tuple[Stamps, Stamps]:
        """The start of the interval of each lane, and the stamp of what it does now, as columns."""
        start = self._interval[self._block[lanes]]
        return start[:, None], (start + self._warp[lanes])[:, None]

    def _record_reads(self) -> None:
        for places, width, lanes in self._reads:
            start, stamp = self._stamps(lanes)
            record, rows = self._part(self._read, width), places // max(width, self._granule)
            before = record[rows]
            record[rows] = np.where((before >= start) & (before != stamp), start + _SEVERAL, stamp)
            lost = (record[rows] != stamp).any(axis=1)  # lanes of other warps read the same place at the same time
            record[rows[lost]] = start[lost] + _SEVERAL
        self._reads.clear()

    def _refuse(self, racing: Flags, record: Stamps, places: Indices, lanes: Indices, access: Access, did: str) -> None:
        if not (self.strict and racing.any()):
            return
        first, part = (int(i) for i in np.unravel_index(np.argmax(racing), racing.shape))
        other = int(record[first, part]) % _INTERVAL
        who = {_SEVERAL: "several warps", _ATOMIC: "an atomic operation"}.get(other, f"warp {other}")
        place = f"shared memory at {self._address(places[first])}"
        message = f"race: {access} of {place} by warp {int(self._warp[lanes[first]])}, which {who} {did} with no barrier in between"
        raise SuspicionError(message, int(lanes[first]))

    def _address(self, place: np.intp) -> str:
        return f"{int(place) % self._stride:#x}"
