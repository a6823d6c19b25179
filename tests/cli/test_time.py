"""`sassir time`: what it prints, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sassir.cli.main import main

BENCH = Path(__file__).parents[2] / "bench"
SGEMM = str(BENCH / "cubins" / "sgemm_tiled.sm_90.cubin")
LAUNCH = str(BENCH / "launch" / "sgemm_tiled.toml")


def test_a_table_for_each_kernel(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["time", SGEMM, "--launch", LAUNCH]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("sgemm_tiled on H200 (sm_90)")
    assert "loop 0x230" in printed
    assert "long scoreboard for `@!P1 LDG.E" in printed


def test_json_has_blocks_loops_and_the_whole(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["time", SGEMM, "--launch", LAUNCH, "--case", "small", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert found["kernel"] == "sgemm_tiled"
    assert found["whole"]["resident"] == pytest.approx(sum(found["whole"]["stalls"].values()))
    assert found["blocks"]
    assert [loop["name"] for loop in found["loops"]] == ["loop 0x230"]


def test_counts_from_the_emulator(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["time", SGEMM, "--launch", LAUNCH, "--case", "small", "--sample"]) == 0
    assert "Counts: emulator, " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--sample"], "--sample needs --launch"),
        (["--kernel", "other"], "no kernel 'other'; there are sgemm_tiled"),
        (["--launch", LAUNCH, "--case", "huge"], "no launch 'huge'"),
    ],
)
def test_what_is_wrong_is_said(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["time", SGEMM, *arguments]) == 1
    assert message in capsys.readouterr().err
