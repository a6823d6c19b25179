"""How samples are taken: interleaved, over rotating buffers, enough runs in each; on a device that only keeps a log."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sassir.gpu import timing
from sassir.gpu.device import DeviceLimits
from sassir.launch import Launch, read_launch_file

LAUNCH = """
[launches]
only = { n = 1000 }

[buffers]
x = { dtype = "f32", shape = "n", role = "in", fill = "ones" }
y = { dtype = "f32", shape = "n", role = "inout", fill = "ones" }

[[steps]]
kernel = "k"
grid = 1
block = 32
arguments = ["x", "y"]
"""

SECONDS = {"A": 100e-6, "B": 150e-6}


class Clock:
    """Time on the device, what ran there, and what was restored before."""

    def __init__(self) -> None:
        self.now, self.ran, self.restored = 0.0, list[tuple[str, int]](), list[int]()


class FakeCuda:
    """A stand-in for `pycuda.driver`."""

    Error = RuntimeError

    def __init__(self, clock: Clock) -> None:
        self.clock = clock

        class Event:
            at = 0.0

            def record(self) -> None:
                self.at = clock.now

            def time_till(self, other: Event) -> float:
                return 1e3 * (other.at - self.at)

        self.Event = Event

    class Context:
        @staticmethod
        def synchronize() -> None:
            """Everything has run already."""

    def mem_get_info(self) -> tuple[int, int]:
        return 1 << 30, 1 << 30

    def memcpy_dtod(self, target: int, source: int, size: int) -> None:
        assert size == 4000
        self.clock.restored.append(target)


class FakeBuffers:
    made = 0

    def __init__(self, launch: Launch) -> None:
        FakeBuffers.made += 1
        self.addresses = {"x": FakeBuffers.made, "y": 1000 + FakeBuffers.made}


class FakeModule:
    def __init__(self, cubin: bytes) -> None:
        self.name, self.loaded = cubin.decode(), True

    def unload(self) -> None:
        self.loaded = False


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    cuda = FakeCuda(clock)

    def load(cubin: bytes, launch: Launch) -> FakeModule:
        return FakeModule(cubin)

    def delay(nanoseconds: int) -> Callable[[], None]:
        return lambda: None

    def bind(module: FakeModule, launch: Launch, buffers: FakeBuffers) -> list[Any]:
        def start() -> None:
            clock.now += SECONDS[module.name]
            clock.ran.append((module.name, buffers.addresses["x"]))

        return [start]

    FakeBuffers.made = 0
    monkeypatch.setattr(timing, "load_driver", lambda: cuda)
    monkeypatch.setattr(timing, "load", load)
    monkeypatch.setattr(timing, "bind", bind)
    monkeypatch.setattr(timing, "DeviceBuffers", FakeBuffers)
    monkeypatch.setattr(timing, "delay", delay)
    monkeypatch.setattr(timing, "device_limits", lambda: DeviceLimits(132, 10_000, 64, 32))
    monkeypatch.setattr(timing, "WARM_UP_SECONDS", 0)
    return clock


@pytest.fixture
def launch(tmp_path: Path) -> Launch:
    (tmp_path / "l.toml").write_text(LAUNCH)
    return read_launch_file(tmp_path / "l.toml").launch("only")


def test_times_come_out_right_with_at_least_thirty_samples_of_each(clock: Clock, launch: Launch) -> None:
    samples = timing.sample(b"A", b"B", launch, seconds=0)
    assert len(samples.original) == len(samples.candidate) == timing.MIN_ROUNDS
    assert 2 * timing.MIN_ROUNDS >= 30
    assert all(time == pytest.approx(100e-6) for pair in samples.original for time in pair)
    assert all(time == pytest.approx(150e-6) for pair in samples.candidate for time in pair)


def test_a_sample_lasts_long_enough_for_the_clock(clock: Clock, launch: Launch) -> None:
    samples = timing.sample(b"A", b"B", launch, seconds=0)
    assert (samples.runs - 1) * SECONDS["A"] <= timing.SAMPLE_SECONDS <= samples.runs * SECONDS["A"]


def test_rounds_are_interleaved_in_both_orders(clock: Clock, launch: Launch) -> None:
    samples = timing.sample(b"A", b"B", launch, seconds=0)
    names = "".join(name for name, _ in clock.ran)
    per_round = 4 * samples.runs
    rounds = [names[i : i + per_round : samples.runs] for i in range(4 + per_round, len(names), per_round)]
    assert len(rounds) == timing.MIN_ROUNDS
    assert set(rounds) == {"ABBA", "BAAB"}


def test_buffer_sets_beyond_the_cache_are_taken_in_turn(clock: Clock, launch: Launch) -> None:
    samples = timing.sample(b"A", b"B", launch, seconds=0)
    assert samples.buffer_sets == 4  # 8000 bytes each, three times 10 000 wanted
    taken = [number for _, number in clock.ran]
    assert taken == [1 + i % 4 for i in range(len(taken))]


def test_buffers_that_are_read_and_written_start_every_round_afresh(clock: Clock, launch: Launch) -> None:
    timing.sample(b"A", b"B", launch, seconds=0)
    rounds = len(clock.restored) // 4
    assert clock.restored == [1001, 1002, 1003, 1004] * rounds
    assert rounds == timing.MIN_ROUNDS + 2  # and those that warm up and calibrate
