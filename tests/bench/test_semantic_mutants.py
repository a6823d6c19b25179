"""The experiment with mutants: emulated in parts, launched on what stands in for a GPU, and judged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sassir.emulator import emulate
from sassir.errors import EmulationError, LaunchError
from sassir.gpu.device import DeviceInfo
from sassir.launch import Launch, Outputs

script: Any = pytest.importorskip("semantic_mutants")

KERNELS = ["saxpy_gs", "reduce_sum"]


class EmulatedWorker:
    """A worker whose GPU is the emulator."""

    def __init__(self, timeout: float) -> None:
        assert timeout == 5

    def __enter__(self) -> EmulatedWorker:
        return self

    def __exit__(self, *_: object) -> None: ...

    def describe_device(self) -> DeviceInfo:
        return DeviceInfo("Some GPU", "sm_90", "13.0", "580", "2026.1")

    def run(self, cubin: bytes, launch: Launch) -> Outputs:
        try:
            return emulate(cubin, launch)
        except EmulationError as error:
            raise LaunchError(str(error)) from error


def run(*arguments: str, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr("sys.argv", ["semantic_mutants.py", *arguments])
    return script.main()


@pytest.fixture(scope="module")
def emulated(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Ten of them, made in two runs."""
    path = tmp_path_factory.mktemp("mutants") / "mutants.json"
    with pytest.MonkeyPatch.context() as monkeypatch:
        for count in ("4", "10"):
            assert run("emulate", *KERNELS, "-n", count, "-j", "1", "-o", str(path), monkeypatch=monkeypatch) == 0
    return path.read_text()


@pytest.fixture
def mutants(emulated: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of them."""
    monkeypatch.setattr(script, "Worker", EmulatedWorker)
    path = tmp_path / "mutants.json"
    path.write_text(emulated)
    return path


def result(folder: Path) -> dict[str, Any]:
    (path,) = folder.glob("semantic-mutants-some-gpu-*.json")
    return json.loads(path.read_text())


def test_what_was_emulated_is_launched(mutants: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    emulated = json.loads(mutants.read_text())
    assert (emulated["identical"], emulated["false_alarms"], len(emulated["mutants"])) == (2, [], 10)
    assert {mutant["emulator"] for mutant in emulated["mutants"]} == {"fails", "holds"}
    assert run("launch", str(mutants), "-o", str(tmp_path / "out"), monkeypatch=monkeypatch) == 0
    found = result(tmp_path / "out")
    assert found["holds"]
    assert 0 < found["changed"] == found["caught"] <= found["launched"] <= 10


def test_a_mutant_that_only_the_gpu_finds_is_a_failure(mutants: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    emulated = json.loads(mutants.read_text())
    for mutant in emulated["mutants"]:
        mutant["emulator"] = "holds"
    mutants.write_text(json.dumps(emulated))
    assert run("launch", str(mutants), "-o", str(tmp_path / "out"), monkeypatch=monkeypatch) == 1
    assert not result(tmp_path / "out")["holds"]


def test_nothing_is_launched_when_the_time_is_over(mutants: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("launch", str(mutants), "--seconds", "0", "-o", str(tmp_path / "out"), monkeypatch=monkeypatch) == 1
    found = result(tmp_path / "out")
    assert (found["launched"], found["holds"]) == (0, False)
