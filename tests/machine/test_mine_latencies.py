"""The command that makes a latency table."""

from __future__ import annotations

from pathlib import Path

import pytest

from sassir.cli.main import main
from sassir.machine.latency import parse_matrices

CUBINS = Path(__file__).parents[1] / "cubins"


def test_it_writes_a_table_that_can_be_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(CUBINS / f"{name}.cubin") for name in ("isa_scalar.sm_90a", "loop.sm_90", "loop.sm_80")]
    assert main(["mine-latencies", "--no-chains", "--arch", "sm_90", "-o", str(tmp_path), *files]) == 0
    text = (tmp_path / "sm_90.txt").read_text("utf-8")
    assert set(parse_matrices(text)) == {"raw", "war", "waw", "waw-guarded"}
    assert "isa_scalar.sm_90a.cubin[" in text
    assert "of 2 cubins" in text
    assert "written to" in capsys.readouterr().err


def test_files_without_code_of_the_architecture_are_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--arch", "sm_75", "-o", str(tmp_path), str(CUBINS / "loop.sm_90.cubin")]
    assert main(["mine-latencies", "--no-chains", *arguments]) == 1
    assert "none of the files has code for sm_75" in capsys.readouterr().err
