"""Which kernels stay as they were, by what was measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from sassir.gpu.gain import slower_kernels
from sassir.gpu.statistics import compare_times
from sassir.gpu.timing import Samples
from sassir.launch import read_launch_file

FILE = read_launch_file(Path(__file__).parents[2] / "bench" / "launch" / "fuse2.toml")


@pytest.mark.parametrize(("times_as_long", "kept"), [(0.9, False), (1.0, False), (1.003, False), (1.01, True), (1.3, True)])
def test_what_is_surely_slower_stays_as_it_was(times_as_long: float, kept: bool) -> None:
    original = [(1e-4 * (1 + 1e-4 * (i % 5)), 1e-4 * (1 + 1e-4 * (i % 3))) for i in range(30)]
    candidate = [(times_as_long * first, times_as_long * second) for first, second in original]
    launch = FILE.launch("full")
    found = compare_times(Samples(original, candidate, 1, 1))
    slower = slower_kernels({"full": found}, [launch])
    assert set(slower) == ({step.kernel for step in launch.steps} if kept else set())
    assert all(f"{times_as_long:.3f} times as long in launch full" in reason for reason in slower.values())


def test_launches_that_were_not_measured_say_nothing() -> None:
    assert slower_kernels({}, [FILE.launch("full")]) == {}
