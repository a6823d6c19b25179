"""Do the pipelines stand up to code that nobody wrote for them? Kernels of public libraries, drawn at random.

    python bench/optimise_corpus.py FOLDER [--kernels 200] [--seed 1] [--seconds 600] [--most 2000]

FOLDER holds one folder of cubins for each architecture (sm_80, …). Each kernel goes through `-p default` and `-p launch`, without
facts about launches: it is optimised and passes
the checkers, or is refused by name; anything else is a crash. Stops when the time is up, after the kernel at hand. Writes
bench/results/optimise-corpus.json and exits with 1 if anything crashed.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

from xdsl.dialects.builtin import ModuleOp

from sassir.asm.program import Program
from sassir.cubin.host import select_cubin
from sassir.encoders.library import base_architecture
from sassir.errors import SassirError, SassirWarning
from sassir.optimize import Pipeline, optimise, read_pipeline
from sassir.translate.cubin import jump_tables, read_program
from sassir.translate.emit import emit_program
from sassir.translate.lift import lift_program

BENCH = Path(__file__).parent
PIPELINES = ("default", "launch")


class Result(NamedTuple):
    """What became of one kernel in one pipeline."""

    arch: str
    pipeline: str
    file: str
    kernel: str
    instructions: tuple[int, int]
    refused: str
    """Why, in the words of the pass or checker; empty if it was optimised."""
    crash: str
    """The end of the traceback; empty if there was none."""


def attempt(program: Program, arch: str, file: str, kernel: str, pipeline: Pipeline) -> Result:
    """Optimise the only kernel of `program`, and write it as machine code again."""
    try:
        assert program.container is not None
        module: ModuleOp = lift_program(program, jump_tables(select_cubin(program.container, file)))
        outcome = optimise(module, pipeline)[0]
        emit_program(module)
    except Exception:  # whatever it is, it is what this script looks for
        return Result(arch, pipeline.name, file, kernel, (0, 0), "", traceback.format_exc()[-800:])
    return Result(arch, pipeline.name, file, kernel, outcome.instructions, outcome.reason, "")


def sample(folder: Path, count: int, most: int, rng: Random) -> Iterator[tuple[str, Path, str, Program]]:
    """At most `count` kernels with at most `most` instructions, as many of each architecture, each alone in a program; read one by one."""
    archs = sorted([path for path in folder.iterdir() if _is_known(path.name)])
    drawn: list[tuple[str, Path]] = []
    for arch in archs:
        files = sorted(arch.glob("*.cubin"))
        drawn += [(arch.name, path) for path in rng.sample(files, min(len(files), -(-count // len(archs))))]
    rng.shuffle(drawn)
    for arch_name, path in drawn:
        try:
            program = read_program(path.read_bytes(), str(path))
        except SassirError as error:
            print(f"{path.name}: not read: {error}")
            continue
        kernels = {section.index for section in select_cubin(path.read_bytes(), str(path)).code if section.head and section.head.entry}
        functions = [f for f in program.functions if len(f.lines) <= most and f.section in kernels]
        if functions:
            function = rng.choice(functions)
            yield arch_name, path, function.name, program._replace(functions=(function,))


def _is_known(arch: str) -> bool:
    try:
        return bool(base_architecture(arch))
    except SassirError:
        return False


def summary(results: list[Result]) -> dict[str, object]:
    """Numbers by pipeline and architecture, and every refusal and crash."""
    return {
        "kernels": len({(r.arch, r.file, r.kernel) for r in results}),
        "runs": len(results),
        "refused": sum(bool(r.refused) for r in results),
        "crashed": sum(bool(r.crash) for r in results),
        "by architecture": dict(sorted(Counter(r.arch for r in results).items())),
        "refusals": [r._asdict() for r in results if r.refused],
        "crashes": [r._asdict() for r in results if r.crash],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kernels", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--most", type=int, default=2000)
    options = parser.parse_args()
    warnings.simplefilter("ignore", SassirWarning)
    end = time.monotonic() + options.seconds
    pipelines = [read_pipeline(name) for name in PIPELINES]
    results: list[Result] = []
    for arch, path, kernel, program in sample(options.folder, options.kernels, options.most, Random(options.seed)):
        if time.monotonic() > end:
            break
        for pipeline in pipelines:
            results.append(attempt(program, arch, path.name, kernel, pipeline))
            last = results[-1]
            print(arch, pipeline.name, kernel[:60], *last.instructions, last.refused[:160] or last.crash[-300:] or "ok", flush=True)
    found = {"seed": options.seed, "most instructions": options.most, **summary(results)}
    (BENCH / "results" / "optimise-corpus.json").write_text(json.dumps(found, indent=1) + "\n")
    return int(any(r.crash for r in results))


if __name__ == "__main__":
    sys.exit(main())
