"""`sassir view`: what a person sees."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from sassir.cli import view
from sassir.errors import ContainerError

LOOP = Path(__file__).parents[1] / "cubins" / "loop.sm_90.cubin"


def run(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    view.add_arguments(parser)
    return view.run(parser.parse_args([str(LOOP), *arguments]))


def test_lines(capsys: pytest.CaptureFixture[str]) -> None:
    assert run() == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "loop  sm_90, 48 instructions"
    assert "  0060  ISETP.GE.AND P0, PT, R11, UR4, PT                               stall 1, waits SB0" in lines
    assert "  0140  @!P0 BRA `(.L1)                                                 stall 6" in lines
    at = lines.index(".L1:")
    assert lines[at + 1].startswith("  00d0  IMAD.WIDE R2, R7, 0x4, R4 ")
    assert lines[at + 1].endswith("stall 4, yield, waits SB1")
    assert lines[lines.index("$loop$_Z4stepf:") + 1].startswith("  01c0  ")


def test_no_colour_when_piped(capsys: pytest.CaptureFixture[str]) -> None:
    run()
    assert "\x1b" not in capsys.readouterr().out


def test_colour_on_a_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    run()
    coloured = capsys.readouterr().out
    assert "\x1b[1mIMAD.WIDE\x1b[0m" in coloured
    run("--plain")
    assert "\x1b" not in capsys.readouterr().out


def test_one_kernel(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--kernel", "loop") == 0
    assert capsys.readouterr().out.startswith("loop  sm_90")
    with pytest.raises(ContainerError, match="no kernel lop in it; it has loop"):
        run("--kernel", "lop")
