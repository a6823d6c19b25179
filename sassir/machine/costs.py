"""How long instructions of variable latency usually take: to order code by and to predict its time. No correct result may rest on it."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import NamedTuple


class Cost(NamedTuple):
    """Cycles after issue, for one warp that nothing disturbs."""

    read: int
    """Until the operands are read: a writer that waits for the read scoreboard may issue."""
    result: int
    """Until the result is there: a reader that waits for the write scoreboard may issue."""
    source: str
    """Where the numbers come from."""


_OTHER = "other"
"""The row for all that have none."""


def cost(arch: str, mnemonic: str, modifiers: tuple[str, ...] = ()) -> Cost:
    """The cost of an instruction of variable latency; a load hits the first level of the cache."""
    rows = _rows(arch)
    fitting = [(len(needed), found) for needed, found in rows.get(mnemonic, rows[_OTHER]) if needed.issubset(modifiers)]
    return max(fitting, key=lambda row: row[0])[1] if fitting else rows[_OTHER][0][1]


@cache
def _rows(arch: str) -> dict[str, list[tuple[frozenset[str], Cost]]]:
    """The rows by mnemonic: those of the file for all architectures, replaced by those measured on this one."""
    known: dict[tuple[str, frozenset[str]], Cost] = {}
    for name in ("costs", f"{arch}.costs"):
        file = files("sassir.machine").joinpath(f"tables/{name}.txt")
        if file.is_file():
            known |= dict(_parse(line) for line in file.read_text("utf-8").splitlines() if line and not line.startswith("#"))
    rows: dict[str, list[tuple[frozenset[str], Cost]]] = {}
    for (mnemonic, needed), found in known.items():
        rows.setdefault(mnemonic, []).append((needed, found))
    return rows


def _parse(line: str) -> tuple[tuple[str, frozenset[str]], Cost]:
    """A row: instruction, cycles until operands are read, cycles until the result is there, source."""
    name, read, result, source = (cell.strip() for cell in line.split("|"))
    mnemonic, *modifiers = name.split(".")
    return (mnemonic, frozenset(modifiers)), Cost(int(read), int(result), source)


_SHAPE = re.compile(r"64x(\d+)x\d+")


def product_cycles(modifiers: tuple[str, ...]) -> float:
    """The cycles that a warpgroup product, `64x128x16`, keeps the tensor unit of each scheduler.

    A row of the unit takes 256 bits of each factor a cycle, whatever the type: 4,096 operations on 16-bit floats a cycle and
    multiprocessor (H100 white paper: 989 TFLOP/s at 1,830 MHz).
    """
    shape = next((match for m in modifiers if (match := _SHAPE.fullmatch(m))), None)
    return int(shape[1]) / 2 if shape else 128.0
