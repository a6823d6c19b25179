"""What each pass gains: candidates are made where leaving a pass out matters, checked, timed, and shown in a table."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sassir.gpu.device import DeviceInfo
from sassir.gpu.pair import Found, Pair, compare_outputs, prepare_reference
from sassir.gpu.timing import Samples, sample
from sassir.launch import Error, Launch
from sassir.translate.cubin import read_program

script: Any = pytest.importorskip("pass_gains")
figures: Any = pytest.importorskip("figures")

WRONG = "sass-unroll"
"""The pass whose candidate computes something else on the device of these tests."""

DIFFERENT = Found("y[3] is 1, expected 2", Error(1.0, 1.0, 1.0, 8388608), False)


def run(*arguments: str) -> int:
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr("sys.argv", ["pass_gains.py", *arguments])
        return script.main()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("candidates")
    assert run("--make", str(folder), "transpose_tile", "saxpy_gs", "-n", "1") == 0
    return folder


def index(folder: Path) -> Any:
    return json.loads((folder / "index.json").read_text())


def test_the_kernel_that_a_pass_matters_most_for_is_kept(made: Path) -> None:
    kept = {candidate["skipped"]: candidate for candidate in index(made)["candidates"]}
    assert kept["sass-swizzle-shared"]["kernel"] == "transpose_tile"
    assert kept["sass-swizzle-shared"]["predicted"] > 1.5
    assert kept["sass-unroll"]["kernel"] == "saxpy_gs"
    assert "sass-divide" in index(made)["unchanged"]
    assert not kept.keys() & set(index(made)["unchanged"])


def test_the_folder_holds_the_cubins_of_the_index_alone(made: Path) -> None:
    named = {candidate[side] for candidate in index(made)["candidates"] for side in ("original", "complete", "without")}
    assert {file.name for file in made.glob("*.cubin")} == named


def test_what_is_left_out_is_missing(made: Path) -> None:
    (unroll,) = [candidate for candidate in index(made)["candidates"] if candidate["skipped"] == "sass-unroll"]
    loads = {side: loads_of(made / unroll[side]) for side in ("complete", "without")}
    assert loads["without"] == 2, "one turn of the loop: x and y"
    assert loads["complete"] > 2


def test_a_pass_alone_is_held_against_none(tmp_path: Path) -> None:
    assert run("--make", str(tmp_path), "saxpy_gs", "--alone", "--pass", "sass-unroll", "--pass", "sass-divide") == 0
    (unroll,) = index(tmp_path)["candidates"]
    loads = [loads_of(tmp_path / unroll[side]) for side in ("original", "without", "complete")]
    assert loads[0] == loads[1] == 2
    assert loads[2] > 2
    assert index(tmp_path)["unchanged"] == ["sass-divide"]
    assert index(tmp_path)["name"] == "pass-alone-launch"


def test_other_builds_of_the_kernels(tmp_path: Path) -> None:
    builds, folder = tmp_path / "unoptimised", tmp_path / "made"
    builds.mkdir()
    shutil.copy(script.CUBINS / "saxpy_gs.sm_90.cubin", builds)
    assert run("--make", str(folder), "saxpy_gs", "fuse2", "--cubins", str(builds), "--pass", "sass-unroll") == 0
    assert [candidate["kernel"] for candidate in index(folder)["candidates"]] == ["saxpy_gs"]
    assert index(folder)["name"] == "pass-gains-unoptimised-launch"


def loads_of(cubin: Path) -> int:
    return sum(line.instruction.mnemonic == "LDG" for function in read_program(cubin.read_bytes()).functions for line in function.lines)


class Device:
    """In place of a worker: every candidate but one computes the right thing, and takes half the time with the pass."""

    wrong: bytes | None = None

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *_: object) -> None: ...

    def describe_device(self) -> DeviceInfo:
        return DeviceInfo("Some GPU", "sm_90", "13.0", "580", "2026.1")

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        if function is prepare_reference:
            return None
        if function is compare_outputs:
            pair, launch = arguments
            assert isinstance(pair, Pair)
            assert isinstance(launch, Launch)
            return DIFFERENT if pair.candidate == self.wrong else None
        assert function is sample
        assert arguments[0] != arguments[1]
        return Samples([(2e-6, 2e-6)] * 15, [(1e-6, 1e-6)] * 15, 1, 1)


def test_candidates_are_checked_before_they_are_timed(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (bad,) = [candidate for candidate in index(made)["candidates"] if candidate["skipped"] == WRONG]
    monkeypatch.setattr(Device, "wrong", (made / bad["without"]).read_bytes())
    monkeypatch.setattr(script, "Worker", Device)
    assert run("--measure", str(made), "-o", str(tmp_path), "--commit", "c") == 1
    (path,) = tmp_path.glob("pass-gains-launch-some-gpu-*.json")
    found = json.loads(path.read_text())
    records = {record["pass"]: record for record in found["records"]}
    assert records.pop(WRONG)["detail"] == "without the pass: y[3] is 1, expected 2"
    assert {(record["outcome"], round(record["ratio"], 6)) for record in records.values()} == {("equal", 2.0)}
    assert (found["commit"], found["unchanged"]) == ("c", index(made)["unchanged"])


def test_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def record(kernel: str, ratio: float) -> dict[str, Any]:
        seconds = {"without": ratio * 1e-4, "with": 1e-4}
        measured = {"outcome": "equal", "seconds": seconds, "ratio": ratio, "low": ratio - 0.01, "high": ratio + 0.01}
        return {"pass": "sass-widen", "kernel": kernel, "launch": "full"} | measured

    wrong = {"pass": "sass-unroll", "kernel": "c", "launch": "full", "outcome": "different", "detail": "with the pass: y[3]"}
    records = [record("a", 1.1), record("b", 2.5), wrong, record("d", 1.05), record("e", 0.9), record("f", 1.02)]
    head = {"device": {"name": "GPU", "driver": "580", "cuda": "13.0"}, "date": "2026-02-01", "pipeline": "launch", "alone": False}
    (tmp_path / "g-1.json").write_text(json.dumps(head | {"records": records, "unchanged": ["sass-dce"]}))
    monkeypatch.setattr(figures, "RESULTS", tmp_path)
    assert "\n".join(figures.quote("passes", "g", tmp_path)).splitlines()[1:] == [
        "Pipeline `launch`; 6 pairs: 5 equal, 1 different.",
        "",
        "| pass | kernel, launch | µs without → with | without / with | 99 % interval |",
        "|---|---|---|---|---|",
        "| `sass-unroll` | c, full | **different**: with the pass: y[3] | | |",
        "| `sass-widen` | b, full | 250.0 → 100.0 | 2.50 | 2.490 to 2.510 |",
        "| `sass-widen` | a, full | 110.0 → 100.0 | 1.10 | 1.090 to 1.110 |",
        "| `sass-widen` | d, full | 105.0 → 100.0 | 1.05 | 1.040 to 1.060 |",
        "| `sass-widen` | 2 more | | 0.90 to 1.02 | |",
        "| `sass-dce` | no kernel of the suite needs it | | | |",
    ]
