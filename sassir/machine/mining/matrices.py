"""From samples to the matrices of an architecture: which evidence counts for a cell.

In this order: `ENOUGH` pairs in real code, or for RAW a chain kernel; what Mesa NAK publishes; the largest distance that the first
access is known to need elsewhere. ptxas stalls exactly as long as a result takes, but a register that is overwritten unread, or
soon after its last reader, is rare. So where NAK publishes less than was seen, the number seen counts if pairs often are that
close, marked loose; else it is chance, and the published one counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from sassir.machine.classes import COLUMNS, ROWS
from sassir.machine.latency import CERTAIN, KINDS, Cell, Cells, parse_cells, same_file
from sassir.machine.mining.samples import Sample, Samples

ENOUGH = 20
"""Pairs that make a minimum credible."""
OFTEN = 0.1
"""The share of the closest pairs that shows that ptxas stalls for this dependence."""

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
    return {kind: _complete(kind, base, code.cells(kind), chains.cells(kind)) for kind in KINDS}


def _complete(kind: str, base: str, code: Shown, chains: Shown) -> Cells:
    first, second = KINDS[kind]
    wanted = [(i, j) for i, a in enumerate(first.names) for j, b in enumerate(second.names) if same_file(a, b)]
    published = _published(kind, base)
    cells: Cells = {}
    for cell in wanted:
        known = _waits(kind, *cell) or _known(kind, code.get(cell), chains.get(cell), published.get(cell))
        if known is not None:
            cells[cell] = known
    certain = {cell: known for cell, known in cells.items() if known.letter in CERTAIN and known.letter != "h"}
    for i, j in wanted:
        if (i, j) not in cells:
            row = [known.cycles for cell, known in certain.items() if cell[0] == i]
            column = [known.cycles for cell, known in certain.items() if cell[1] == j]
            cells[i, j] = Cell(max(row or column, default=1), "a")
    return cells


def _waits(kind: str, i: int, j: int) -> Cell | None:
    """Where distance does not matter: results and operands that are late, and convergence barriers."""
    first, second = KINDS[kind]
    if first.names[i].startswith("B."):
        return Cell(0, "h")
    if first is ROWS and first.names[i].endswith(".late"):
        return Cell(0, "h")
    if first is COLUMNS and first.names[i] == "R.memory":
        return Cell(1, "h")
    return None


def _known(kind: str, code: Sample | None, chain: Sample | None, published: Cell | None) -> Cell | None:
    """What samples and published values say; None if they say nothing."""
    shown = _together(code, chain)
    if shown is None or (shown.count < ENOUGH and not (kind == "raw" and chain is not None)):
        return published
    letter = "m" if code is not None and code.count >= ENOUGH and code.cycles == shown.cycles else "c"
    if published is not None and published.cycles < shown.cycles:
        if shown.tight < OFTEN * shown.count:
            return published
        letter = "l"
    return Cell(shown.cycles, letter, f"{shown.count} pairs, {shown.tight} of them closest, {shown.place}")


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
                found[cell] = Cell(cycles, "n") if base in OWN else Cell(cycles, "a", f"as published for {arch}" + (", and one" if more else ""))
    return found


@cache
def _table(arch: str) -> dict[str, Cells]:
    return parse_cells(files("sassir.machine.mining").joinpath(f"published/{arch}.txt").read_text("utf-8"))
