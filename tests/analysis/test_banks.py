"""Bank conflicts: wavefronts of known patterns, and of the suite's kernels as their launches run them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from xdsl.context import Context

from sassir.analysis.banks import executions, least_wavefronts, look, total_wavefronts, wavefronts
from sassir.analysis.propagation import Propagation
from sassir.analysis.shared import all_shared_accesses, shared_access
from sassir.dialect.facts import facts_of
from sassir.dialect.operations import KernelOp
from sassir.launch import read_launch_file
from sassir.passes.virtualise import Virtualise
from sassir.rewrite.build import instruction
from sassir.translate.cubin import read_module
from sassir.translate.facts import attach_facts, launch_facts

BENCH = Path(__file__).parents[2] / "bench"
LANES = np.arange(32, dtype=np.uint32)[None]
ALL = np.ones((1, 32), np.bool_)

PATTERNS = [
    (1, 4, 1),  # bytes of the same words
    (4, 4, 1),
    (8, 4, 2),
    (12, 4, 1),
    (128, 4, 32),
    (132, 4, 1),
    (0, 4, 1),  # one word for all
    (8, 8, 2),
    (16, 8, 4),
    (16, 16, 4),
    (128, 16, 32),
    (144, 16, 4),
]


@pytest.mark.parametrize(("stride", "width", "expected"), PATTERNS)
def test_strides(stride: int, width: int, expected: int) -> None:
    assert wavefronts(LANES * np.uint32(stride), ALL, width) == expected


def test_lanes_that_are_not_active_take_no_part() -> None:
    assert wavefronts(LANES * np.uint32(128), LANES < 5, 4) == 5
    assert wavefronts(LANES * np.uint32(128), LANES < 0, 4) == 0


def test_rows_are_counted_by_themselves() -> None:
    rows = np.concatenate([LANES * np.uint32(4), LANES * np.uint32(128)])
    assert wavefronts(rows, np.concatenate([ALL, ALL]), 4) == 1 + 32


def test_every_part_of_an_address_is_read() -> None:
    """Scaled registers, uniform registers, and a displacement."""
    one = instruction("UMOV =UR, 0x1").results
    two = instruction("MOV =R, 0x2").results
    access = shared_access(instruction("STS.64 [$R.X8+$UR+-0x10], $R2", [*two, *one, *two, *two]))
    assert access is not None
    assert (access.operand, access.terms, access.offset, access.width) == (0, ((two[0], 8), (one[0], 1)), -0x10, 8)
    assert shared_access(instruction("LDSM.16.M88.4 =R4, [$R]", two)) is None


SUITE = [
    # executions, wavefronts without conflicts, and with those that there are, of 8 warps of a block
    ("transpose_tile", "full", 64, 64, 1056),
    ("reduce_sum", "full", 52, 52, 52),
    ("softmax_rows", "full", 104, 104, 104),
    ("nw_tile", "full", 382, 382, 4226),
]


@pytest.mark.parametrize(("name", "case", "runs", "least", "actual"), SUITE)
def test_the_suite(name: str, case: str, runs: int, least: int, actual: int) -> None:
    """transpose_tile: 32 stores of rows, 32 loads of columns, each of these with 32 wavefronts."""
    module = read_module((BENCH / "cubins" / f"{name}.sm_90.cubin").read_bytes(), name)
    file = read_launch_file(BENCH / "launch" / f"{name}.toml")
    attach_facts(module, launch_facts(file.launch(case), file.facts, "sm_90"))
    Virtualise().apply(Context(), module)
    (kernel,) = module.body.ops
    assert isinstance(kernel, KernelOp)
    facts, accesses = facts_of(kernel), all_shared_accesses(kernel)
    assert accesses
    assert facts.block is not None
    seen = look(kernel, Propagation(kernel, facts, "sm_90"), facts.block, accesses)
    assert (executions(seen), least_wavefronts(seen), total_wavefronts(seen)) == (runs, least, actual)
