"""Planted bugs: a mutant that violates a dependence is reported where it does; bench/mutants.py plants more of them."""

from __future__ import annotations

import importlib
import sys
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
CUBINS = ROOT / "tests" / "cubins"
COUNT = 60


@pytest.fixture(scope="module")
def mutants() -> Any:
    sys.path.insert(0, str(ROOT / "bench"))
    try:
        return importlib.import_module("mutants")
    finally:
        sys.path.remove(str(ROOT / "bench"))


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90", "sm_100", "sm_120"])
def test_every_violation_is_reported(mutants: Any, arch: str) -> None:
    files = [CUBINS / f"{name}.{arch}.cubin" for name in ("axpy", "calls")]
    violating = [tried for tried in islice(mutants.tries(files, seed=7), 4 * COUNT) if tried.violated]
    assert len(violating) >= COUNT
    assert [mutants.describe(tried) for tried in violating if tried.missed] == []
    assert {tried.mutant.kind for tried in violating} == {"stall", "wait", "scoreboard", "signal", "swap"}


@pytest.mark.parametrize("name", ["aes_tconst.sm_90", "fuse2.sm_90", "loop.sm_80"])
def test_in_loops_too(mutants: Any, name: str) -> None:
    violating = [tried for tried in islice(mutants.tries([CUBINS / f"{name}.cubin"], seed=3), 3 * COUNT) if tried.violated]
    assert len(violating) >= COUNT // 2
    assert not any(tried.missed for tried in violating)
