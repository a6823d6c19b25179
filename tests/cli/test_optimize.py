"""`sassir optimize`: the table, the certificate, and what the GPU decides; on a worker that only pretends, and on a GPU."""

from __future__ import annotations

import json
import re
import shutil
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from sassir.cli import optimize
from sassir.cli.main import main
from sassir.errors import LaunchError
from sassir.gpu import DeviceInfo, gain
from sassir.gpu import pair as pairs
from sassir.gpu.timing import Samples
from sassir.launch import Launch

ROOT = Path(__file__).parents[2]
SAXPY, SAXPY_LAUNCH = ROOT / "examples" / "saxpy.sm_90.cubin", ROOT / "examples" / "saxpy.toml"


class PretendedWorker:
    """A GPU on which everything runs."""

    timeout = 30.0

    def __init__(self, arch: str = "sm_90") -> None:
        self.arch = arch

    def describe_device(self) -> DeviceInfo:
        return DeviceInfo("a GPU", self.arch, "13.0", "580", "2026.1")

    def call(self, *_: Any) -> None:
        pass


def pretend(monkeypatch: pytest.MonkeyPatch, speedup: float, outcome: pairs.Outcome = "equal", arch: str = "sm_90") -> None:
    """A GPU where the candidate takes 1 / `speedup` of the original's 12 µs, and computes what `outcome` says."""

    def take_samples(worker: object, original: bytes, candidate: bytes, launch: Launch, seconds: float) -> Samples:
        rounds = [(12e-6 * (1 + i / 1e4), 12e-6 * (1 - i / 1e4)) for i in range(15)]
        return Samples(rounds, [(a / speedup, b / speedup) for a, b in rounds], 1, 1)

    def check(worker: object, pair: pairs.Pair, launch: Launch) -> pairs.Result:
        return pairs.Result("", launch.name, outcome, "" if outcome == "equal" else "y[0] differs")

    def open_worker(stack: ExitStack) -> PretendedWorker:
        return PretendedWorker(arch)

    monkeypatch.setattr(gain, "take_samples", take_samples)
    monkeypatch.setattr(pairs, "check", check)
    monkeypatch.setattr(optimize, "open_worker", open_worker)


def run(folder: Path, *arguments: str) -> tuple[int, bytes, dict[str, Any]]:
    """The exit status, the cubin and the certificate."""
    output = folder / "made.cubin"
    status = main(["optimize", str(SAXPY), "--launch", str(SAXPY_LAUNCH), "-o", str(output), *arguments])
    return status, output.read_bytes(), json.loads(output.with_suffix(".json").read_text())


def test_without_a_gpu_the_times_are_predicted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, made, certificate = run(tmp_path, "--no-gpu")
    text = capsys.readouterr().out
    header, row = text.splitlines()[:2]
    assert header.split() == ["kernel", "instructions", "registers", "spills", "occupancy", "predicted"]
    assert row.split()[:4] == ["saxpy", "32", "→", "29"]
    assert "0 B" in row
    assert "100%" in row
    assert "Times are predicted, no GPU was used" in text
    assert (status, made != SAXPY.read_bytes()) == (0, True)
    assert certificate["kernels"]["saxpy"]["changed"] is True
    assert certificate["kernels"]["saxpy"]["measured"] == {}


def test_the_readme_shows_what_the_command_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """But for the numbers, and why there is no GPU."""

    def lines(text: str) -> list[str]:
        shown = [" ".join(re.sub(r"\d+", "0", line).split()) for line in text.splitlines()]
        return [line for line in shown if not line.startswith("Times are predicted")]

    transpose = ("bench/cubins/transpose_tile.sm_90.cubin", "--launch", "bench/launch/transpose_tile.toml")
    monkeypatch.chdir(ROOT)
    assert main(["optimize", *transpose, "-o", str(tmp_path / "faster.cubin"), "--no-gpu"]) == 0
    blocks = (ROOT / "README.md").read_text().split("```")
    assert lines(capsys.readouterr().out) == lines(next(block for block in blocks if "occupancy" in block).strip())


def test_what_is_faster_on_the_gpu_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pretend(monkeypatch, 1.5)
    status, made, certificate = run(tmp_path)
    text = capsys.readouterr().out
    assert text.splitlines()[0].split()[-1] == "measured"
    assert text.splitlines()[1].rstrip().endswith("1.50 x")
    assert "launch medium: 12.00 → 8.00 µs, 1.500 x, 1.500 to 1.500" in text
    assert "Measured on a GPU" in text
    assert (status, made != SAXPY.read_bytes()) == (0, True)
    assert certificate["kernels"]["saxpy"]["measured"]["medium"]["ratio"] == pytest.approx(1.5)
    assert [layer["verdict"] for layer in certificate["layers"] if layer["name"] == "gpu"] == ["holds"]


def test_only_the_launches_that_it_is_made_for_are_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, 1.5)
    *_, with_facts = run(tmp_path)
    *_, without = run(tmp_path, "-p", "default")
    assert [*with_facts["kernels"]["saxpy"]["measured"]] == ["medium"]
    assert [*without["kernels"]["saxpy"]["measured"]] == ["medium", "tail", "one"]


