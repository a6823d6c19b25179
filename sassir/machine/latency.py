"""Latency matrices, and the text that holds them.

A table file has one block for each kind of dependence and register file:

    raw P      alu   fma guard
    alu         4m    5m   13m
    fma         5m    4n   13m
    alu guard   31337 pairs, 2040 of them closest, gemm.sm_90.cubin[12]+0x2f0

The head names the second accesses. A cell is the smallest distance in cycles and a letter for where it comes from (`EVIDENCE`).
What is known beyond that follows the matrix, one line a cell: first access, second access, remark.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from sassir.machine.classes import COLUMNS, FILES, ROWS

EVIDENCE = {
    "m": "mined from code of ptxas",
    "c": "chain kernel compiled by ptxas",
    "g": "measured on a GPU",
    "h": "the hardware waits, or a scoreboard tells",
    "l": "loose, the smallest distance seen in code of ptxas, which may need less",
    "n": "published by Mesa NAK",
    "a": "assumed",
}
"""Where the cycles of a cell come from, by the letter in the table. The first four are certain."""
CERTAIN = "mcgh"

KINDS = {"raw": (ROWS, COLUMNS), "war": (COLUMNS, ROWS), "waw": (ROWS, ROWS), "waw-guarded": (ROWS, ROWS)}
"""The first and the second access of each kind of dependence. In `waw-guarded` the first writer has a guard."""


class Latency(NamedTuple):
    """The smallest number of cycles from the issue of the first instruction to the issue of the second."""

    cycles: int
    evidence: str
    """Where the number comes from."""
    certain: bool
    """False: the hardware may need less (the number is the careful one); code that keeps less is suspicious, not wrong."""


class Cell(NamedTuple):
    """A cell as the table file has it."""

    cycles: int
    letter: str
    remark: str = ""


UNRELATED = Latency(0, "registers of different files", True)
Matrix = tuple[tuple[Latency, ...], ...]
"""By first access and second access."""
Cells = dict[tuple[int, int], Cell]
"""The same, by the two numbers."""


def parse_matrices(*texts: str) -> dict[str, Matrix]:
    """The matrices of table texts, by kind; a cell of a later text replaces that of an earlier one.

    Raises ValueError for a malformed line, naming it, and for a cell that is missing.
    """
    parsed = [parse_cells(text) for text in texts]
    return {kind: _matrix(kind, {cell: known for cells in parsed for cell, known in cells[kind].items()}) for kind in KINDS}


def parse_cells(text: str) -> dict[str, Cells]:
    """The cells of a table text, which need not have all, by kind. `-` is a cell that it does not know.

    Raises ValueError for a malformed line, naming it.
    """
    cells: dict[str, Cells] = {kind: {} for kind in KINDS}
    kind, file, heads = "", "", list[str]()
    for line in text.splitlines():
        words = line.split()
        if not words or line.startswith("#"):
            continue
        try:
            if words[0] in KINDS:
                kind, file, *heads = words
                continue
            first, second = KINDS[kind]
            row = first.number[f"{file}.{words[0]}"]
            column = second.number.get(f"{file}.{words[1]}")
            if column is not None:
                cells[kind][row, column] = cells[kind][row, column]._replace(remark=" ".join(words[2:]))
                continue
            for head, cell in zip(heads, words[1:], strict=True):
                if cell != "-":
                    cells[kind][row, second.number[f"{file}.{head}"]] = Cell(int(cell[:-1]), cell[-1])
        except (KeyError, ValueError, IndexError) as error:
            raise ValueError(f"latency table, line {line!r}: {error!r}") from error
    return cells


def _matrix(kind: str, cells: Cells) -> Matrix:
    first, second = KINDS[kind]
    rows: list[tuple[Latency, ...]] = []
    for i, a in enumerate(first.names):
        row: list[Latency] = []
        for j, b in enumerate(second.names):
            if same_file(a, b) and (i, j) not in cells:
                raise ValueError(f"latency table: no cell {kind} {a} {b}")
            row.append(_latency(cells[i, j]) if same_file(a, b) else UNRELATED)
        rows.append(tuple(row))
    return tuple(rows)


def _latency(cell: Cell) -> Latency:
    evidence = EVIDENCE[cell.letter] + (f": {cell.remark}" if cell.remark else "")
    return Latency(cell.cycles, evidence, cell.letter in CERTAIN)


def same_file(first: str, second: str) -> bool:
    """Whether two lines, `R.alu` and `P.guard`, are of the same register file: only then they have a cell."""
    return first.partition(".")[0] == second.partition(".")[0]


def print_matrices(matrices: Mapping[str, Cells]) -> str:
    """The text of matrices, of which cells may be missing; the inverse of `parse_cells`."""
    blocks = [_block(kind, file, matrices[kind]) for kind in KINDS for file in FILES]
    return "\n\n".join([block for block in blocks if block]) + "\n"


def _block(kind: str, file: str, cells: Cells) -> str:
    """One matrix, with the lines that have a cell; empty if none has."""
    first, second = KINDS[kind]
    rows, columns = [
        [(i, axis.names[i].partition(".")[2]) for i in sorted({cell[side] for cell in cells}) if axis.names[i].startswith(f"{file}.")]
        for side, axis in enumerate((first, second))
    ]
    if not rows:
        return ""
    width = max(len(name) for _, name in columns) + 1
    margin = max(len(name) for _, name in [*rows, (0, f"{kind} {file}")])
    lines = [f"{f'{kind} {file}':{margin}}" + "".join([f"{name:>{width}}" for _, name in columns])]
    for i, name in rows:
        known = [f"{c.cycles}{c.letter}" if (c := cells.get((i, j))) else "-" for j, _ in columns]
        lines.append(f"{name:{margin}}" + "".join([f"{cell:>{width}}" for cell in known]))
    for i, a in rows:
        lines += [f"{a} {b} {c.remark}" for j, b in columns if (c := cells.get((i, j))) and c.remark]
    return "\n".join(lines)
