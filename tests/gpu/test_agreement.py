"""The GPU's rung: what counts as equal, as different, and as not decided; on a worker that only pretends."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sassir.errors import LaunchError
from sassir.gpu import DeviceInfo
from sassir.gpu import pair as pairs
from sassir.gpu.agreement import GpuRung
from sassir.launch import Facts, Launch, LaunchFile, read_launch_file
from sassir.verify.differential import Original
from sassir.verify.ladder import Pair


class FakeWorker:
    """Answers by what `check` says of a launch."""

    def __init__(self, fails: Callable[[Launch], bool]) -> None:
        self.fails = fails

    def describe_device(self) -> DeviceInfo:
        return DeviceInfo("GPU", "sm_90", "13.0", "580", "2026.1")

    def call(self, function: Callable[..., Any], original: bytes, launch: Launch) -> None:
        assert function is pairs.prepare_reference
        if self.fails(launch):
            raise LaunchError("an illegal address")


@pytest.fixture
def file() -> LaunchFile:
    return read_launch_file(Path(__file__).parents[2] / "bench" / "launch" / "rgb2gray_u8.toml")


def climb(monkeypatch: pytest.MonkeyPatch, file: LaunchFile, different: str, fails: Callable[[Launch], bool] = lambda launch: False) -> Any:
    def check(worker: object, pair: pairs.Pair, launch: Launch) -> pairs.Result:
        assert (pair.original, pair.candidate) == (b"a", b"b")
        return pairs.Result("", launch.name, "different" if launch.name == different else "equal", "y[0] differs")

    monkeypatch.setattr(pairs, "check", check)
    worker: Any = FakeWorker(fails)
    return GpuRung(worker, tuple(file.launches.values()))(Pair(Original(b"a"), b"b", (), Facts(), None, None))


def test_every_launch_with_every_input_is_compared(monkeypatch: pytest.MonkeyPatch, file: LaunchFile) -> None:
    layer = climb(monkeypatch, file, "")
    assert (layer.name, layer.verdict) == ("gpu", "holds")
    assert {check.subject for check in layer.checks} >= {f"launch {name}, as stated" for name in file.launches}
    assert layer.detail.startswith("GPU: ")


def test_a_difference_fails(monkeypatch: pytest.MonkeyPatch, file: LaunchFile) -> None:
    layer = climb(monkeypatch, file, "small")
    assert (layer.verdict, layer.detail) == ("fails", "GPU: launch small, as stated: y[0] differs")


def test_where_the_original_fails_nothing_is_decided(monkeypatch: pytest.MonkeyPatch, file: LaunchFile) -> None:
    layer = climb(monkeypatch, file, "small", lambda launch: launch.name == "small")
    assert layer.verdict == "holds"
    assert {check.verdict for check in layer.checks if check.subject.startswith("launch small")} == {"undecided"}
    assert "the original: an illegal address" in layer.detail
