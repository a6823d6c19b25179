"""README and docs quote what bench/results holds, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

figures: Any = pytest.importorskip("figures")

CHECKS = {
    "device": {"name": "GPU", "driver": "580", "cuda": "13.0"},
    "date": "2026-02-01",
    "records": [{"check": "a", "holds": True, "detail": "1 %"}, {"check": "b", "holds": False, "detail": "9 %"}],
}


@pytest.mark.parametrize("document", figures.DOCUMENTS, ids=[document.name for document in figures.DOCUMENTS])
def test_documents_agree_with_the_results(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    assert figures.refresh(text, document.parent) == text


def test_the_newest_result_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "RESULTS", tmp_path / "results")
    (tmp_path / "results").mkdir()
    for name, date in (("x-1", "2026-02-01"), ("x-2", "2026-01-01")):
        (tmp_path / "results" / f"{name}.json").write_text(json.dumps(CHECKS | {"date": date}))
    document = "Before.\n<!-- figures: checks x -->\nold\n<!-- end -->\nAfter.\n"
    assert figures.refresh(document, tmp_path / "docs").splitlines() == [
        "Before.",
        "<!-- figures: checks x -->",
        "GPU, driver 580, CUDA 13.0, 2026-02-01 ([result](../results/x-1.json)):",
        "1 of 2 hold:",
        "",
        "| checked | found |",
        "|---|---|",
        "| a | 1 % |",
        "| b | **does not hold** 9 % |",
        "<!-- end -->",
        "After.",
    ]


def test_what_nobody_measured_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "RESULTS", tmp_path)
    assert "Not measured yet." in figures.refresh("<!-- figures: suite x -->\n1.000\n<!-- end -->", tmp_path)


def test_a_change_that_the_checker_did_not_report_is_counted() -> None:
    outcomes: list[tuple[list[str], str]] = [(["raw"], "different"), ([], "failed"), (["raw"], "equal"), ([], "equal")]
    found = {"records": [{"reported": reported, "outcome": outcome} for reported, outcome in outcomes]}
    assert list(figures.KINDS["hazards"](found)) == [
        "4 launches of mutants. 2 give another result or fail; of these the checker reports 1.",
        "It also reports 1 of those that give the same result.",
    ]


def test_a_file_can_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where another result has a name that begins with its."""
    monkeypatch.setattr(figures, "RESULTS", tmp_path)
    for name, date in (("x", "2026-01-01"), ("x-y", "2026-02-01")):
        (tmp_path / f"{name}.json").write_text(json.dumps(CHECKS | {"date": date}))
    assert "2026-01-01" in figures.refresh("<!-- figures: checks x.json -->\n<!-- end -->", tmp_path)
    assert "2026-02-01" in figures.refresh("<!-- figures: checks x -->\n<!-- end -->", tmp_path)
