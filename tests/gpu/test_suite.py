"""The suite: what belongs to it, what its reports hold, and what counts as a regression; all without a GPU."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from sassir.errors import LaunchError
from sassir.gpu.cause import explain
from sassir.gpu.counters import Counters
from sassir.gpu.device import DeviceInfo
from sassir.gpu.pair import Measured, Resources, Result, Side
from sassir.gpu.report import COLUMNS, Setting, as_json, markdown
from sassir.gpu.statistics import Comparison, Times, Verdict
from sassir.gpu.suite import find_suite, read_results, regressions

BENCH = Path(__file__).parents[2] / "bench"
SETTING = Setting(DeviceInfo("GPU", "sm_90", "13.0", "580", "2026.1"), {"bytes": 4e12, "f32": 6e13}, "abc", "ncu", 12.3)


def side(registers: int = 32, local: int = 0, occupancy: float = 1, executed: int = 1000, **stalls: float) -> Side:
    return Side([Resources("k", registers, local, 0, 64, occupancy)], [Counters(executed, stalls)])


def result(ratio: float, verdict: Verdict = "same", kernel: str = "k", sides: tuple[Side, Side] | None = None) -> Result:
    """A launch at which the original takes `ratio` times 100 µs."""
    times = Times(1e-4 * ratio, 1e-4 * ratio, 0.01), Times(1e-4, 1e-4, 0.01)
    comparison = Comparison(*times, ratio, ratio * 0.998, ratio * 1.002, 0.002, verdict)
    measured = Measured(comparison, 40, 5, 3, *(sides or (side(), side())), {"bytes": 3.6e12}, {"bytes": 0.9})
    return Result(kernel, "full", "equal", measured=measured)


def test_every_kernel_of_the_suite_is_there() -> None:
    entries = find_suite(BENCH, "sm_90")
    assert {e.kernel for e in entries} == {path.stem for path in (BENCH / "launch").glob("*.toml")}
    assert len(entries) == 38
    assert [e.kernel for e in find_suite(BENCH, "sm_90", ["saxpy_gs", "nbody"])] == ["saxpy_gs", "nbody"]
    assert {e.toolkit() for e in entries if e.kernel.startswith("triton")} == {"12.8"}


@pytest.mark.parametrize(("arch", "kernels", "message"), [("sm_70", [], "no cubins for sm_70"), ("sm_90", ["axpy"], "no kernel 'axpy'")])
def test_what_is_missing_is_named(arch: str, kernels: list[str], message: str) -> None:
    with pytest.raises(LaunchError, match=message):
        find_suite(BENCH, arch, kernels)


def test_reports_hold_every_figure_and_can_be_read_back(tmp_path: Path) -> None:
    results = [result(1.25, "faster"), Result("broken", "full", "failed", "an illegal address")]
    found = json.loads(json.dumps(as_json(SETTING, results, pipeline="p")))
    assert (found["device"]["name"], found["commit"], found["pipeline"], found["ceilings"]["bytes"]) == ("GPU", "abc", "p", 4e12)
    measured = found["results"][0]["measured"]
    assert measured["comparison"]["verdict"] == "faster"
    assert measured["comparison"]["original"]["median"] == pytest.approx(1.25e-4)
    assert measured["original"]["resources"][0]["registers"] == 32
    assert measured["candidate"]["counters"][0]["executed"] == 1000
    assert {key: value for key, value in found["results"][1].items() if value} == {
        "kernel": "broken",
        "launch": "full",
        "outcome": "failed",
        "detail": "an illegal address",
    }
    (tmp_path / "old.json").write_text(json.dumps(found))
    assert list(regressions(read_results(tmp_path / "old.json"), [*results, result(1, kernel="new")], {"k", "broken"})) == []


def test_the_table_has_a_line_for_each_launch() -> None:
    table = markdown(SETTING, [result(1.25, "faster"), Result("broken", "full", "failed", "an illegal address")], "Title", "Remark.")
    rows = [line for line in table.splitlines() if line.startswith("|")]
    assert [row.count("|") for row in rows] == [len(COLUMNS) + 1] * 4
    assert "| k | full | equal | 125.0 | 100.0 | 1.250 | 1.248 to 1.252 | faster | 90% bytes |" in rows[2]
    assert rows[2].endswith("| 32 | 0 | 100% | 64 | 1,000 |  |")
    assert "**failed**" in rows[3]
    assert "an illegal address" in rows[3]
    assert "2 launches: 1 equal, 1 failed." in table
    assert "Remark." in table


@pytest.mark.parametrize(
    ("now", "message"),
    [
        (result(1.24), None),
        (result(1.30), None),
        (result(1.20), "slower than before: original / candidate was 1.248 to 1.252, is 1.198 to 1.202"),
        (replace(result(1.25), outcome="different", measured=None, detail="y[3]"), "results different: y[3]"),
        (result(1.25, kernel="other"), "measured before, missing now"),
    ],
    ids=["within noise", "faster", "slower", "wrong", "missing"],
)
def test_a_slowdown_beyond_noise_is_a_regression(now: Result, message: str | None) -> None:
    old = as_json(SETTING, [result(1.25)])
    assert list(regressions(old, [now], {"k"})) == ([f"k, launch full: {message}"] if message else [])


@pytest.mark.parametrize("text", ["", "[]", '{"results": [{}]}'])
def test_another_file_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(LaunchError, match="not a result of bench-suite"):
        read_results(tmp_path / "x.json")


@pytest.mark.parametrize(
    ("original", "candidate", "verdict", "cause"),
    [
        (side(64, local=304), side(103), "faster", "304 → 0 bytes of local memory; 64 → 103 registers"),
        (side(executed=1000), side(executed=900), "faster", "10% fewer instructions executed"),
        (side(occupancy=0.5), side(occupancy=0.75), "faster", "occupancy 50% → 75%"),
        (
            side(long_scoreboard=8, wait=1),
            side(long_scoreboard=5, wait=1.1),
            "faster",
            "less waiting for long scoreboard (8.00 → 5.00 cycles an instruction)",
        ),
        (side(), side(executed=1030), "slower", "3% more instructions executed"),
        (side(), side(), "slower", "no resource and no counter explains it"),
        (side(), side(), "same", "bound by memory (90% of the ceiling)"),
    ],
)
def test_the_likely_cause_is_named(original: Side, candidate: Side, verdict: Verdict, cause: str) -> None:
    measured = result(1.2, verdict, sides=(original, candidate)).measured
    assert measured is not None
    assert explain(measured) == cause


def test_equal_times_far_from_every_ceiling_are_explained_by_what_warps_wait_for() -> None:
    measured = result(1, sides=(side(wait=2, barrier=6.5), side(wait=2, barrier=6.5))).measured
    assert measured is not None
    measured.shares = {"bytes": 0.3}
    assert explain(measured) == "waits for barrier (6.5 of 8.5 cycles an instruction)"
