"""The probes of bench/hopper_measure.py find the distance that the machine needs: here a machine of which it is known.

The timed emulator gives a result after exactly the cycles of the latency table, so the probes must measure that table.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sassir.emulator import emulate
from sassir.launch import Launch, Outputs
from sassir.machine import machine
from sassir.machine.latency import KINDS, parse_cells

BENCH = Path(__file__).parents[2] / "bench"
PAIRS = [
    ("raw", "R.alu", "R.wide.hi", 3),
    ("raw", "R.wide.hi", "R.alu", 5),
    ("raw", "P.alu.b", "P.guard", 13),
    ("raw", "UR.udp", "UR.vector", 6),
]


class Emulator:
    """Stands in for the process that runs a kernel on the GPU."""

    def __init__(self, timed: bool) -> None:
        self.timed = timed

    def run(self, cubin: bytes, launch: Launch) -> Outputs:
        """As the process does; what is only suspicious is no error."""
        return emulate(cubin, launch, warn=lambda _: None, timed=self.timed)


@pytest.fixture
def hopper(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The probes, which are scripts."""
    monkeypatch.setattr(sys, "path", [str(BENCH), *sys.path])
    from hopper import hazards, intervals, orders, report  # type: ignore[import-not-found]

    return SimpleNamespace(hazards=hazards, intervals=intervals, orders=orders, report=report)


def test_the_smallest_distance_is_that_of_the_table(hopper: Any) -> None:
    chosen: dict[tuple[str, str, str], Any] = {}
    for kind, first, second, _ in PAIRS:
        every = hopper.hazards.pairs(kind)
        chosen[kind, first, second] = next(p for p in every if (p.first, p.second) == (first, second))._replace(limit=14)
    found = hopper.hazards.measure(Emulator(timed=True), list(chosen.values()))
    assert [(f["kind"], f["first"], f["second"], f["distance"]) for f in found] == PAIRS
    description = machine("sm_90")
    for kind, first, second, distance in PAIRS:
        axes = KINDS[kind]
        assert description.raw[axes[0].number[first]][axes[1].number[second]].cycles == distance, kind


def test_every_group_runs(hopper: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hopper.intervals, "COPIES", 2)
    monkeypatch.setattr(hopper.intervals, "ROUNDS", 1)
    for group in hopper.intervals.GROUPS:
        rows, _ = hopper.intervals.GROUPS[group]
        if group != "memory":
            assert len(hopper.intervals.measure(Emulator(timed=False), group)) == len(rows)


def test_every_sequence_runs(hopper: Any) -> None:
    assert all(rule.holds for rule in hopper.orders.measure(Emulator(timed=False)))


def test_a_result_becomes_a_page_and_an_overlay(hopper: Any) -> None:
    pair = next(p for p in hopper.hazards.pairs("raw") if (p.first, p.second) == ("R.wide.lo", "R.fp16"))
    measured = {
        "device": {"name": "A GPU", "cuda": "13.0", "driver": "1"},
        "date": "2026-01-01",
        "hazards": [json.loads(json.dumps(pair._asdict() | {"distance": 3}))],
        "intervals": [{"group": "issue", "what": "FFMA", "instruction": "FFMA R40, R4, R5, R6", "one": 2.0, "four": 1.0}],
        "rules": [{"what": "LDS returns before a younger LDS", "holds": True}],
        "failed": {"memory": "no result"},
    }
    page = hopper.report.page(measured, "bench/results/x.json")
    assert "| FFMA | `FFMA R40, R4, R5, R6` | 2.0 | 1.0 |" in page
    assert "| LDS returns before a younger LDS | yes |" in page
    assert "- memory: no result" in page
    overlay = parse_cells(hopper.report.overlay(measured))
    assert [(known.cycles, known.letter) for known in overlay["raw"].values()] == [(3, "g")]
