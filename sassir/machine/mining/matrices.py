"""From samples to the matrices of an architecture: which evidence counts for a cell.

`ENOUGH` pairs in real code count, and for RAW a single chain kernel; else what Mesa NAK publishes; else fewer pairs; else the most
careful value of the first access. ptxas stalls exactly as long as a result takes, but it rarely needs to: a register that is
overwritten unread, or soon after its last reader, is rare. Where NAK publishes less than was seen, the number seen is kept, marked
loose, unless it is clearly chance; then the published one counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from sassir.machine.classes import COLUMNS, ROWS
from sassir.machine.latency import KINDS, Cell, Cells, parse_cells, same_file
from sassir.machine.mining.samples import Sample, Samples

ENOUGH = 20
"""Pairs that make a minimum credible."""
OFTEN = 0.1
"""The share of the closest pairs that shows that ptxas stalls for a WAR or WAW."""

PUBLISHED = {
    "sm_75": (("sm_75", 0),),
    "sm_80": (("sm_80", 0),),
    "sm_86": (("sm_80", 0),),
    "sm_89": (("sm_80", 0),),
    "sm_90": (("sm_80", 0), ("sm_100", 0)),
    "sm_100": (("sm_100", 0),),
    "sm_120": (("sm_100", 1),),
}
"""Which published tables speak for an architecture, and the cycles to add to a RAW latency. NAK has none for sm_90, between two that
it has, and uses those of sm_100 with a cycle more for sm_120."""
OWN = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_100")
"""Where they are for the architecture itself."""

Shown = Mapping[tuple[int, int], Sample]
"""Samples of one kind of dependence by cell."""


def matrices(base: str, code: Samples, chains: Samples) -> dict[str, Cells]:
    """All cells of an architecture's matrices, by kind."""
    known = {kind: _known_cells(kind, base, code.cells(kind), chains.cells(kind)) for kind in KINDS}
    return {kind: _complete(kind, known) for kind in KINDS}


def _wanted(kind: str) -> list[tuple[int, int]]:
    first, second = KINDS[kind]
    return [(i, j) for i, a in enumerate(first.names) for j, b in enumerate(second.names) if same_file(a, b)]


def _known_cells(kind: str, base: str, code: Shown, chains: Shown) -> Cells:
    published = _published(kind, base)
    found = {cell: _waits(kind, cell[0]) or _known(kind, code.get(cell), chains.get(cell), published.get(cell)) for cell in _wanted(kind)}
    return {cell: known for cell, known in found.items() if known is not None}


def _complete(kind: str, known: Mapping[str, Cells]) -> Cells:
    """The matrix with careful values where nothing is known: the largest of the first access, to a reader if it is a writer (what is
    overwritten counts as read); the largest of the second access where nothing is known of the first either."""
    first, second = _largest(known["war" if kind == "war" else "raw"])[0], _largest(known[kind])[1]
    return {(i, j): known[kind].get((i, j)) or Cell(first.get(i) or second.get(j, 1), "a") for i, j in _wanted(kind)}


def _largest(cells: Cells) -> tuple[dict[int, int], dict[int, int]]:
    """The largest distance by first and by second access; loose ones do not count, nor lines where the hardware waits."""
    found: tuple[dict[int, int], dict[int, int]] = ({}, {})
    for cell, known in cells.items():
        if known.letter not in "lh":
            for side, line in zip(found, cell, strict=True):
                side[line] = max(side.get(line, 1), known.cycles)
    return found


def _waits(kind: str, i: int) -> Cell | None:
    """Where distance does not matter: results and operands that are late, and convergence barriers."""
    axis = KINDS[kind][0]
    if axis.names[i].startswith("B.") or (axis is ROWS and axis.names[i].endswith(".late")):
        return Cell(0, "h")
    return Cell(1, "h") if axis is COLUMNS and axis.names[i] == "R.memory" else None


def _known(kind: str, code: Sample | None, chain: Sample | None, published: Cell | None) -> Cell | None:
    """What samples and published values say; None if they say nothing."""
    shown = _together(code, chain)
    if shown is None:
        return published
    remark = f"{shown.count} pairs, {shown.tight} of them closest, {shown.place}"
    if shown.count < ENOUGH and not (kind == "raw" and chain is not None):
        return published or Cell(shown.cycles, "l", remark)
    if published is not None and published.cycles < shown.cycles:
        chance = shown.cycles > 2 * published.cycles + 4 or (kind != "raw" and shown.tight < OFTEN * shown.count)
        return published if chance else Cell(shown.cycles, "l", remark)
    mined = code is not None and code.count >= ENOUGH and code.cycles == shown.cycles
    return Cell(shown.cycles, "m" if mined else "c", remark)


def _together(code: Sample | None, chain: Sample | None) -> Sample | None:
    """The samples of real code and of chain kernels as one."""
    if code is None or chain is None:
        return code or chain
    closest = min(code, chain)
    tight = sum(s.tight for s in (code, chain) if s.cycles == closest.cycles)
    return Sample(closest.cycles, code.count + chain.count, tight, closest.place)


def _published(kind: str, base: str) -> Cells:
    """Published cells; the largest where several tables speak. Those for other architectures are assumptions for this one."""
    found: Cells = {}
    for arch, more in PUBLISHED[base]:
        for cell, known in _table(arch)[kind].items():
            cycles = known.cycles + (more if kind == "raw" else 0)
            if cell not in found or cycles > found[cell].cycles:
                remark = f"as published for {arch}, {more} more" if more else f"as published for {arch}"
                found[cell] = Cell(cycles, "n") if base in OWN else Cell(cycles, "a", remark)
    return found


@cache
def _table(arch: str) -> dict[str, Cells]:
    return parse_cells(files("sassir.machine.mining").joinpath(f"published/{arch}.txt").read_text("utf-8"))
