"""How good is the register allocator: what it refuses, how many registers and copies it takes, and how long it needs?

    python bench/allocation.py -o bench/results/allocation.json --seconds 60 bench=FOLDER corpus=FOLDER wheels=FOLDER

Three ways: `identity` gives freed registers back with the original ones as a wish; `blind` does not know the original ones; `capped`
has to make do with three quarters of the original count (kernels of 24 registers or more). Each result is checked: SSA, allocation,
and that it can be emitted. With more cubins than fit into the time, a random sample of them is taken (the same one each time).
Also: the time for a synthetic kernel of 500 and of 5,000 blocks.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from random import Random
from typing import Any

from rich.console import Console
from rich.table import Table
from virtualise import LARGEST, PER_FILE, cubins

from sassir import __version__
from sassir.allocation.allocate import allocate
from sassir.allocation.registers import MOST_REGISTERS
from sassir.analysis.allocation import check_allocation
from sassir.analysis.ssa import verify_ssa
from sassir.asm.parse import parse_instruction
from sassir.asm.program import Function, Line
from sassir.dialect.attributes import Origin, OriginAttr
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.operations import KernelOp
from sassir.dialect.registers import R
from sassir.encoders.library import base_architecture
from sassir.errors import SassirError
from sassir.passes.virtualise import virtualise
from sassir.translate.branches import JumpTables
from sassir.translate.callees import Callees
from sassir.translate.cubin import jump_tables, read_program
from sassir.translate.emit import emit_function
from sassir.translate.lift import lift_function
from sassir.translate.resources import RESERVED_REGISTERS

WAYS = ("identity", "blind", "capped")
SHARE, FEWEST = 0.75, 24
"""Of the original count that `capped` allows, and the original count from which on it does."""
SLACK = 2
"""Registers more than the original ones that count as none more."""


@dataclass
class Tally:
    """What came out for one set of files, one architecture and one way."""

    kernels: int = 0
    allocated: int = 0
    kept: int = 0
    """Kernels that sass-virtualise does not free."""
    more: int = 0
    """Kernels that take more than SLACK registers more, or spill."""
    instructions: int = 0
    copies: int = 0
    loads: int = 0
    seconds: float = 0
    refused: Counter[str] = field(default_factory=Counter[str])
    examples: dict[str, str] = field(default_factory=dict[str, str])

    def add(self, kernel: KernelOp, arch: str, way: str, where: str) -> None:
        """Allocate a kernel in one way, check and count it."""
        before = _registers(kernel)
        if way == "capped" and before < FEWEST:
            return
        self.kernels += 1
        if virtualise(kernel) is not None:
            self.kept += 1
            return
        if way == "blind":
            for op in kernel.body.walk():
                if isinstance(op, SassInstruction) and op.origin is not None:
                    op.origin = OriginAttr(Origin(op.origin.data.offset))
        size = sum(isinstance(op, SassInstruction) for op in kernel.body.walk())
        start = time.process_time()
        try:
            found = allocate(kernel, arch, int(SHARE * before) if way == "capped" else MOST_REGISTERS)
        except SassirError as error:
            cause = re.sub(r"`.*`|\d+", "…", str(error), flags=re.DOTALL)
            self.refused[cause] += 1
            self.examples.setdefault(cause, f"{where}: {kernel.function.data}: {error}")
            return
        self.seconds += time.process_time() - start
        verify_ssa(kernel.body)
        check_allocation(kernel.body)
        emit_function(kernel)
        self.allocated += 1
        self.more += found.registers > before + SLACK or found.loads > 0
        self.instructions += size
        self.copies += found.copies
        self.loads += found.loads

    def summary(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "kernels": self.kernels,
            "allocated": self.allocated,
            "kept their registers": self.kept,
            "more registers or spills": self.more,
            "instructions": self.instructions,
            "copies": self.copies,
            "loads": self.loads,
            "seconds": round(self.seconds, 2),
            "refused": {cause: {"kernels": n, "example": self.examples[cause]} for cause, n in self.refused.most_common()},
        }


def _registers(kernel: KernelOp) -> int:
    """The register count that the code asks for."""
    values = [v for block in kernel.body.blocks for v in (*block.args, *[r for op in block.ops for r in op.results])]
    return max([v.type.number or 0 for v in values if isinstance(v.type, R)], default=-1) + 1 + RESERVED_REGISTERS


def measure(path: Path, seconds: float) -> dict[str, dict[str, Tally]]:
    """The tallies of one set, by architecture and way; each architecture gets `seconds`."""
    rng = Random(1)
    tallies: dict[str, dict[str, Tally]] = {}
    spent: dict[str, float] = {}
    for file, cubin in cubins(path, rng):
        arch = base_architecture(cubin.arch)
        if spent.get(arch, 0) > seconds:
            continue
        start = time.process_time()
        by_way = tallies.setdefault(arch, {way: Tally() for way in WAYS})
        program, tables = read_program(cubin.data, file.name), jump_tables(cubin)
        callees = Callees(program, tables)
        entries = {s.index for s in cubin.code if s.head is not None and s.head.entry}
        for function in rng.sample(program.functions, min(PER_FILE, len(program.functions))):
            if len(function.lines) <= LARGEST and function.section in entries:
                known: JumpTables = tables.get(function.section or 0, {})
                for way, tally in by_way.items():
                    tally.add(lift_function(function, known, callees), cubin.arch, way, file.name)
        spent[arch] = spent.get(arch, 0) + time.process_time() - start
    return tallies


def synthetic(blocks: int, registers: int = 40) -> KernelOp:
    """A kernel of 10 instructions a block, with branches over some blocks and back, and `registers` values that live everywhere."""
    rng = Random(1)
    text = [f"MOV R{r}, {r:#x}" for r in range(registers)]
    for b in range(blocks):
        pick = [rng.randrange(registers) for _ in range(34)]
        text += [f"IMAD R{pick[i]}, R{pick[i + 8]}, R{pick[i + 16]}, R{pick[i + 24]}" for i in range(8)]
        text.append(f"ISETP.GE.AND P0, PT, R{pick[32]}, R{pick[33]}, PT")
        target = min(b + rng.choice([2, 3, 4]), blocks) if rng.random() < 0.85 else max(0, b - rng.choice([1, 2, 6]))
        text.append(f"@P0 BRA .{16 * (registers + 10 * target - len(text)):+#x}")
    text += [f"STG.E [R{r & ~1}.64], R{r}" for r in range(registers)] + ["EXIT"]
    lines = tuple([Line(parse_instruction(line), 16 * i) for i, line in enumerate(text)])
    kernel = lift_function(Function("synthetic", None, lines, {}), {})
    assert virtualise(kernel) is None
    return kernel


def linear() -> dict[str, float]:
    """Seconds for the synthetic kernels, by blocks."""
    found: dict[str, float] = {}
    for blocks in (500, 5000):
        kernel = synthetic(blocks)
        start = time.process_time()
        allocate(kernel, "sm_75")
        found[f"{blocks} blocks"] = round(time.process_time() - start, 2)
    return found


def table(results: dict[str, Any]) -> Table:
    """The figures for a reader."""
    titles = ("set", "arch", "way", "kernels", "allocated", "kept", "refused", "more", "copies per 1000", "loads per 1000", "per second")
    shown = Table(*titles)
    for name, by_arch in results["sets"].items():
        for arch, by_way in sorted(by_arch.items(), key=lambda item: int(item[0][3:])):
            for way, row in by_way.items():
                size, seconds = max(row["instructions"], 1), max(row["seconds"], 0.01)
                refused = sum(cause["kernels"] for cause in row["refused"].values())
                counts = (row["kernels"], row["allocated"], row["kept their registers"], refused, row["more registers or spills"])
                rates = (f"{1000 * row['copies'] / size:.2f}", f"{1000 * row['loads'] / size:.1f}", f"{size / seconds:,.0f}")
                shown.add_row(name, arch, way, *map(str, counts), *rates)
    return shown


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", metavar="NAME=FOLDER")
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--seconds", type=float, default=60, help="of processor time, for each set and architecture")
    options = parser.parse_args()
    results: dict[str, Any] = {"sassir": __version__, "date": date.today().isoformat(), "linear, seconds": linear(), "sets": {}}
    for name, _, folder in (text.partition("=") for text in options.sets):
        found = measure(Path(folder), options.seconds)
        results["sets"][name] = {arch: {way: t.summary() for way, t in by_way.items()} for arch, by_way in found.items()}
    if options.output:
        options.output.write_text(json.dumps(results, indent=1) + "\n")
    console = Console()
    console.print(table(results))
    console.print(f"linear: {results['linear, seconds']}")
    for by_arch in results["sets"].values():
        for by_way in by_arch.values():
            for way, row in by_way.items():
                for cause, refused in row["refused"].items():
                    console.print(f"{refused['kernels']} x {way}: {cause}; {refused['example']}", markup=False, soft_wrap=True)


if __name__ == "__main__":
    main()
