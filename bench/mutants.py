"""Planted bugs: does the schedule checker find every one, and does the GPU agree?

    python bench/mutants.py -o bench/results/mutants.json --count 3000 FILE.cubin …   # plant, and ask the checker
    python bench/mutants.py --write DIR --count 200 bench/cubins/*.sm_90.cubin        # write them for bench/run_mutants.py

A mutant is a kernel with one change: a stall count one smaller, a wait dropped, a scoreboard exchanged, a signal dropped, or two
instructions swapped. It counts if it violates a dependence, which a slow and simple search over all pairs of the block decides
(hazard_oracle.py); the checker must then report an error at the second instruction of the dependence that the original did not have.
COUNT mutants of each architecture are planted; its row replaces the one in the result.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from hazard_oracle import Violation, violations
from schedule_check import save

from sassir.asm.control import SCOREBOARDS, Control
from sassir.asm.instruction import INSTRUCTION_BYTES
from sassir.asm.program import Function, Program
from sassir.cubin.cubin import Cubin
from sassir.dialect.instruction import SassBranch
from sassir.encoders.library import base_architecture
from sassir.findings import Finding
from sassir.machine import Machine, machine
from sassir.translate.branches import JumpTables
from sassir.translate.cubin import jump_tables, read_program, write_cubin
from sassir.translate.flow import Flow, find_flow
from sassir.verify.schedule.check import check_function

WINDOW = 48
"""Lines before and behind a change among which violations are looked for."""
LARGEST = 600
"""Lines of a kernel; a larger one takes too long to check so often."""


class Mutant(NamedTuple):
    """A function with one change."""

    kind: str
    line: int
    function: Function


class Subject(NamedTuple):
    """A function to plant bugs into."""

    name: str
    program: Program
    function: Function
    tables: JumpTables
    flow: Flow
    machine: Machine


def subjects(paths: list[Path]) -> list[Subject]:
    """The functions of the files that are fully understood and not too large."""
    found: list[Subject] = []
    for path in paths:
        program = read_program(path.read_bytes(), str(path))
        tables = jump_tables(Cubin.read(program.container or b"", str(path)))
        for function in program.functions:
            known = tables.get(function.section or 0, {})
            flow = find_flow(function, known)
            if flow.problem is None and len(function.lines) <= LARGEST:
                found.append(Subject(path.name, program, function, known, flow, machine(program.arch)))
    return found


def mutate(subject: Subject, choose: random.Random) -> Mutant | None:
    """One random change; None if the place that was chosen has nothing to change that way."""
    blocks = [block for block in subject.flow.blocks if len(block) > 1]
    block = choose.choices(blocks, [len(block) for block in blocks])[0]
    line = choose.choice(block)
    kind = choose.choice(("stall", "wait", "scoreboard", "signal", "swap"))
    code = [entry.instruction for entry in subject.function.lines]
    if kind == "swap":
        behind = line + 1
        if behind >= block.stop or any(issubclass(subject.flow.shapes[i].op, SassBranch) for i in (line, behind)):
            return None
        changed = {line: code[behind], behind: code[line]}
    else:
        control = _changed(kind, code[line].control, choose)
        if control is None:
            return None
        changed = {line: code[line]._replace(control=control, word=None)}
    lines = [entry._replace(instruction=changed.get(i, entry.instruction)) for i, entry in enumerate(subject.function.lines)]
    return Mutant(kind, line, subject.function._replace(lines=tuple(lines)))


def _changed(kind: str, control: Control, choose: random.Random) -> Control | None:
    """The control code with one change of that kind; None if it has nothing to change."""
    if kind == "stall":
        return control._replace(stall=control.stall - 1) if control.stall > 1 else None
    if kind == "wait":
        dropped = choose.choice(control.wait) if control.wait else None
        return control._replace(wait=tuple([s for s in control.wait if s != dropped])) if control.wait else None
    fields = [name for name in ("write", "read") if getattr(control, name) is not None]
    if not fields:
        return None
    name = choose.choice(fields)
    other = choose.choice([s for s in range(SCOREBOARDS) if s != getattr(control, name)])
    return control._replace(**{name: other if kind == "scoreboard" else None})


def planted(subject: Subject, mutant: Mutant) -> list[Violation]:
    """The violations that the change brings, by lines of the function."""
    block = next(block for block in subject.flow.blocks if mutant.line in block)
    start, stop = max(block.start, mutant.line - WINDOW), min(block.stop, mutant.line + WINDOW)

    def found(function: Function) -> set[Violation]:
        code = [entry.instruction for entry in function.lines[start:stop]]
        return {v._replace(first=v.first + start, second=v.second + start) for v in violations(code, subject.machine, mutant.line - start)}

    now = found(mutant.function)
    return sorted(now - found(subject.function)) if now else []


def findings(subject: Subject, function: Function, flow: Flow) -> list[Finding]:
    """The errors that the checker reports."""
    return [f for f in check_function(function, flow, subject.machine) if f.error]


@dataclass(frozen=True)
class Tried:
    """A mutant, what it violates and what the checker says."""

    subject: Subject
    mutant: Mutant
    violated: list[Violation]
    known: frozenset[Finding]
    """What the checker says of the original."""

    @cached_property
    def reported(self) -> list[Finding]:
        """What it says besides."""
        function = self.mutant.function
        flow = find_flow(function, self.subject.tables) if self.mutant.kind == "swap" else self.subject.flow
        return [f for f in findings(self.subject, function, flow) if f not in self.known]

    @property
    def missed(self) -> bool:
        """Nothing is reported where the violation shows first: at its second instruction, or before, at a guarded one that the search
        leaves out."""
        if not self.violated:
            return False
        place = min(self.violated, key=lambda v: v.second)
        offsets = range(INSTRUCTION_BYTES * (place.first + 1), INSTRUCTION_BYTES * (place.second + 1))
        return not any(finding.offset in offsets for finding in self.reported)


def tries(paths: list[Path], seed: int) -> Iterator[Tried]:
    """Mutants without end, of one function after the other."""
    choose, pool = random.Random(seed), subjects(paths)
    known = {id(subject.function): frozenset(findings(subject, subject.function, subject.flow)) for subject in pool}
    while True:
        subject = choose.choice(pool)
        mutant = mutate(subject, choose)
        if mutant is not None:
            yield Tried(subject, mutant, planted(subject, mutant), known[id(subject.function)])


def measure(paths: list[Path], count: int, seed: int) -> dict[str, Any]:
    """Plant until `count` mutants violate a dependence."""
    violating: Counter[str] = Counter()
    missed: list[str] = []
    kernels: set[str] = set()
    number = 0
    for tried in tries(paths, seed):
        number += 1
        if tried.violated:
            violating[tried.mutant.kind] += 1
            kernels.add(f"{tried.subject.name} {tried.subject.function.name}")
            if tried.missed:
                missed.append(describe(tried))
        if violating.total() >= count:
            break
    return {
        "date": date.today().isoformat(),
        "seed": seed,
        "kernels": len(kernels),
        "planted": number,
        "violating": violating.total(),
        "found": violating.total() - len(missed),
        "kinds": dict(sorted(violating.items())),
        "missed": missed,
    }


def by_architecture(paths: list[Path]) -> dict[str, list[Path]]:
    """The files by the architecture that they are for."""
    found: dict[str, list[Path]] = {}
    for path in paths:
        found.setdefault(base_architecture(Cubin.read(path.read_bytes(), str(path)).arch), []).append(path)
    return found


def describe(tried: Tried) -> str:
    """One line that says what was done and what it violates."""
    line = tried.mutant.function.lines[tried.mutant.line].instruction
    where = f"{tried.subject.name} {tried.subject.function.name}+{INSTRUCTION_BYTES * tried.mutant.line:#x}"
    violated = "; ".join(
        [f"{v.register} {INSTRUCTION_BYTES * v.second:#x} after {INSTRUCTION_BYTES * v.first:#x}: {v.problem}" for v in tried.violated]
    )
    return f"{where}: {tried.mutant.kind}: {line.control} {line}: {violated or 'no violation'}"


def write(paths: list[Path], folder: Path, count: int, seed: int) -> None:
    """Write `count` mutants that the checker reports and half as many that it accepts, and `manifest.json`."""
    folder.mkdir(parents=True, exist_ok=True)
    wanted = {True: count, False: count // 2}
    manifest: list[dict[str, Any]] = []
    for tried in tries(paths, seed):
        reported = bool(tried.reported)
        if not reported and tried.mutant.kind == "swap":  # may compute something else though no distance is violated
            continue
        if not wanted[reported]:
            if not any(wanted.values()):
                break
            continue
        wanted[reported] -= 1
        functions = [tried.mutant.function if f is tried.subject.function else f for f in tried.subject.program.functions]
        name = f"{len(manifest):04}.cubin"
        (folder / name).write_bytes(write_cubin(tried.subject.program._replace(functions=tuple(functions))))
        kernel = tried.subject.name.partition(".")[0]
        manifest.append({"file": name, "kernel": kernel, "change": describe(tried), "reported": [f.message for f in tried.reported]})
    originals = {path.name.partition(".")[0]: path.read_bytes() for path in paths}
    for kernel in {entry["kernel"] for entry in manifest}:
        (folder / f"{kernel}.original.cubin").write_bytes(originals[kernel])
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE")
    parser.add_argument("--write", type=Path, metavar="DIR", help="write mutants and a manifest")
    parser.add_argument(
        "--count", type=int, default=3000, metavar="N", help="mutants of an architecture that violate a dependence, or that are written"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-o", "--output", type=Path, metavar="JSON")
    options = parser.parse_args()
    if options.write is not None:
        write(options.files, options.write, options.count, options.seed)
        return 0
    rows = {arch: measure(paths, options.count, options.seed) for arch, paths in by_architecture(options.files).items()}
    for arch, row in rows.items():
        print(arch, row)
    if options.output is not None:
        save(options.output, rows)
    return 1 if any(row["missed"] for row in rows.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
