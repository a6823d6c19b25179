"""Where the lanes of a batch are, and where they wait for each other.

Lanes at one instruction are one group; the group with the lowest address goes first, so that lanes which took different ways
meet again as soon as they can (Collange, Stack-less SIMT reconvergence at low cost, 2011). Convergence barriers and CTA
barriers hold lanes back until the others have come, as the hardware does.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sassir.emulator.lanes import LANES, Flags, LaneError, Lanes

PATIENCE = 4096
"""Turns that the lowest groups may take while another one could go on: then that one has a turn, as it may hold a lock."""


def pack(flags: Flags) -> NDArray[np.uint32]:
    """The lanes of each warp as the bits of one word, shape (warps, 1)."""
    return np.packbits(flags, axis=1, bitorder="little").view(np.uint32)


class Meeting:
    """Lanes that wait."""

    def __init__(self) -> None:
        self.waiting: dict[int, Flags] = {}
        """By the place where they go on."""

    def here(self) -> Flags:
        """All that wait; there must be one."""
        first, *others = self.waiting.values()
        for lanes in others:
            first = first | lanes
        return first

    def arrive(self, place: int, lanes: Flags) -> None:
        """Lanes that will go on at `place`."""
        self.waiting[place] = self.waiting[place] | lanes if place in self.waiting else lanes

    def leave(self, free: Flags) -> list[tuple[int, Flags]]:
        """Let these lanes go: where each goes on."""
        before, self.waiting = self.waiting, {}
        for place, lanes in before.items():
            rest = lanes & ~free
            if rest.any():
                self.waiting[place] = rest
        return [(place, go) for place, lanes in before.items() if (go := lanes & free).any()]


class ConvergenceBarrier(Meeting):
    """One B register, or WARPSYNC. A lane goes on when all lanes of its mask wait, or have exited."""

    def __init__(self, shape: tuple[int, ...], collective: bool) -> None:
        """`collective`: an instruction follows that all lanes have to execute together."""
        super().__init__()
        self.collective = collective
        self.mask: NDArray[np.uint32] = np.zeros(shape, np.uint32)
        """By lane: the lanes of its warp that it waits for, as bits."""

    def free(self, alive: Flags) -> Flags:
        """The waiting lanes that may go."""
        here = self.here()
        return here & (self.mask & pack(alive & ~here) == 0)


class CtaBarrier(Meeting):
    """One barrier of a block."""

    def __init__(self, blocks: int) -> None:
        super().__init__()
        self.count = np.zeros(blocks, np.int64)
        """Threads expected, by block; 0 for all of them."""
        self.arrived = np.zeros(blocks, np.int64)
        """Threads that have arrived and do not wait."""
        self.operation: str | None = None
        """What votes at it are reduced by: POPC, AND, OR; None before the first vote."""
        self.ayes: Flags | None = None
        """By lane."""

    def tally(self, alive: Flags) -> NDArray[np.int64]:
        """The result of the vote, by block: how many lanes say yes, or 1 if all or any of them do."""
        assert self.ayes is not None
        ayes = (self.ayes & alive).reshape(len(self.count), -1).sum(axis=1)
        voters = alive.reshape(len(self.count), -1).sum(axis=1)
        return {"POPC": ayes, "AND": (ayes == voters).astype(np.int64), "OR": (ayes > 0).astype(np.int64)}[self.operation or ""]

    def free(self, alive: Flags) -> Flags:
        """The blocks that may go on."""
        blocks = len(self.count)
        here = self.here().reshape(blocks, -1)
        missing = (alive.reshape(blocks, -1) & ~here).any(axis=1)
        threads = here.reshape(blocks, -1, LANES).any(axis=2).sum(axis=1) * LANES + self.arrived
        return here.any(axis=1) & np.where(self.count > 0, threads >= self.count, ~missing)


class Flow:
    """The groups of one batch of blocks."""

    def __init__(self, exists: Flags, blocks: int, next_interval: Callable[[Flags], None]) -> None:
        """`next_interval` is told the blocks that have passed a barrier."""
        self.blocks = blocks
        self._next_interval = next_interval
        self.everyone = Lanes(exists, full=True)
        """The lanes that have not exited."""
        self.ready: dict[int, Flags] = {0: exists}
        """Lanes that can go on, by place."""
        self.convergence: dict[str, ConvergenceBarrier] = {}
        self.barriers: dict[int, CtaBarrier] = {}
        self.votes = np.zeros(blocks, np.int64)
        """Result of the last vote at a barrier, by block."""
        self._turns = 0

    def go(self, place: int, flags: Flags) -> None:
        """These lanes, if any, go on at `place`."""
        if not flags.any():
            return
        self.ready[place] = self.ready[place] | flags if place in self.ready else flags

    def next(self) -> tuple[int, int | None, Lanes]:
        """The next group: its place, the place where it meets another one (None: nowhere), its lanes."""
        ready = self.ready
        if len(ready) == 1:
            ((place, flags),) = ready.items()
            ready.clear()
            return place, None, Lanes(flags) if any(self._meetings()) else self.everyone
        place = min(ready)
        self._turns += 1
        if self._turns > PATIENCE:
            self._turns = 0
            place = next(other for other in ready if other != place)
        flags = ready.pop(place)
        return place, min([other for other in ready if other > place], default=None), Lanes(flags)

    def give_way(self) -> None:
        """The group that runs waits for another one: let that go on first."""
        self._turns = PATIENCE

    def exit(self, lanes: Lanes) -> None:
        """These lanes have ended; whoever waits for them waits no longer."""
        self.everyone = Lanes(self.everyone.flags & ~lanes.flags, full=True)
        self.recheck()

    def recheck(self) -> None:
        """Let go whoever need not wait any longer."""
        for convergence in [c for c in self.convergence.values() if c.waiting]:
            self._converge(convergence)
        for barrier in [b for b in self.barriers.values() if b.waiting]:
            self._pass(barrier)

    def register(self, name: str) -> ConvergenceBarrier:
        """A B register, or the meeting called WARPSYNC or WARPSYNC.COLLECTIVE."""
        if name not in self.convergence:
            self.convergence[name] = ConvergenceBarrier(self.everyone.flags.shape, name.endswith("COLLECTIVE"))
        return self.convergence[name]

    def wait_for_warp(self, name: str, place: int, lanes: Lanes) -> bool:
        """Wait for the lanes in the register's mask. False when all are there, and the group simply goes on."""
        convergence = self.register(name)
        if not convergence.waiting:
            others = pack(self.everyone.flags & ~lanes.flags)
            if not (lanes.flags & (convergence.mask & others != 0)).any():
                return False
        convergence.arrive(place, lanes.flags)
        self._converge(convergence)
        return True

    def wait_for_block(self, number: int, place: int, lanes: Lanes, count: NDArray[np.int64] | None = None) -> bool:
        """Wait at a barrier. False when all are there, and the group simply goes on. Raises LaneError if threads of a block meet that
        are at different instructions, without a stated count."""
        barrier = self.barrier(number)
        if lanes.full and count is None:
            self._open(barrier, np.ones(self.blocks, np.bool_))
            return False
        if count is not None:
            barrier.count = np.maximum(barrier.count, count)
        barrier.arrive(place, lanes.flags)
        self._pass(barrier)
        return True

    def arrive_at_block(self, number: int, lanes: Lanes, count: NDArray[np.int64] | None) -> None:
        """Arrive at a barrier without waiting: whole warps count."""
        barrier = self.barrier(number)
        barrier.arrived += lanes.flags.reshape(self.blocks, -1, LANES).any(axis=2).sum(axis=1) * LANES
        if count is not None:
            barrier.count = np.maximum(barrier.count, count)
        if barrier.waiting:
            self._pass(barrier)

    def vote(self, number: int, operation: str, lanes: Lanes, ayes: Flags) -> None:
        """What the lanes say, before they wait at the barrier."""
        barrier = self.barrier(number)
        barrier.operation = operation
        old = np.zeros_like(lanes.flags) if barrier.ayes is None else barrier.ayes
        barrier.ayes = np.where(lanes.flags, ayes, old)

    def barrier(self, number: int) -> CtaBarrier:
        """The barrier of each block with that number."""
        if number not in self.barriers:
            self.barriers[number] = CtaBarrier(self.blocks)
        return self.barriers[number]

    def _meetings(self) -> list[dict[int, Flags]]:
        return [m.waiting for group in (self.convergence, self.barriers) for m in group.values()]

    def _converge(self, convergence: ConvergenceBarrier) -> None:
        free = convergence.free(self.everyone.flags)
        if free.any():
            leaving = convergence.leave(free)
            if convergence.collective and (np.sum([lanes.any(axis=1) for _, lanes in leaving], axis=0) > 1).any():
                raise LaneError("lanes of one warp come to a collective instruction from different places, which is not emulated")
            for place, lanes in leaving:
                self.go(place, lanes)

    def _pass(self, barrier: CtaBarrier) -> None:
        blocks = barrier.free(self.everyone.flags)
        if not blocks.any():
            return
        free = np.repeat(blocks, self.everyone.flags.size // self.blocks).reshape(self.everyone.flags.shape)
        leaving = barrier.leave(free)
        if (barrier.count[blocks] == 0).any() and len(leaving) > 1:
            self._check_same_place(leaving, barrier.count == 0)
        self._open(barrier, blocks)
        for place, lanes in leaving:
            self.go(place, lanes)

    def _open(self, barrier: CtaBarrier, blocks: Flags) -> None:
        """These blocks pass the barrier, which can be used again."""
        if barrier.operation is not None:
            self.votes = np.where(blocks, barrier.tally(self.everyone.flags), self.votes)
        barrier.count[blocks] = 0
        barrier.arrived[blocks] = 0
        self._next_interval(blocks)

    def _check_same_place(self, leaving: list[tuple[int, Flags]], blocks: Flags) -> None:
        met = np.zeros(self.blocks, np.int64)
        for place, lanes in leaving:
            here = lanes.reshape(self.blocks, -1).any(axis=1) & blocks
            if (met[here] > 0).any():
                first = int(np.argmax(lanes))
                others = sorted({f"{16 * (p - 1):#x}" for p, _ in leaving})
                raise LaneError(f"barrier divergence: threads of one block meet at different barriers, at {' and '.join(others)}", first)
            met[here] = place
