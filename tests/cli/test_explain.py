"""`sassir explain`: what it prints, and how it ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from sassir.cli.main import main

CUBINS = Path(__file__).parents[2] / "bench" / "cubins"
SAXPY = str(CUBINS / "saxpy_gs.sm_90.cubin")


def test_each_part_of_the_control_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", SAXPY, "--at", "0xe0"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "saxpy_gs+0xe0  IMAD.WIDE R2, R0, 0x4, R6  [B0-----:R-:W-:Y:S04]"
    assert printed[1] == "  stall 4:"
    reader = (
        "    `LDG.E R2, desc[UR6][R2.64]` at 0x100 reads R2, which `IMAD.WIDE R2, R0, 0x4, R6` at 0xe0 writes: 6 cycles there, 5 needed"
    )
    assert reader in printed
    assert "  wait for SB0:" in printed
    assert "    4 cycles until its pipe takes the next instruction, which goes to the same one" in printed
    assert sum(line.startswith("      evidence: ") for line in printed) == 4


def test_a_kernel_of_several(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(CUBINS / "fuse2.sm_90.cubin"), "--at", "0x0"]) == 1
    assert "3 kernels; choose one with --kernel; there are " in capsys.readouterr().err


def test_a_place_between_instructions(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", SAXPY, "--at", "0xe4"]) == 1
    assert "no instruction begins at 0xe4; expected a multiple of 16" in capsys.readouterr().err


def test_a_kernel_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", SAXPY, "--at", "0", "--kernel", "k"]) == 1
    assert "no kernel 'k'; there are saxpy_gs" in capsys.readouterr().err
