"""Of how many kernels does sass-virtualise free the registers, and why not of the others?

    python bench/virtualise.py -o bench/results/virtualise.json --seconds 60 bench=FOLDER corpus=FOLDER wheels=FOLDER

Every kernel is also checked: SSA before and after, and with its old registers given back it must be the same code, reuse marks and
control codes aside. With more cubins than fit into the time, a random sample of them is taken (the same one each time).
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from random import Random
from typing import Any

from counted import freed
from xdsl.ir import SSAValue

from sassir import __version__
from sassir.analysis.allocation import check_allocation
from sassir.analysis.ssa import verify_ssa
from sassir.asm.control import Control
from sassir.asm.program import Function, Line
from sassir.cubin.cubin import Cubin
from sassir.dialect import internals
from sassir.dialect.operations import KernelOp
from sassir.dialect.registers import file_of
from sassir.encoders.library import base_architecture
from sassir.errors import SassirError
from sassir.passes.virtualise import virtualise
from sassir.translate.callees import Callees
from sassir.translate.cubin import jump_tables, read_program
from sassir.translate.emit import emit_function
from sassir.translate.lift import lift_function

LARGEST = 20_000
"""Instructions; larger kernels are counted, but left out."""
PER_FILE = 12


@dataclass
class Tally:
    """What came out for one set of files and one architecture."""

    kernels: int = 0
    freed: int = 0
    device_functions: int = 0
    """Relocatable functions in sections of their own; they keep their registers, and are no kernels."""
    left_out: int = 0
    instructions: int = 0
    values: Counter[str] = field(default_factory=Counter[str])
    free: Counter[str] = field(default_factory=Counter[str])
    refused: Counter[str] = field(default_factory=Counter[str])
    examples: dict[str, str] = field(default_factory=dict[str, str])

    def add(self, function: Function, kernel: KernelOp, entry: bool, where: str) -> None:
        """Free the registers of a kernel, check and count it."""
        verify_ssa(kernel.body)
        types = [(v, v.type) for v in _values(kernel)]
        reason = virtualise(kernel)
        verify_ssa(kernel.body)
        if reason is None:
            self.values.update(file_of(v) for v, _ in types)
            self.free.update(file_of(v) for v, kind in types if v.type != kind)
        for value, kind in types:
            internals.retype(value, kind)
        check_allocation(kernel.body)
        if [_bare(line) for line in emit_function(kernel).lines] != [_bare(line) for line in function.lines]:
            raise SystemExit(f"{where}: {function.name} is not the same code")
        self.instructions += len(function.lines)
        if not entry:
            self.device_functions += 1
            return
        self.kernels += 1
        self.freed += reason is None
        if reason is not None:
            cause = re.sub(r"0x[0-9a-f]+|\b[A-Z]*\d+\b", "…", reason)
            self.refused[cause] += 1
            self.examples.setdefault(cause, f"{where}: {function.name}: {reason}")

    def summary(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "kernels": self.kernels,
            "freed": self.freed,
            "instructions": self.instructions,
            "device functions": self.device_functions,
            "left out, too large": self.left_out,
            "values free": {file: [self.free[file], count] for file, count in self.values.items()},
            "refused": {cause: {"kernels": n, "example": self.examples[cause]} for cause, n in self.refused.most_common()},
        }


def _values(kernel: KernelOp) -> list[SSAValue]:
    return [v for block in kernel.body.blocks for v in (*block.args, *[r for op in block.ops for r in op.results])]


def _bare(line: Line) -> Line:
    operands = tuple([o.without_reuse() for o in line.instruction.operands])
    return line._replace(instruction=line.instruction._replace(operands=operands, control=Control(), word=None))


def cubins(path: Path, rng: Random) -> Iterator[tuple[Path, Cubin]]:
    """The cubins below a folder that there is an encoding table for, in random order."""
    files = sorted(path.rglob("*.cubin"))
    rng.shuffle(files)
    for file in files:
        try:
            cubin = Cubin.read(file.read_bytes(), file.name)
            base_architecture(cubin.arch)
        except SassirError as error:
            print(f"left out: {error}", file=sys.stderr)
            continue
        yield file, cubin


def measure(path: Path, seconds: float) -> dict[str, Tally]:
    """The tallies of one set, by architecture; each gets `seconds`."""
    rng = Random(1)
    tallies: dict[str, Tally] = {}
    spent: Counter[str] = Counter()
    for file, cubin in cubins(path, rng):
        arch = base_architecture(cubin.arch)
        if spent[arch] > seconds:
            continue
        start = time.process_time()
        tally = tallies.setdefault(arch, Tally())
        program, tables = read_program(cubin.data, file.name), jump_tables(cubin)
        callees = Callees(program, tables)
        entries = {s.index for s in cubin.code if s.head is not None and s.head.entry}
        for function in rng.sample(program.functions, min(PER_FILE, len(program.functions))):
            if len(function.lines) > LARGEST:
                tally.left_out += 1
                continue
            assert function.section is not None
            kernel = lift_function(function, tables.get(function.section, {}), callees)
            tally.add(function, kernel, function.section in entries, file.name)
        spent[arch] += time.process_time() - start  # type: ignore[assignment]
    return tallies


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", metavar="NAME=FOLDER")
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--seconds", type=float, default=60, help="of processor time, for each set and architecture")
    options = parser.parse_args()
    results: dict[str, Any] = {"sassir": __version__, "date": date.today().isoformat(), "sets": {}}
    for name, _, folder in (text.partition("=") for text in options.sets):
        results["sets"][name] = {arch: tally.summary() for arch, tally in measure(Path(folder), options.seconds).items()}
    if options.output:
        options.output.write_text(json.dumps(results, indent=1) + "\n")
    print("\n".join(freed(results)))


if __name__ == "__main__":
    main()
