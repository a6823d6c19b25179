"""The emulator stays fast. On full blocks it does 30 million thread instructions a second and more (bench/emulator_speed.py)."""

from __future__ import annotations

import time
from pathlib import Path

from sassir.emulator import Counts, emulate
from sassir.launch import read_launch_file

BENCH = Path(__file__).parents[2] / "bench"


def test_a_small_launch_is_quick_with_everything_that_comes_before_it() -> None:
    launch = read_launch_file(BENCH / "launch" / "black_scholes.toml").launch("special")
    cubin = (BENCH / "cubins" / "black_scholes.sm_90.cubin").read_bytes()
    emulate(cubin, launch)
    counts, start = Counts(), time.process_time()
    emulate(cubin, launch, counts=counts)
    assert counts.thread_instructions / (time.process_time() - start) > 4e6
