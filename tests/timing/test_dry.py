"""Traffic that follows from the code and the shape of a block."""

from __future__ import annotations

from pathlib import Path

import pytest

from sassir.dialect.operations import KernelOp
from sassir.launch import Launch, LaunchFile, read_launch_file
from sassir.timing import Traffic
from sassir.timing.dry import dry_traffic
from sassir.timing.sample import sample
from sassir.translate.cubin import read_module
from sassir.translate.facts import attach_facts, launch_facts

BENCH = Path(__file__).parents[2] / "bench"
FIRST_LEVEL = 32 << 10


def read(kernel: str, case: str) -> tuple[bytes, LaunchFile, Launch]:
    file = read_launch_file(BENCH / "launch" / f"{kernel}.toml")
    return (BENCH / "cubins" / f"{kernel}.sm_90.cubin").read_bytes(), file, file.launch(case)


def dry(kernel: str, case: str) -> dict[int, Traffic]:
    data, file, launch = read(kernel, case)
    module = read_module(data)
    attach_facts(module, launch_facts(launch, file.facts, "sm_90"))
    (op,) = [op for op in module.body.ops if isinstance(op, KernelOp)]
    return {offset // 16: moved for offset, moved in dry_traffic(op, "sm_90", FIRST_LEVEL).items()}


@pytest.mark.parametrize("kernel", ["saxpy_gs", "scan_block", "transpose_tile", "xxh32_rows"])
def test_it_agrees_with_the_emulator(kernel: str) -> None:
    """Passes and sectors are those that the emulator counts: also where a guard leaves out some warps (scan_block)."""
    data, _, launch = read(kernel, "medium")
    (sampled,) = sample(data, launch, FIRST_LEVEL, budget=1000)
    found = dry(kernel, "medium")
    assert found
    for line, moved in found.items():
        assert moved.passes == pytest.approx(sampled.profile.traffic[line].passes, rel=0.1)
        assert moved.sectors == pytest.approx(sampled.profile.traffic[line].sectors, rel=0.1, abs=0.5)


def test_without_a_block_nothing_is_known() -> None:
    data, _, _ = read("saxpy_gs", "small")
    (op,) = [op for op in read_module(data).body.ops if isinstance(op, KernelOp)]
    assert dry_traffic(op, "sm_90", FIRST_LEVEL) == {}
