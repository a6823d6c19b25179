"""Asynchronous copies from global to shared memory (cp.async): nothing is there before the thread has waited for it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sassir.emulator.lanes import Array, Indices, Lanes
from sassir.emulator.memory import Space, store


class _Copy(NamedTuple):
    """Data on its way, one element a lane."""

    lanes: Indices
    group: NDArray[np.int64]
    """Number of the group of its thread."""
    addresses: NDArray[np.uint32]
    words: list[Array]


class Copies:
    """The copies of a batch that are under way."""

    def __init__(self, lanes: int) -> None:
        self._groups = np.zeros(lanes, np.int64)
        """Groups closed so far, by thread."""
        self._waiting: list[_Copy] = []

    def add(self, lanes: Indices, addresses: NDArray[np.uint32], words: list[Array]) -> None:
        """A copy by each of the lanes, to an address in shared memory."""
        self._waiting.append(_Copy(lanes, self._groups[lanes], addresses, words))

    def close_group(self, lanes: Lanes) -> None:
        """What the lanes have started so far is a group."""
        self._groups[lanes.indices] += 1

    def wait(self, shared: Space, lanes: Lanes, groups: int) -> None:
        """Let all but the latest `groups` closed groups of the lanes arrive; -1: also what is in no group yet."""
        flags = lanes.flags.reshape(-1)
        waiting, self._waiting = self._waiting, []
        for copy in waiting:
            done = flags[copy.lanes] & (copy.group < self._groups[copy.lanes] - groups)
            if done.any():
                arriving = _select(copy, done)
                width = 4 * len(arriving.words)
                places = shared.locate(arriving.addresses, width, arriving.lanes, "write")
                store(shared, places, arriving.words, width)
            if not done.all():
                self._waiting.append(_select(copy, ~done))


def _select(copy: _Copy, chosen: NDArray[np.bool_]) -> _Copy:
    return _Copy(copy.lanes[chosen], copy.group[chosen], copy.addresses[chosen], [word[chosen] for word in copy.words])
