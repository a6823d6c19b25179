"""sass-stage-constants: tables in constant memory that lanes read at different places are copied to shared memory first."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from sassir.emulator import emulate
from sassir.launch import Launch, LaunchFile, read_launch_file
from sassir.optimize import Optimised, Pipeline, Task, optimise_cubin
from sassir.translate.cubin import read_program

ROOT = Path(__file__).parents[2]
ALONE = Pipeline("test", 1, ("sass-stage-constants",))

LAUNCH = """
[launches]
few = { rounds = ROUNDS }

[buffers]
in = { dtype = "u32", shape = 192, role = "in", fill = "integers(0, 256)" }
out = { dtype = "u32", shape = 192, role = "out" }
first = { dtype = "u8", shape = 256, role = "in", fill = "bits" }
second = { dtype = "u16", shape = 300, role = "in", fill = "bits" }
third = { dtype = "u64", shape = 64, role = "in", fill = "bits" }

[symbols]
bytes = "first"
halves = "second"
longs = "third"

[[steps]]
kernel = "KERNEL"
grid = 1
block = BLOCK
shared = SHARED
arguments = ["in", "out", { i32 = "rounds" }]
"""


class Made(NamedTuple):
    """A kernel of tables.cu before and after."""

    original: bytes
    launch: Launch
    optimised: Optimised

    @property
    def loads(self) -> tuple[list[str], list[str]]:
        """The names of its instructions that read constant bank 3, before and after."""
        return _constant_loads(self.original, self.launch), _constant_loads(self.optimised.cubin, self.launch)

    def check(self) -> None:
        before, after = emulate(self.original, self.launch), emulate(self.optimised.cubin, self.launch)
        assert all(np.array_equal(before[name], after[name]) for name in before)


def _constant_loads(cubin: bytes, launch: Launch) -> list[str]:
    (function,) = [f for f in read_program(cubin).functions if f.name == launch.steps[0].kernel]
    return [line.instruction.name for line in function.lines if "c[0x3]" in line.instruction.text]


def make(path: Path, kernel: str, block: str = "[192]", shared: int = 0, rounds: int = 22, facts: bool = True) -> Made:
    text = LAUNCH.replace("KERNEL", kernel).replace("BLOCK", block).replace("SHARED", str(shared)).replace("ROUNDS", str(rounds))
    (path / "launch.toml").write_text(text, encoding="utf-8")
    file: LaunchFile = read_launch_file(path / "launch.toml")
    launch = file.launch("few")
    original = (ROOT / "tests" / "cubins" / "tables.sm_90.cubin").read_bytes()
    return Made(original, launch, optimise_cubin(Task(original, "tables", ALONE, file.facts, launch if facts else None, [kernel])))


@pytest.mark.parametrize("block", ["[192]", "[16, 12]", "[8, 6, 4]", "[32, 2, 3]"])
def test_bytes_halves_and_long_words(tmp_path: Path, block: str) -> None:
    """1,368 bytes: with 192 threads one whole row of words and a part."""
    made = make(tmp_path, "tables", block)
    before, after = made.loads
    assert {"LDC.U8", "LDC.U16", "LDC.64"} == set(before)
    assert after == ["LDC", "LDC"]
    assert {"block", "shared"} <= {*made.optimised.outcomes[0].facts}
    made.check()


def test_an_index_that_may_leave_the_table_stays(tmp_path: Path) -> None:
    """A trap: shared memory faults where constant memory does not."""
    made = make(tmp_path, "unbounded")
    assert made.loads[0] == made.loads[1] != []


def test_an_index_that_all_threads_share_stays(tmp_path: Path) -> None:
    made = make(tmp_path, "uniform")
    assert made.loads[0] == made.loads[1] != []


def test_a_few_look_ups_do_not_pay(tmp_path: Path) -> None:
    made = make(tmp_path, "tables", rounds=0)
    assert made.loads[0] == made.loads[1] != []


def test_dynamic_shared_memory_would_be_in_the_way(tmp_path: Path) -> None:
    made = make(tmp_path, "tables", shared=64)
    assert made.loads[0] == made.loads[1] != []


def test_without_facts_nothing_is_done(tmp_path: Path) -> None:
    made = make(tmp_path, "tables", facts=False)
    assert made.loads[0] == made.loads[1] != []


@pytest.mark.parametrize("case", ["small", "tail"])
def test_aes(case: str) -> None:
    """The host fills the table; in the last block some threads end at once."""
    original = (ROOT / "bench" / "cubins" / "aes_tconst.sm_90.cubin").read_bytes()
    file = read_launch_file(ROOT / "bench" / "launch" / "aes_tconst.toml")
    made = Made(original, file.launch(case), optimise_cubin(Task(original, "aes", ALONE, file.facts, file.launch(case))))
    assert [len(loads) for loads in made.loads] == [16, 1]
    made.check()
