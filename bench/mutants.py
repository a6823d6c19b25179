"""Planted bugs: does the schedule checker find every one, and does the GPU agree?

    python bench/mutants.py -o JSON [--count 20000] FILE.cubin …           # plant, and ask the checker
    python bench/mutants.py --write DIR [--count 200] bench/cubins/*.cubin   # write mutants and a manifest
    python bench/mutants.py --run DIR -o JSON                                # launch them on this GPU

A mutant is a kernel with one change: a stall count one smaller, a wait dropped, a scoreboard exchanged, a signal dropped, or two
instructions swapped. It counts if it violates a dependence, which a slow and simple search over all pairs of the block decides
(hazard_oracle.py); the checker must then report an error at the second instruction of the dependence that the original did not have.

On the GPU each mutant runs once with full multiprocessors, and once with one block on a multiprocessor (by shared memory that nobody
uses; 128 threads are one warp a scheduler), because other warps hide a short stall. What gives another result than the original and
was not reported is a hole in the checker; the exit status is 1.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

from hazard_oracle import Violation, violations

from sassir.asm.control import SCOREBOARDS, Control
from sassir.asm.instruction import INSTRUCTION_BYTES
from sassir.asm.program import Function, Program
from sassir.cubin.cubin import Cubin
from sassir.dialect.instruction import SassBranch
from sassir.findings import Finding
from sassir.gpu import Worker
from sassir.gpu.pair import Pair, check
from sassir.gpu.report import find_commit
from sassir.launch import Launch, read_launch_file
from sassir.machine import Machine, machine
from sassir.translate.branches import JumpTables
from sassir.translate.cubin import jump_tables, read_program, write_cubin
from sassir.translate.flow import Flow, find_flow
from sassir.verify.schedule.check import check_function

BENCH = Path(__file__).parent
WINDOW = 48
"""Lines before and behind a change among which violations are looked for."""
LARGEST = 1500
"""Lines of a kernel; a larger one takes too long to check so often."""
LIMIT = 80 << 20
"""Bytes of the buffers of a launch at most."""
ALONE = 160 << 10
"""Bytes of shared memory that leave room for one block on a multiprocessor of an H200."""


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

    return sorted(found(mutant.function) - found(subject.function))


def findings(subject: Subject, function: Function) -> list[Finding]:
    """The errors that the checker reports."""
    flow = find_flow(function, subject.tables)
    return [f for f in check_function(function, flow, subject.machine) if f.error]


class Tried(NamedTuple):
    """A mutant, what it violates and what the checker says."""

    subject: Subject
    mutant: Mutant
    violated: list[Violation]
    reported: list[Finding]

    @property
    def missed(self) -> bool:
        """The violation that shows first is not reported at its second instruction."""
        first = min([INSTRUCTION_BYTES * v.second for v in self.violated], default=None)
        return first is not None and first not in {finding.offset for finding in self.reported}


def tries(paths: list[Path], seed: int) -> Iterator[Tried]:
    """Mutants without end, of one function after the other."""
    choose, pool = random.Random(seed), subjects(paths)
    known = {id(subject.function): {*findings(subject, subject.function)} for subject in pool}
    while True:
        subject = choose.choice(pool)
        mutant = mutate(subject, choose)
        if mutant is not None:
            before = known[id(subject.function)]
            violated = planted(subject, mutant)
            yield Tried(subject, mutant, violated, [f for f in findings(subject, mutant.function) if f not in before])


def measure(paths: list[Path], count: int, seed: int) -> dict[str, Any]:
    """Plant until `count` mutants violate a dependence."""
    tally: Counter[str] = Counter()
    kinds: dict[str, Counter[str]] = {}
    missed: list[str] = []
    for tried in tries(paths, seed):
        outcome = "missed" if tried.missed else "found" if tried.violated else "reported" if tried.reported else "harmless"
        tally[outcome] += 1
        kinds.setdefault(tried.mutant.kind, Counter())[outcome] += 1
        if tried.missed:
            missed.append(describe(tried))
        if tally["found"] + tally["missed"] >= count:
            break
    return {"counts": dict(tally), "kinds": {kind: dict(counts) for kind, counts in sorted(kinds.items())}, "missed": missed}


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


def launches(kernel: str) -> Iterator[tuple[str, Launch]]:
    """The largest launch of a kernel that is not too large; and `small` with one block on a multiprocessor."""
    file = read_launch_file(BENCH / "launch" / f"{kernel}.toml")
    yield "full", max([launch for launch in file.launches.values() if launch.nbytes <= LIMIT], key=lambda launch: launch.nbytes)
    small = file.launch("small")
    alone = tuple([replace(step, shared=max(step.shared, ALONE)) for step in small.steps])
    yield "one block a multiprocessor", replace(small, steps=alone)


def run(folder: Path, output: Path) -> int:
    """Launch every mutant of a folder against its original. The number of wrong results that were not reported."""
    records: list[dict[str, Any]] = []
    entries = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    with Worker(timeout=5) as worker:
        device = worker.describe_device()
        for kernel in sorted({entry["kernel"] for entry in entries}):
            original = (folder / f"{kernel}.original.cubin").read_bytes()
            for manner, launch in launches(kernel):
                for entry in [entry for entry in entries if entry["kernel"] == kernel]:
                    result = check(worker, Pair(kernel, original, (folder / entry["file"]).read_bytes()), launch)
                    records.append({**entry, "manner": manner, "launch": launch.name, "outcome": result.outcome, "detail": result.detail})
    holes = [r for r in records if r["outcome"] != "equal" and not r["reported"]]
    counts = Counter([f"{'reported' if r['reported'] else 'accepted'}, {r['manner']}, {r['outcome']}" for r in records])
    head = {"device": device._asdict(), "date": date.today().isoformat(), "commit": find_commit(), "counts": dict(sorted(counts.items()))}
    output.write_text(json.dumps({**head, "holes": holes, "records": records}, indent=1) + "\n", encoding="utf-8")
    for name, number in sorted(counts.items()):
        print(f"{number:6} {name}")
    for hole in holes:
        print(f"not reported: {hole['change']}: {hole['outcome']} ({hole['manner']}): {hole['detail']}")
    return len(holes)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE")
    parser.add_argument("--write", type=Path, metavar="DIR", help="write mutants and a manifest")
    parser.add_argument("--run", type=Path, metavar="DIR", help="launch what --write wrote")
    parser.add_argument("--count", type=int, default=20000, metavar="N", help="mutants that violate a dependence, or that are written")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-o", "--output", type=Path, metavar="JSON")
    options = parser.parse_args()
    if options.run is not None:
        return 1 if run(options.run, options.output or options.run / "result.json") else 0
    if options.write is not None:
        write(options.files, options.write, options.count, options.seed)
        return 0
    result = measure(options.files, options.count, options.seed)
    print(result["counts"], *[f"{kind}: {counts}" for kind, counts in result["kinds"].items()], *result["missed"][:20], sep="\n")
    if options.output is not None:
        options.output.write_text(json.dumps({"date": date.today().isoformat(), "seed": options.seed, **result}, indent=1) + "\n")
    return 1 if result["missed"] else 0


if __name__ == "__main__":
    sys.exit(main())
