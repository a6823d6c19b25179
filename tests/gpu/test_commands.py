"""`sassir bench` and `sassir bench-suite` as far as they go without a GPU: arguments, candidates, refusals."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from sassir.cli.bench import choose_launches
from sassir.cli.bench_suite import Job, make_candidate, make_candidates
from sassir.cli.main import main
from sassir.errors import LaunchError
from sassir.gpu.suite import find_suite

BENCH = Path(__file__).parents[2] / "bench"
SAXPY, FUSE = (BENCH / "cubins" / f"{kernel}.sm_90.cubin" for kernel in ("saxpy_gs", "fuse2"))
FILE = str(BENCH / "launch" / "saxpy_gs.toml")


def test_a_launch_file_or_one_of_its_launches() -> None:
    assert choose_launches(FILE)[1] is None
    assert choose_launches(f"{FILE}:tail")[1] == "tail"
    with pytest.raises(LaunchError, match="no launch 'huge'; there are full, medium"):
        choose_launches(f"{FILE}:huge")


def test_without_passes_a_candidate_is_the_original_rebuilt_from_fields() -> None:
    jobs = [Job(entry, "") for entry in find_suite(BENCH, "sm_90", ["saxpy_gs", "fuse2"])]
    assert make_candidates(jobs) == [SAXPY.read_bytes(), FUSE.read_bytes()]


def test_a_candidate_that_cannot_be_made_is_a_text(tmp_path: Path) -> None:
    (tmp_path / "cut.cubin").write_bytes(SAXPY.read_bytes()[:1000])
    entry = find_suite(BENCH, "sm_90", ["saxpy_gs"])[0]._replace(cubin=tmp_path / "cut.cubin")
    made = make_candidate(Job(entry, ""))
    assert isinstance(made, str)
    assert made.startswith("ContainerError: ")


def test_a_candidate_from_another_compiler_is_a_file(tmp_path: Path) -> None:
    entry = find_suite(BENCH, "sm_90", ["saxpy_gs"])[0]
    (tmp_path / entry.cubin.name).write_bytes(b"another")
    assert make_candidate(Job(entry, "", made=tmp_path / entry.cubin.name)) == b"another"
    assert "FileNotFoundError" in str(make_candidate(Job(entry, "", made=tmp_path / "none.cubin")))


@pytest.mark.skipif(find_spec("pycuda") is not None, reason="PyCUDA is installed")
@pytest.mark.parametrize("arguments", [["bench", str(SAXPY), str(SAXPY), "--launch", FILE], ["bench-suite", "--suite", str(BENCH)]])
def test_without_pycuda_the_remedy_is_named(arguments: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 1
    assert "pip install sassir[gpu]" in capfd.readouterr().err
