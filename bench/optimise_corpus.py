"""Do the pipelines stand up to code that nobody wrote for them? Every kernel of public libraries.

    python bench/fetch_corpus.py DIR
    python bench/optimise_corpus.py [-j 16] [--kernels 300] [--seconds 500] DIR/libraries/…/*.so…

Kernels with the same code are taken once, and a kernel of a relocatable object only where no cubin beside it has been linked with it: it is
what the driver loads. `--kernels` takes some of them, drawn at random. Each goes through `-p default` and
`-p launch`, without facts about launches: it is optimised and passes the checkers, or is refused by name; anything else is a crash, so is
one that takes longer than `PATIENCE`. When the time is up, no more are begun. Writes optimise-corpus.json; exits with 1 after a crash.
"""

from __future__ import annotations

import argparse
import json
import re
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from datetime import date
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from xdsl.dialects.builtin import ModuleOp

from sassir.asm.program import Program
from sassir.cubin.code import CodeSection
from sassir.cubin.cubin import Cubin
from sassir.cubin.fatbin import EntryKind
from sassir.cubin.host import open_binary
from sassir.cubin.summary import summarise
from sassir.encoders.library import has_table
from sassir.errors import SassirWarning
from sassir.optimize import Pipeline, optimise, read_pipeline
from sassir.translate.cubin import jump_tables, read_program
from sassir.translate.emit import emit_program
from sassir.translate.lift import lift_program

BENCH = Path(__file__).parent
PIPELINES = ("default", "launch")
TOGETHER = 40
"""Kernels of one cubin that one process takes."""
PATIENCE = 300
"""Seconds."""
_PLACES = re.compile(r"0x[0-9a-f]+|[\w$.]*\d[\w$.]*|`[^`]*`|\^\S+")


class Task(NamedTuple):
    """Some kernels of one cubin, by the numbers of their sections."""

    file: Path
    entry: int
    arch: str
    sections: tuple[int, ...]


class Result(NamedTuple):
    """What became of one kernel in one pipeline."""

    arch: str
    pipeline: str
    place: str
    instructions: tuple[int, int]
    refused: str
    """Why, in the words of the pass or checker; empty if it was optimised."""
    crash: str
    """The end of the traceback; empty if there was none."""
    seconds: float


def find_kernels(files: Iterable[Path]) -> Iterator[Task]:
    """Every kernel, alone; those with the same code once for each architecture."""
    seen: set[tuple[str, bytes]] = set()
    for file in files:
        entries = enumerate(open_binary(file.read_bytes(), str(file)))
        known = [(n, e.arch, e.data) for n, e in entries if e.kind is EntryKind.CUBIN and e.arch is not None and has_table(e.arch)]
        found = [(n, arch, s, relocatable) for n, arch, data in known for s, relocatable in _kernels(data, str(file))]
        linked = {(arch, section.kernel) for _, arch, section, relocatable in found if not relocatable}
        for number, arch, section, relocatable in found:
            code = arch, sha256(section.data).digest()
            if code not in seen and not (relocatable and (arch, section.kernel) in linked):
                seen.add(code)
                yield Task(file, number, arch, (section.index,))


def _kernels(data: bytes, where: str) -> Iterator[tuple[CodeSection, bool]]:
    """The kernels of a cubin, and whether it is a relocatable object."""
    cubin = Cubin.read(data, where)
    relocatable = summarise(cubin).relocatable
    yield from [(section, relocatable) for section in cubin.code if section.head is not None and section.head.entry]


def bundle(kernels: Iterable[Task]) -> list[Task]:
    """The same, `TOGETHER` of them in one task."""
    by_cubin: dict[Task, list[int]] = {}
    for task in kernels:
        by_cubin.setdefault(task._replace(sections=()), []).extend(task.sections)
    return [
        cubin._replace(sections=tuple(sections[i : i + TOGETHER]))
        for cubin, sections in by_cubin.items()
        for i in range(0, len(sections), TOGETHER)
    ]


