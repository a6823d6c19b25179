"""Profiles from the emulator: what a warp's accesses cost, counted by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from sassir.launch import read_launch_file
from sassir.timing.sample import Sampled, sample

ROOT = Path(__file__).parents[2]
FIRST_LEVEL = 32 << 10


def sampled(kernel: str, case: str) -> Sampled:
    data = (ROOT / "bench" / "cubins" / f"{kernel}.sm_90.cubin").read_bytes()
    (found,) = sample(data, read_launch_file(ROOT / "bench" / "launch" / f"{kernel}.toml").launch(case), FIRST_LEVEL)
    return found


def lines(kernel: str, mnemonic: str) -> list[int]:
    from sassir.translate.cubin import read_program

    (function,) = read_program((ROOT / "bench" / "cubins" / f"{kernel}.sm_90.cubin").read_bytes()).functions
    return [i for i, line in enumerate(function.lines) if line.instruction.mnemonic == mnemonic]


def test_neighbours_share_lines() -> None:
    """32 floats are one line, four sectors, all of them from memory; and every warp runs the prologue once."""
    found = sampled("saxpy_gs", "small")
    assert found.profile.executions[0] == 1
    for line in lines("saxpy_gs", "LDG"):
        passes, sectors, missed, memory = found.profile.traffic[line]
        assert (passes, sectors, missed) == pytest.approx((1, 4, 1), rel=0.1)
        assert memory == pytest.approx(1, rel=0.01)


def test_a_column_of_a_tile_is_in_one_bank() -> None:
    """The tile of transpose_tile has rows of 32 words and no padding: reading a column takes 32 passes, writing a row one."""
    traffic = sampled("transpose_tile", "small").profile.traffic
    assert {round(traffic[line].passes) for line in lines("transpose_tile", "LDS")} == {32}
    assert {round(traffic[line].passes) for line in lines("transpose_tile", "STS")} == {1}


def test_bytes_of_a_row_stay_in_the_first_level() -> None:
    """Each thread of xxh32_rows reads a row of 64 bytes: two rows are a line, so that 130 threads in 5 warps need 4 times 16 passes
    and one for each byte, and only few of the 16 loads of a group bring a sector."""
    traffic = sampled("xxh32_rows", "small").profile.traffic
    loads = [traffic[line] for line in lines("xxh32_rows", "LDG")][:16]
    assert {round(load.passes) for load in loads} == {13}
    assert sum(load.missed for load in loads) < 3


def test_divergent_constants_are_read_one_by_one() -> None:
    """The tables of aes_tconst: some 30 different words of 256."""
    traffic = sampled("aes_tconst", "small").profile.traffic
    assert all(25 < traffic[line].passes <= 32 for line in traffic if line in lines("aes_tconst", "LDC"))
