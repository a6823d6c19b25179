"""Running some blocks of a launch only, and looking on before instructions."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np

from sassir.emulator import emulate
from sassir.emulator.batch import Batch
from sassir.emulator.lanes import Lanes
from sassir.launch import Launch, read_launch_file

BENCH = Path(__file__).parents[2] / "bench"
CUBIN = (BENCH / "cubins" / "transpose_tile.sm_90.cubin").read_bytes()
ROWS = 32


def launch() -> Launch:
    return read_launch_file(BENCH / "launch" / "transpose_tile.toml").launch("small")


def test_only_the_blocks_that_are_named_write() -> None:
    """A block writes one tile of 32 times 32."""
    case = launch()
    (whole,) = emulate(CUBIN, case).values()
    (part,) = emulate(CUBIN, case, blocks=lambda step: [0]).values()
    assert np.array_equal(part[:ROWS, :ROWS], whole[:ROWS, :ROWS])
    (untouched,) = emulate(CUBIN, case, blocks=lambda step: []).values()
    part[:ROWS, :ROWS] = untouched[:ROWS, :ROWS]
    assert np.array_equal(part, untouched)


def test_an_observer_sees_registers_before_they_are_written() -> None:
    """At the first instruction no register was written, and each instruction is announced as often as it is executed."""
    before: Counter[int] = Counter()
    after: Counter[int] = Counter()

    def announce(batch: Batch, place: int, lanes: Lanes) -> None:
        before[place] += 1
        assert before[place] == after[place] + 1

    def observe(batch: Batch, place: int, lanes: Lanes) -> None:
        after[place] += 1

    emulate(CUBIN, launch(), before=announce, observer=observe, blocks=lambda step: [0])
    assert after
    assert before.keys() - after.keys() <= {place for place in before if before[place] == 1}
