"""Times of two cubins over one launch, interleaved on the device. Runs in the process of the kernel; see `worker`."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from sassir.gpu.ceilings import delay
from sassir.gpu.device import device_limits, load_driver
from sassir.gpu.driver import PreparedLaunch
from sassir.gpu.runner import DeviceBuffers, bind, doing, load
from sassir.launch import Launch

SAMPLE_SECONDS = 500e-6
"""What a sample lasts at least, in repeated runs if need be: a thousand times the resolution of CUDA events (0.5 µs)."""
MAX_STARTS = 200
"""Launches in one sample; four samples are queued behind one another and the driver's queue holds about a thousand launches."""
MIN_ROUNDS, MAX_ROUNDS = 15, 100
"""A round has two samples of each cubin."""
WARM_UP_SECONDS = 0.05
L2_TURNOVER = 3
"""Buffer sets together are this many times the L2 cache, so that no run finds its data there."""
MAX_SETS = 16


class Samples(NamedTuple):
    """Seconds of one run of all steps."""

    original: list[tuple[float, float]]
    """The two samples of each round."""
    candidate: list[tuple[float, float]]
    runs: int
    """How many runs were timed together in one sample."""
    buffer_sets: int
    """How many copies of all buffers the runs took in turn."""


def sample(original: bytes, candidate: bytes, launch: Launch, seconds: float) -> Samples:
    """Time both cubins for about so long on the device. Raises LaunchError when either cannot run.

    A round is A B B A or B A A B, by chance: drift of clocks and temperature falls on both alike, and neither profits from its
    place. All four samples are queued while the device is kept busy, so that the host's time does not show.
    """
    modules = [load(cubin, launch) for cubin in (original, candidate)]
    with doing(launch, "timing"):
        pair = _Pair(modules, launch)
        pair.calibrate()
        rounds = min(max(int(seconds / pair.round_seconds), MIN_ROUNDS), MAX_ROUNDS)
        chance = random.Random(launch.name)
        samples = [pair.round(chance.random() < 0.5) for _ in range(rounds)]
        for module in modules:
            module.unload()
    return Samples([s[0] for s in samples], [s[1] for s in samples], pair.runs, len(pair.sets))


class _Pair:
    """Both cubins with their launches prepared over every buffer set."""

    def __init__(self, modules: Sequence[Any], launch: Launch) -> None:
        self.cuda = load_driver()
        self.sets = [DeviceBuffers(launch) for _ in range(_count_sets(launch))]
        self.starts = [[bind(module, launch, buffers) for buffers in self.sets] for module in modules]
        # Buffers that are read and written start every round with the same content, kept on the device.
        self.kept = DeviceBuffers(launch) if any(b.role == "inout" for b in launch.buffers) else None
        self.changed = [buffer for buffer in launch.buffers if buffer.role == "inout" and buffer.nbytes]
        self.events = [(self.cuda.Event(), self.cuda.Event()) for _ in range(4)]
        self.runs, self.turn, self.queueing = 1, 0, 1e-3
        self.round_seconds = 0.0

    def calibrate(self) -> None:
        """Warm up, and find how many runs make a sample and how long the host takes to queue a round."""
        end = time.perf_counter() + WARM_UP_SECONDS
        fastest = 0.0
        while time.perf_counter() < end or not fastest:
            fastest = min(min(times) for times in self.round(False))
        steps = len(self.starts[0][0])
        self.runs = max(1, min(int(SAMPLE_SECONDS / fastest) + 1, MAX_STARTS // steps))
        begin = time.perf_counter()
        self.round(True)
        self.round_seconds = time.perf_counter() - begin

    def round(self, swapped: bool) -> tuple[tuple[float, float], tuple[float, float]]:
        """Seconds of the two samples of each cubin."""
        order = (1, 0, 0, 1) if swapped else (0, 1, 1, 0)
        self._restore()
        begin = time.perf_counter()
        delay(int(1.5e9 * self.queueing) + 50_000)()
        for which, (first, last) in zip(order, self.events, strict=True):
            first.record()
            for _ in range(self.runs):
                self._start(self.starts[which][self.turn])
                self.turn = (self.turn + 1) % len(self.sets)
            last.record()
        self.queueing = time.perf_counter() - begin
        self.cuda.Context.synchronize()
        times = [first.time_till(last) * 1e-3 / self.runs for first, last in self.events]
        mine = [tuple(t for t, which in zip(times, order, strict=True) if which == side) for side in (0, 1)]
        return (mine[0][0], mine[0][1]), (mine[1][0], mine[1][1])

    @staticmethod
    def _start(steps: Sequence[PreparedLaunch]) -> None:
        for step in steps:
            step()

    def _restore(self) -> None:
        if self.kept is None:
            return
        for buffers in self.sets:
            for buffer in self.changed:
                self.cuda.memcpy_dtod(buffers.addresses[buffer.name], self.kept.addresses[buffer.name], buffer.nbytes)


def _count_sets(launch: Launch) -> int:
    wanted = -(-L2_TURNOVER * device_limits().l2_bytes // max(launch.nbytes, 1))
    affordable = load_driver().mem_get_info()[0] // 2 // max(launch.nbytes, 1)
    return max(1, min(wanted, affordable, MAX_SETS))
