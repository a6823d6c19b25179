"""What an optimised cubin gains on the device, launch by launch, and which kernels had better stay as they were."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sassir.gpu.pair import take_samples
from sassir.gpu.statistics import Comparison, compare_times
from sassir.gpu.worker import Worker
from sassir.launch import Launch

SLOWER = 0.995
"""A kernel stays as it was if the whole interval of how many times as fast the new one is lies below this."""
SECONDS = 0.2
"""To sample each launch; enough for the 15 rounds of which `compare_times` can tell 1 %."""


def measured_gains(worker: Worker, original: bytes, candidate: bytes, launches: Iterable[Launch]) -> dict[str, Comparison]:
    """By launch, how the times compare. Raises LaunchError where either cubin does not run."""
    return {launch.name: compare_times(take_samples(worker, original, candidate, launch, SECONDS)) for launch in launches}


def slower_kernels(gains: Mapping[str, Comparison], launches: Iterable[Launch]) -> dict[str, str]:
    """The kernels of the launches that are surely slower, and as how much slower they were measured."""
    slower = [(launch, gains[launch.name]) for launch in launches if launch.name in gains and gains[launch.name].high < SLOWER]
    return {
        step.kernel: f"measured {1 / found.ratio:.3f} times as long in launch {launch.name}: original kept"
        for launch, found in slower
        for step in launch.steps
    }