def run(task: Task) -> list[Result]:
    """Both pipelines over the kernels of a task."""
    warnings.simplefilter("ignore", SassirWarning)
    signal.signal(signal.SIGALRM, _give_up)
    data = list(open_binary(task.file.read_bytes(), str(task.file)))[task.entry].data
    program = read_program(data, str(task.file))
    cubin = Cubin.read(data, str(task.file))
    by_section = {function.section: function for function in program.functions}
    kernels = {section.index for section in cubin.code if section.head is not None and section.head.entry}
    called = tuple(function for function in program.functions if function.section not in kernels)
    pipelines = [read_pipeline(name) for name in PIPELINES]
    found: list[Result] = []
    for section in task.sections:
        alone = program._replace(functions=(by_section[section], *called))  # what a call needs, its function says
        place = f"{task.file.name}#{task.entry}[{section}] {by_section[section].name}"
        found += [attempt(alone, cubin, task.arch, place, pipeline) for pipeline in pipelines]
    return found


def _give_up(number: int, frame: object) -> None:
    raise TimeoutError(f"more than {PATIENCE} s")


def attempt(program: Program, cubin: Cubin, arch: str, place: str, pipeline: Pipeline) -> Result:
    """Optimise the first kernel of `program`, and write all as machine code again."""
    start = time.process_time()
    signal.alarm(PATIENCE)
    try:
        module: ModuleOp = lift_program(program, jump_tables(cubin))
        outcome = optimise(module, pipeline, [program.functions[0].name])[0]
        emit_program(module)
    except Exception:  # whatever it is, it is what this script looks for
        return Result(arch, pipeline.name, place, (0, 0), "", traceback.format_exc()[-800:], time.process_time() - start)
    finally:
        signal.alarm(0)
    return Result(arch, pipeline.name, place, outcome.instructions, outcome.reason, "", time.process_time() - start)


def summary(results: list[Result]) -> dict[str, Any]:
    """Numbers by architecture, reasons for refusals with one example each, and every crash."""
    reasons, examples = Counter[str](), dict[str, str]()
    for r in results:
        if r.refused:
            reason = _PLACES.sub("…", r.refused)
            reasons[reason] += 1
            examples.setdefault(reason, f"{r.arch} {r.pipeline} {r.place}: {r.refused}")
    archs = sorted({r.arch for r in results}, key=lambda arch: (len(arch), arch))
    by_time = sorted(results, key=lambda r: -r.seconds)
    return {
        "kernels": len(results) // len(PIPELINES),
        "runs": len(results),
        "optimised": sum(not r.refused and not r.crash for r in results),
        "refused": sum(bool(r.refused) for r in results),
        "crashed": sum(bool(r.crash) for r in results),
        "instructions": sum(r.instructions[0] for r in results),
        "processor seconds": round(sum(r.seconds for r in results)),
        "by architecture": {a: _counts([r for r in results if r.arch == a]) for a in archs},
        "refusals": [{"runs": n, "reason": reason, "example": examples[reason]} for reason, n in reasons.most_common()],
        "crashes": [r._asdict() for r in results if r.crash],
        "longest": [f"{r.seconds:.1f} s: {r.arch} {r.pipeline} {r.place}, {r.instructions[0]} instructions" for r in by_time[:5]],
    }


def _counts(results: list[Result]) -> dict[str, int]:
    return {"runs": len(results), "refused": sum(bool(r.refused) for r in results), "crashed": sum(bool(r.crash) for r in results)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--kernels", type=int, help="at most so many (default: all)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("-j", "--jobs", type=int, default=1)
    parser.add_argument("-o", "--output", type=Path, default=BENCH / "results")
    options = parser.parse_args()
    end = time.monotonic() + options.seconds
    kernels = list(find_kernels(options.files))
    rng = Random(options.seed)
    tasks = bundle(rng.sample(kernels, min(len(kernels), options.kernels or len(kernels))))
    rng.shuffle(tasks)
    results: list[Result] = []
    with ProcessPoolExecutor(options.jobs) as pool:
        waiting = {pool.submit(run, task) for task in tasks}
        for done in as_completed(waiting):
            if not done.cancelled():
                results += done.result()
                refused, crashed = sum(bool(r.refused) for r in results), sum(bool(r.crash) for r in results)
                print(f"{len(results)} runs, {refused} refused, {crashed} crashed", flush=True)
            if time.monotonic() > end:
                for task in waiting:
                    task.cancel()
    names = [file.name for file in options.files]
    found = {"date": date.today().isoformat(), "files": names, "distinct kernels": len(kernels)} | summary(results)
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / "optimise-corpus.json").write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    print(json.dumps({k: v for k, v in found.items() if not isinstance(v, list)}, indent=1))
    return int(bool(found["crashes"]))


if __name__ == "__main__":
    sys.exit(main())
