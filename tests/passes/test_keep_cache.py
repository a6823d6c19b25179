"""sass-keep-cache: few blocks less, where more leave too little of the first-level cache."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from sassir.allocation.launch import LaunchBounds
from sassir.analysis.occupancy import occupancy
from sassir.asm import INSTRUCTION_BYTES, Function, Line
from sassir.asm.parse import parse_instruction
from sassir.cubin.cubin import Cubin
from sassir.cubin.summary import KernelSummary, summarise
from sassir.dialect.facts import FACTS, FactsAttr, KernelFacts
from sassir.launch import read_launch_file
from sassir.optimize import Task, optimise_cubin, read_pipeline
from sassir.passes.keep_cache import registers_to_ask_for
from sassir.translate.lift import lift_function

BENCH = Path(__file__).parents[2] / "bench"
SHARED = 8576
"""Of nw_tile: 24 blocks fill the largest partition, 20 the one before, which leaves 60 KiB of L1 and not 28."""


def _asked(facts: KernelFacts, *text: str, arch: str = "sm_90", shared: int = SHARED) -> int:
    lines = tuple([Line(parse_instruction(line), INSTRUCTION_BYTES * i) for i, line in enumerate([*text, "EXIT"])])
    kernel = lift_function(Function("k", None, lines, {}), {})
    kernel.attributes[FACTS] = FactsAttr(facts)
    return registers_to_ask_for(kernel, arch, LaunchBounds(shared=shared))


def test_registers_keep_the_last_blocks_out() -> None:
    count = _asked(KernelFacts(block=(32, 1, 1)), "LDG.E R5, desc[UR4][R6.64]")
    assert occupancy("sm_90", count, SHARED, 32).blocks == 20
    assert occupancy("sm_90", count - 1, SHARED, 32).blocks == 24


@pytest.mark.parametrize(
    ("facts", "instruction", "shared", "why"),
    [
        (KernelFacts(), "LDG.E R5, desc[UR4][R6.64]", SHARED, "how large a block is, is not known"),
        (KernelFacts(block=(32, 1, 1)), "LDS R5, [R6]", SHARED, "nothing comes through L1"),
        (KernelFacts(block=(32, 1, 1)), "LDG.E R5, desc[UR4][R6.64]", 5000, "28 blocks leave enough"),
        (KernelFacts(block=(32, 1, 1)), "LDG.E R95, desc[UR4][R6.64]", SHARED, "it takes as many registers anyway"),
        (KernelFacts(block=(256, 1, 1)), "LDG.E R5, desc[UR4][R6.64]", 70000, "one block less of three is too many"),
        (KernelFacts(block=(32, 1, 1), grid=(132 * 24, 1, 1)), "LDG.E R5, desc[UR4][R6.64]", SHARED, "a second round"),
    ],
)
def test_registers_stay_as_they_are(facts: KernelFacts, instruction: str, shared: int, why: str) -> None:
    assert _asked(facts, instruction, shared=shared) == 0, why


def test_shared_memory_of_the_launch_counts() -> None:
    facts = KernelFacts(block=(32, 1, 1), shared=SHARED)
    assert _asked(facts, "LDG.E R5, desc[UR4][R6.64]", shared=0) == _asked(replace(facts, shared=0), "LDG.E R5, desc[UR4][R6.64]")


def test_a_kernel_of_the_suite_asks_for_more_and_stays_the_same() -> None:
    original, file = (BENCH / "cubins" / "nw_tile.sm_90.cubin").read_bytes(), read_launch_file(BENCH / "launch" / "nw_tile.toml")
    whole = read_pipeline("launch")
    task = Task(original, "nw_tile", whole, file.facts, file.launch("full"))
    without = task._replace(pipeline=whole._replace(behind=tuple([name for name in whole.behind if name != "sass-keep-cache"])))
    more, less = [Cubin.read(optimise_cubin(t).cubin, "nw_tile") for t in (task, without)]
    assert [section.data for section in more.code] == [section.data for section in less.code]
    assert (_blocks(more), _blocks(less)) == (20, 24)


def _blocks(cubin: Cubin) -> int:
    (kernel,) = summarise(cubin).kernels
    assert isinstance(kernel, KernelSummary)
    assert kernel.registers is not None
    return occupancy(cubin.arch, kernel.registers, kernel.asked_shared, 32).blocks
