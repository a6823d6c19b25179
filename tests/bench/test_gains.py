"""The figures of docs/gains.md: from results alone, whatever these say."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

gains: Any = pytest.importorskip("gains")
newest: Any = pytest.importorskip("newest")

RESOURCES = {"registers": 32, "local": 0, "instructions": 64, "occupancy": 1.0}
BENCH = Path(gains.__file__).parent


def result(kernel: str, ratio: float, launch: str = "full", stalls: dict[str, float] | None = None) -> dict[str, Any]:
    """What `sassir bench-suite` writes of one launch."""
    side = {"resources": [RESOURCES], "counters": [{"executed": 2_000_000, "stalls": stalls}] if stalls else []}
    times = {"original": {"median": 1e-4}, "candidate": {"median": 1e-4 / ratio}, "ratio": ratio}
    return {"kernel": kernel, "launch": launch, "measured": {"comparison": times, "original": side, "candidate": side | {"counters": []}}}


def suite(*results: dict[str, Any]) -> dict[str, Any]:
    return {"date": "2026-02-01", "results": list(results)}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Results that the figures find, in place of those of bench/results."""
    monkeypatch.setattr(gains, "RESULTS", tmp_path)
    return tmp_path


def test_the_fastest_register_cap_stands_beside_a_gain(folder: Path) -> None:
    for cap, ratio in ((32, 0.9), (64, 1.5), (128, 1.2)):
        (folder / f"suite-maxrregcount-{cap}-builds-x.json").write_text(json.dumps(suite(result("dgemv_col", ratio))))
    rows = list(gains.gains(suite(result("dgemv_col", 3.0), result("triton_matmul", 1.1), result("spmv_csr", 1.0))))[2:]
    assert [row.split(" | ")[:4] for row in rows] == [
        ["| dgemv_col", "100.0 → 33.3", "3.00", "1.50 (64)"],
        ["| triton_matmul", "100.0 → 90.9", "1.10", "no source"],
    ]


def test_totals_count_gains_and_name_losses(folder: Path) -> None:
    for cap in (32, 64, 128):
        (folder / f"suite-maxrregcount-{cap}-builds-x.json").write_text(json.dumps(suite(result("dgemv_col", 1.44), result("nbody", 0.9))))
    found = suite(result("dgemv_col", 4.0), result("nbody", 0.98), result("triton_matmul", 1.0), result("nbody", 9.0, "medium"))
    full = list(gains.totals(found))[1]
    mean = (4.0 * 0.98) ** 0.5
    assert full == f"| 30 CUDA kernels | full | {mean:.3f} | 1 of 2 | nbody full 0.980 | 1.200 |"


def test_a_gain_nobody_explained_is_said(folder: Path) -> None:
    assert "**new_kernel.** Not looked at yet." in "\n".join(gains.reasons(suite(result("new_kernel", 1.5))))


def test_stalls_come_from_the_counters(folder: Path) -> None:
    text = " ".join("\n".join(gains.reasons(suite(result("nbody", 2.0, stalls={"long_scoreboard": 30.0, "wait": 0.2})))).split())
    assert text.endswith("Stalls of the original: long scoreboard 30.0 cycles an instruction, 2.0 million instructions.")


@pytest.mark.parametrize(("ratio", "explained"), [(1.2, True), (1.9, False)])
def test_what_stays_behind_the_source_is_explained(ratio: float, explained: bool) -> None:
    assert ("**conv3x3** stays behind" in "\n".join(gains.bounds(suite(result("conv3x3", ratio))))) == explained


def test_every_kernel_with_sentences_is_in_the_suite() -> None:
    told = tomllib.loads((BENCH / "gains.toml").read_text(encoding="utf-8"))
    assert told.keys() <= {file.stem for file in (BENCH / "launch").glob("*.toml")}
    for kernel, entry in told.items():
        assert {"inefficient", "changed", "faster"} <= entry.keys(), kernel
