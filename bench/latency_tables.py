"""Do the committed latency tables come out again? Mines all of them anew from public code, and compares cell by cell.

    python bench/fetch_corpus.py DIR
    python bench/build_kernels.py --arch sm_75 --arch sm_80 --arch sm_86 --arch sm_89 --arch sm_90 --arch sm_90a \\
        --arch sm_100 --arch sm_103 --arch sm_120 -o DIR/kernels
    python bench/latency_tables.py DIR [-o TABLES]

Needs ptxas of CUDA 13.0 on PATH, for the chain kernels. The tables are left in TABLES (DIR/tables if not said). Writes
bench/results/latency-tables.json; exits with 1 if a cell differs.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from rich.console import Console
from rich.table import Table

from sassir.cli.main import main as sassir
from sassir.machine.instructions import OVERRIDES
from sassir.machine.latency import parse_cells

ROOT = Path(__file__).parent.parent
COMMITTED = ROOT / "sassir" / "machine" / "tables"
CODE = (
    "libraries/nvidia/*/lib/libnvjpeg.so.1?",
    "libraries/bitsandbytes/libbitsandbytes_cuda*.so",
    "cubins/*.cubin",
    "kernels/*.cubin",
)


@dataclass
class Comparison:
    """A table mined anew, beside the committed one."""

    mined_from: str
    seconds: float
    cells: int = 0
    same: int = 0
    other_evidence: list[str] = field(default_factory=list[str])
    other_cycles: list[str] = field(default_factory=list[str])


def mine(arch: str, files: list[Path], where: Path) -> Comparison:
    """Mine the table of an architecture into `where`, and compare it."""
    start = time.monotonic()
    if sassir(["mine-latencies", "--arch", arch, "-o", str(where), *map(str, files)]):
        raise SystemExit(f"no table of {arch}")
    text, committed = [(folder / f"{arch}.txt").read_text("utf-8") for folder in (where, COMMITTED)]
    found = Comparison(text.splitlines()[1].removeprefix("# "), round(time.monotonic() - start, 1))
    mined, known = parse_cells(text), parse_cells(committed)
    for kind, cells in known.items():
        for cell in cells | mined[kind]:
            found.cells += 1
            a, b = [None if c is None else (c.cycles, c.letter) for c in (cells.get(cell), mined[kind].get(cell))]
            if a == b:
                found.same += 1
                continue
            where_from = found.other_cycles if a is None or b is None or a[0] != b[0] else found.other_evidence
            where_from.append(f"{kind} {cell}: committed {a}, mined {b}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("-o", "--output", type=Path, metavar="TABLES")
    options = parser.parse_args()
    where = options.output or options.folder / "tables"
    files = [f for pattern in CODE for f in sorted(options.folder.glob(pattern))]
    files += [f for pattern in ("*.cubin", "timers.fatbin") for f in sorted((ROOT / "tests" / "cubins").glob(pattern))]
    found = {arch: mine(arch, files, where) for arch in OVERRIDES}
    result = {"date": date.today().isoformat(), "architectures": {arch: vars(comparison) for arch, comparison in found.items()}}
    (ROOT / "bench" / "results" / "latency-tables.json").write_text(json.dumps(result, indent=1) + "\n", "utf-8")
    table = Table("architecture", "cells", "same", "other evidence", "other cycles", "seconds")
    for arch, c in found.items():
        table.add_row(arch, str(c.cells), str(c.same), str(len(c.other_evidence)), str(len(c.other_cycles)), f"{c.seconds:.0f}")
    Console().print(table)
    sys.exit(any(c.same < c.cells for c in found.values()))


if __name__ == "__main__":
    main()
