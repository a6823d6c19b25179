"""What was measured, as a page and as an overlay of the latency table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from importlib.resources import files
from typing import Any

from sassir.machine.latency import CERTAIN, KINDS, Cell, Cells, parse_cells, print_matrices

ARCH = "sm_90"
Hazards = Iterable[Mapping[str, Any]]

TITLES = {
    "raw": "Read after write: from the writer to the reader",
    "waw": "Write after write: from the slow writer to the second one",
    "war": "Write after read: from the reader to the writer",
}
FILES = {"R": "general registers", "P": "predicates", "UR": "uniform registers", "UP": "uniform predicates"}
LATE = ("R.late", "R.memory")
"""Readers whose operands a scoreboard guards: their distances are no rule."""


def distances(hazards: Hazards) -> dict[str, dict[tuple[str, str], int]]:
    """The distance that each cell needs: the largest of its pairs, by kind and lines. Pairs that show nothing are left out."""
    found: dict[str, dict[tuple[str, str], int]] = {kind: {} for kind in TITLES}
    for h in hazards:
        if h["distance"] is not None:
            cell = h["first"], h["second"]
            found[h["kind"]][cell] = max(found[h["kind"]].get(cell, 0), h["distance"])
    return found


def overlay(measured: Mapping[str, Any]) -> str:
    """The cells of the latency table that are uncertain and were measured."""
    table, limits = _table(), {(h["kind"], h["first"], h["second"]): h["limit"] for h in measured["hazards"]}
    decided: dict[str, Cells] = {kind: {} for kind in KINDS}
    for kind, cells in distances(measured["hazards"]).items():
        for (first, second), cycles in cells.items():
            cell = KINDS[kind][0].number[first], KINDS[kind][1].number[second]
            if first not in LATE and table[kind][cell].letter not in CERTAIN and cycles <= limits[kind, first, second]:
                decided[kind][cell] = Cell(cycles, "g")
    where = f"{measured['device']['name']}, {measured['date']}"
    head = f"# Measured on {where}: docs/hopper-measured.md. Made by bench/hopper_measure.py; do not edit."
    return f"{head}\n# Only cells that the mined table leaves uncertain.\n\n{print_matrices(decided)}"


def page(measured: Mapping[str, Any], result: str) -> str:
    """docs/hopper-measured.md."""
    parts = [_introduction(measured, result), _hazards(measured), _intervals(measured), _rules(measured), _failed(measured)]
    return "\n".join([line for part in parts for line in part]) + "\n"


def _table() -> dict[str, Cells]:
    return parse_cells(files("sassir.machine").joinpath(f"tables/{ARCH}.txt").read_text("utf-8"))


def _introduction(measured: Mapping[str, Any], result: str) -> list[str]:
    device = measured["device"]
    return [
        "# Measured on Hopper",
        "",
        f"{device['name']}, CUDA {device['cuda']}, driver {device['driver']}, {measured['date']}, `{result}`. This page is made by",
        "`python bench/hopper_measure.py`, which runs probes of a few lines of SASS, assembled by sassir and put into a small cubin.",
        "",
        "One warp for each scheduler of one SM; code is fetched before it counts. *Distance* is the smallest sum of stall counts from",
        "which on every result is right; in parentheses what the table mined from ptxas has, where it differs (letters: EVIDENCE in",
        "sassir/machine/latency.py). `·`: the pair shows nothing.",
        "",
    ]


def _hazards(measured: Mapping[str, Any]) -> Iterator[str]:
    table = _table()
    for kind, cells in distances(measured["hazards"]).items():
        yield f"## {TITLES[kind]}"
        for file, what in FILES.items():
            rows = list(dict.fromkeys(first for first, _ in cells if first.startswith(f"{file}.")))
            columns = list(dict.fromkeys(second for first, second in cells if first.startswith(f"{file}.")))
            if not rows:
                continue
            head = "| | " + " | ".join([c.split(".", 1)[1] for c in columns]) + " |"
            yield from ["", f"{what}:", "", head, "|---" * (len(columns) + 1) + "|"]
            limits = {(h["first"], h["second"]): h["limit"] for h in measured["hazards"] if h["kind"] == kind}
            for row in rows:
                shown = [_distance(cells.get((row, column)), limits, table[kind], kind, row, column) for column in columns]
                yield f"| {row.split('.', 1)[1]} | " + " | ".join(shown) + " |"
        yield ""


def _distance(cycles: int | None, limits: Mapping[tuple[str, str], int], cells: Cells, kind: str, first: str, second: str) -> str:
    if cycles is None:
        return "·"
    if cycles > limits[first, second]:
        return f"> {limits[first, second]}"
    known: Cell = cells[KINDS[kind][0].number[first], KINDS[kind][1].number[second]]
    return f"{cycles}" if known.cycles == cycles or known.letter == "h" else f"{cycles} ({known.cycles}{known.letter})"


def _intervals(measured: Mapping[str, Any]) -> Iterator[str]:
    titles = {
        "issue": "Cycles from one instruction to the next of the same kind",
        "operands": "Register banks and operand reuse",
        "latency": "Cycles until a result without fixed latency is there",
        "memory": "Memory that is in no cache",
        "drain": "Stall 0: the warp waits until nothing is under way",
        "groups": "Matrix products of a warpgroup, from WARPGROUP.ARRIVE to WARPGROUP.DEPBAR",
    }
    for group, title in titles.items():
        found = [i for i in measured["intervals"] if i["group"] == group]
        if not found:
            continue
        four = any(i["four"] is not None for i in found)
        yield from [f"## {title}", "", "| | instruction | one warp |" + (" pipe, four warps |" if four else ""), "|---" * (3 + four) + "|"]
        for i in found:
            yield f"| {i['what']} | `{i['instruction']}` | {i['one']} |" + (f" {i['four']} |" if four else "")
        yield ""


def _rules(measured: Mapping[str, Any]) -> Iterator[str]:
    if measured["rules"]:
        explained = "Whether the results are those of the same instructions far apart."
        yield from ["## Scoreboards and queues", "", explained, "", "| sequence | same |", "|---|---|"]
        yield from [f"| {rule['what']} | {'yes' if rule['holds'] else '**no**'} |" for rule in measured["rules"]]
        yield ""


def _failed(measured: Mapping[str, Any]) -> Iterator[str]:
    if measured["failed"]:
        yield from ["## Not measured", "", *[f"- {group}: {why}" for group, why in measured["failed"].items()], ""]
