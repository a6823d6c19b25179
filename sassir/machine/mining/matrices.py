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

from sassir.encoders.library import CHAIN
from sassir.machine.classes import COLUMNS, FILES, ROWS
from sassir.machine.kinds import own_classes
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
    "sm_103": (("sm_100", 0),),
    "sm_120": (("sm_100", 1),),
}
"""Which published tables speak for an architecture, and the cycles to add to a RAW latency. NAK has none for sm_90, between two that
it has, and uses those of sm_100 with a cycle more for sm_120."""
OWN = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_100")
"""Where they are for the architecture itself."""

Shown = Mapping[tuple[int, int], Sample]
"""Samples of one kind of dependence by cell."""


def matrices(arch: str, code: Samples, chains: Samples) -> dict[str, Cells]:
    """The cells of an architecture's matrices, by kind: all, or those that the architecture does not share with another one."""
    shown = {kind: _together(code.cells(kind), chains.cells(kind)) for kind in KINDS}
    known = {kind: _known_cells(kind, arch, *shown[kind]) for kind in KINDS}
    cells = {kind: _complete(kind, known, shown[kind][0]) for kind in KINDS}
    if arch in CHAIN:
        return cells
    own = {f"{file}.{name}" for name in own_classes(arch) - {"late"} for file in FILES}
    return {kind: {cell: found for cell, found in cells[kind].items() if _writers(kind, cell) & own} for kind in KINDS}


def _writers(kind: str, cell: tuple[int, int]) -> set[str]:
    """The lines of a cell that write."""
    return {axis.names[line] for axis, line in zip(KINDS[kind], cell, strict=True) if axis is ROWS}


def _together(code: Shown, chains: Shown) -> tuple[Shown, set[tuple[int, int]]]:
    """The samples of real code and of chain kernels as one, and the cells in which a chain kernel shows the least."""
    both = dict(code)
    from_chain: set[tuple[int, int]] = set()
    for cell, chain in chains.items():
        real = code.get(cell)
        if real is None:
            both[cell] = chain
        else:
            closest = chain if chain.cycles < real.cycles else real
            tight = sum(s.tight for s in (real, chain) if s.cycles == closest.cycles)
            both[cell] = closest._replace(pairs=real.pairs + chain.pairs, tight=tight)
        if real is None or real.pairs < ENOUGH or chain.cycles < real.cycles:
            from_chain.add(cell)
    return both, from_chain


def _wanted(kind: str) -> list[tuple[int, int]]:
    first, second = KINDS[kind]
    return [(i, j) for i, a in enumerate(first.names) for j, b in enumerate(second.names) if same_file(a, b)]


def _known_cells(kind: str, arch: str, shown: Shown, from_chain: set[tuple[int, int]]) -> Cells:
    """The cells that evidence decides."""
    published = _published(kind, arch)
    found: Cells = {}
    for cell in _wanted(kind):
        waits, sample, told = _waits(kind, cell[0]), shown.get(cell), published.get(cell)
        if waits is not None:
            found[cell] = waits
        elif sample is not None and _is_enough(kind, sample, cell in from_chain, told):
            sure = "c" if cell in from_chain else "m" if sample.pairs >= ENOUGH else "l"
            found[cell] = _cell(sample, "l" if _may_be_less(kind, sample, told) else sure)
        elif told is not None:
            found[cell] = told
    return found


def _is_enough(kind: str, sample: Sample, from_chain: bool, published: Cell | None) -> bool:
    """Whether the samples decide: there are enough of them, or an assumption is too careful; and the smallest distance is no chance."""
    assumed = published is not None and published.letter == "a" and sample.cycles < published.cycles
    if sample.pairs < ENOUGH and not (kind == "raw" and (from_chain or assumed)):
        return False
    if published is not None and published.cycles >= sample.cycles:
        return True
    often = kind == "raw" or sample.tight >= OFTEN * sample.pairs
    return often and (published is None or sample.cycles <= 2 * published.cycles + 4)


def _may_be_less(kind: str, sample: Sample, published: Cell | None) -> bool:
    """Less is published; or nothing is, and the register is one that ptxas had no reason to overwrite sooner."""
    return published.cycles < sample.cycles if published is not None else kind != "raw" and sample.cycles > 2


def _cell(sample: Sample, letter: str) -> Cell:
    return Cell(sample.cycles, letter, f"{sample.pairs} pairs, {sample.tight} of them closest, {sample.place}")


def _complete(kind: str, known: Mapping[str, Cells], shown: Shown) -> Cells:
    """The matrix with careful values where nothing decides: the largest of the first access, to a reader if it is a writer (what is
    overwritten counts as read); the largest of the second access where nothing is known of the first either; less if it was seen."""
    first, second = _largest(known["war" if kind == "war" else "raw"])[0], _largest(known[kind])[1]
    cells: Cells = {}
    for i, j in _wanted(kind):
        careful = Cell(first.get(i) or second.get(j, 1), "a")
        seen = shown.get((i, j))
        cells[i, j] = known[kind].get((i, j)) or (_cell(seen, "l") if seen and seen.cycles <= careful.cycles else careful)
    return cells


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


def _published(kind: str, arch: str) -> Cells:
    """Published cells; the largest where several tables speak. Those for other architectures are assumptions for this one."""
    found: Cells = {}
    for other, more in PUBLISHED[arch]:
        for cell, known in _table(other)[kind].items():
            cycles = known.cycles + (more if kind == "raw" else 0)
            if cell not in found or cycles > found[cell].cycles:
                remark = f"as published for {other}, {more} more" if more else f"as published for {other}"
                found[cell] = Cell(cycles, "n") if arch in OWN else Cell(cycles, "a", remark)
    return found


@cache
def _table(arch: str) -> dict[str, Cells]:
    return parse_cells(files("sassir.machine.mining").joinpath(f"published/{arch}.txt").read_text("utf-8"))