def test_what_is_slower_on_the_gpu_is_given_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pretend(monkeypatch, 1 / 1.08)
    status, made, certificate = run(tmp_path)
    assert (status, made) == (0, SAXPY.read_bytes())
    assert "saxpy stays as it was: measured 1.080 times as long in launch medium: original kept" in capsys.readouterr().out
    assert certificate["kernels"]["saxpy"]["changed"] is False
    assert "1.080 times as long" in certificate["kernels"]["saxpy"]["reason"]
    assert certificate["facts"]["used"] == {}


def test_what_is_as_fast_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, 0.995)
    assert run(tmp_path)[1] != SAXPY.read_bytes()


def test_other_results_on_the_gpu_give_the_original_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, 1.5, "different")
    status, made, certificate = run(tmp_path)
    assert (status, made, certificate["verdict"]) == (1, SAXPY.read_bytes(), "fails")
    assert certificate["kernels"]["saxpy"]["measured"] == {}


def test_a_gpu_of_another_architecture_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pretend(monkeypatch, 0.5, arch="sm_120")
    assert run(tmp_path)[0] == 0
    assert "no GPU was used: a GPU is sm_120, the code is for sm_90" in capsys.readouterr().out
    assert main(["optimize", str(SAXPY), "--launch", str(SAXPY_LAUNCH), "-o", str(tmp_path / "made.cubin"), "--gpu"]) == 1


@pytest.mark.gpu
def test_on_a_gpu_it_is_verified_and_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with ExitStack() as stack:
        try:
            arch = optimize.open_worker(stack).describe_device().arch
        except LaunchError as error:
            pytest.skip(str(error))
    if arch != "sm_90":
        pytest.skip(f"the example is for sm_90, the GPU is {arch}")
    status, _, certificate = run(tmp_path, "--gpu")
    assert (status, certificate["verdict"]) == (0, "holds")
    assert [layer["verdict"] for layer in certificate["layers"] if layer["name"] == "gpu"] == ["holds"]
    assert certificate["kernels"]["saxpy"]["measured"]["medium"]["ratio"] > 0
    assert "µs" in capsys.readouterr().out


def test_the_docs_show_what_facts_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    section = (ROOT / "docs" / "launch-files.md").read_text().split("## Facts")[1]
    _, toml, _, session, *_ = section.split("```")
    command, expected = session.strip().splitlines()
    (tmp_path / "saxpy.facts.toml").write_text(toml.removeprefix("toml"))
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    assert main([*command.removeprefix("$ sassir ").split(), "--no-gpu"]) == 0
    text = capsys.readouterr().out
    assert expected in text.splitlines()
    assert text.splitlines()[-1] == "undecided"
    used = json.loads(Path("faster.json").read_text())["facts"]["used"]["saxpy"]
    assert f"saxpy relies on {', '.join(used['names'])}" == expected
    assert used["known"]["ranges"] == [[0x210, 1 << 20, (1 << 31) - 1]]
    new = view("faster.cubin", capsys)
    assert "ISETP" in view("examples/saxpy.sm_90.cubin", capsys)
    assert "ISETP" not in new


def view(path: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["view", path]) == 0
    return capsys.readouterr().out


def test_facts_hold_beside_those_of_the_launch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The launches `tail` and `one` have fewer elements than is stated; they are none to try the result with."""
    status, _, certificate = run(tmp_path, "--no-gpu", "--facts", "word 0x210 in [5000, 20000]")
    details = [layer["detail"] for layer in certificate["layers"] if layer["name"] == "emulator"]
    assert status == 0
    assert details[0].startswith("4 of 4 inputs")
    assert details[1].startswith("made for launch medium: 4 of 4")
    assert details[2].startswith("launch tail is none that --facts is about: kernel saxpy: word 0x210 is said to be in [1000, 1000]")
    assert certificate["verdict"] == "holds"
    capsys.readouterr()
    assert main(["optimize", str(SAXPY), "--launch", str(SAXPY_LAUNCH), "-o", str(tmp_path / "x"), "--facts", "shared = 4"]) == 1
    assert capsys.readouterr().err == "error: kernel saxpy: shared is said to be 0, and 4\n"
    assert not (tmp_path / "x").exists()


def test_noalias_from_the_command_line_counts_as_stated(tmp_path: Path) -> None:
    """Else the emulator would try overlapping buffers, and no launch of the file would be one that the code is made for."""
    launch = tmp_path / "plain.toml"
    launch.write_text(SAXPY_LAUNCH.read_text().split("[facts]")[0])
    *_, without = run(tmp_path, "--no-gpu", "--launch", str(launch))
    *_, stated = run(tmp_path, "--no-gpu", "--launch", str(launch), "--facts", "noalias")
    assert "noalias" not in without["facts"]["used"]["saxpy"]["names"]
    assert "noalias" in stated["facts"]["used"]["saxpy"]["names"]
    assert stated["facts"]["stated"]["noalias"] is True
    assert stated["verdict"] == "holds"
