"""What each pass gains: kernels of the suite with the whole pipeline, and with one pass left out of it; or with a pass by itself.

    python bench/pass_gains.py --make DIR [-j JOBS]     # anywhere, minutes on one core: the candidates, two cubins a pass and kernel
    python bench/pass_gains.py --measure DIR -o OUT     # on a GPU, two seconds for each: times `without` against `with`

`--make` runs the pipeline once over each kernel and looks which passes change it; only these are left out, one at a time. With `--alone`
each pass is run by itself, between freeing the registers and choosing them anew, against no pass at all: what it does for code in which
no other pass has done the same, or made up for it. `--cubins unoptimised` does so with other builds of the kernels than bench/cubins.
Of the kernels whose final code then differs, each pass keeps those for which the static timing model expects the largest difference;
since that has to assume how often some loops run, it is good for no more than this choice.
`--measure` checks that both cubins compute, bit for bit, what the original does, and writes pass-gains-PIPELINE-GPU-DATE.json, or
pass-alone-….
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import date
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from xdsl.context import Context
from xdsl.utils.arg_spec import parse_spec

from sassir.errors import LaunchError, SassirError, SassirWarning
from sassir.gpu import Worker
from sassir.gpu.pair import Pair, check
from sassir.gpu.report import find_commit
from sassir.gpu.statistics import compare_times
from sassir.gpu.suite import Entry, find_suite
from sassir.gpu.timing import sample
from sassir.launch import Launch
from sassir.optimize import Pipeline, Task, collection_paused, optimise_cubin, read_pipeline
from sassir.timing.kernels import predict_static
from sassir.translate.cubin import read_module
from sassir.translate.facts import attach_facts, launch_facts

BENCH = Path(__file__).parent
CUBINS = BENCH / "cubins"
ARCH = "sm_90"
INDEX = "index.json"
KERNELS = 3
"""At most so many are kept for a pass."""
SECONDS = 0.15
"""To sample each pair."""


class Candidate(NamedTuple):
    """One kernel of the suite, optimised with and without a pass; the names of the cubins."""

    skipped: str
    """The pass that `without` does without, wherever the pipeline names it."""
    kernel: str
    launch: str
    original: str
    complete: str
    without: str
    predicted: float
    """By the static timing model: the time without the pass over the time with it."""


def leave_out(pipeline: Pipeline, name: str) -> Pipeline:
    """The pipeline without one pass, whatever its options."""
    rest = [tuple([text for text in texts if name_of(text) != name]) for texts in (pipeline.passes, pipeline.behind)]
    return Pipeline(pipeline.name, pipeline.version, *rest)


def name_of(text: str) -> str:
    """Of a pass, without its options."""
    return parse_spec(text).name


def changing(entry: Entry, case: Launch | None, pipeline: Pipeline) -> set[str]:
    """The passes of the pipeline that change the kernels. Raises SassirError where one of them refuses."""
    module = read_module(entry.cubin.read_bytes(), str(entry.cubin))
    if case is not None:
        attach_facts(module, launch_facts(case, entry.file.facts, ARCH))
    found, before = set[str](), ""
    with collection_paused():
        for step in pipeline.all_passes():
            step.apply(Context(), module)
            after = str(module)
            if after != before:
                found.add(step.name)
            before = after
    return found


class Study(NamedTuple):
    """What is made: how each kernel is optimised with a pass, and how without."""

    pipeline: Pipeline
    passes: tuple[str, ...]
    """Those to look at."""
    alone: bool
    cubins: Path
    """The builds of the kernels."""

    @property
    def name(self) -> str:
        """Of its results."""
        builds = () if self.cubins == CUBINS else (self.cubins.name,)
        return "-".join(["pass", "alone" if self.alone else "gains", *builds, self.pipeline.name])

    def versions(self, entry: Entry, case: Launch | None) -> Iterator[tuple[str, Pipeline, Pipeline]]:
        """Passes, each with the pipelines that have it and do not. Raises SassirError where the pipeline refuses the kernel."""
        changed = set(self.passes) if self.alone else changing(entry, case, self.pipeline)
        for name in sorted(changed.intersection(self.passes)):
            whole = self.pipeline._replace(passes=self._front(name)) if self.alone else self.pipeline
            yield name, whole, leave_out(whole, name)

    def _front(self, name: str) -> tuple[str, ...]:
        """Of a pass by itself, what of it comes in front of allocation."""
        behind = {name_of(text) for text in self.pipeline.behind}
        return () if name in behind - {name_of(text) for text in self.pipeline.passes} else (name,)


def make(study: Study, folder: Path, entry: Entry) -> list[Candidate]:
    """The candidates of one kernel, their cubins written into `folder`: for the facts of the launch that is timed first."""
    warnings.simplefilter("ignore", SassirWarning)
    launch, original = entry.file.launch(entry.file.timed[0]), entry.cubin.read_bytes()
    case = launch if study.pipeline.name != "default" else None

    @cache
    def optimised(chosen: Pipeline) -> bytes | None:
        made = optimise_cubin(Task(original, str(entry.cubin), chosen, entry.file.facts, case))
        return made.cubin if all(outcome.changed for outcome in made.outcomes) else None

    @cache
    def microseconds(cubin: bytes) -> float:
        return sum([step.microseconds for step in predict_static(cubin, entry.kernel, launch, entry.file.facts)])

    def written(cubin: bytes) -> str:
        name = f"{entry.kernel}.{sha256(cubin).hexdigest()[:12]}.cubin"
        (folder / name).write_bytes(cubin)
        return name

    found = list[Candidate]()
    for name, whole, rest in study.versions(entry, case):
        complete, without = optimised(whole), optimised(rest)
        if complete is None or without is None or complete == without:
            continue
        predicted = round(microseconds(without) / microseconds(complete), 3)
        files = [written(cubin) for cubin in (original, complete, without)]
        found.append(Candidate(name, entry.kernel, launch.name, *files, predicted))
    return found


def most_telling(candidates: Iterable[Candidate], count: int) -> Iterator[Candidate]:
    """Of each pass, those that the timing model expects to differ most."""
    by_pass = defaultdict[str, list[Candidate]](list)
    for candidate in candidates:
        by_pass[candidate.skipped].append(candidate)
    for found in by_pass.values():
        yield from sorted(found, key=lambda candidate: -abs(math.log(candidate.predicted)))[:count]


def make_all(folder: Path, study: Study, kernels: Sequence[str], count: int, jobs: int) -> None:
    """Fill `folder` with the candidates that tell most, and the index that says what they are."""
    folder.mkdir(parents=True, exist_ok=True)
    there = [entry._replace(cubin=study.cubins / entry.cubin.name) for entry in find_suite(BENCH, ARCH, kernels)]
    entries, found = [entry for entry in there if entry.cubin.is_file()], list[Candidate]()
    with ProcessPoolExecutor(jobs) as pool:
        for entry, own in zip(entries, pool.map(partial(make, study, folder), entries), strict=True):
            found += own
            print(f"{entry.kernel:18}{', '.join([f'{c.skipped} {c.predicted:.2f}' for c in own])}", flush=True)
    kept = sorted(most_telling(found, count), key=lambda candidate: (candidate.kernel, candidate.skipped))
    unchanged = [name for name in study.passes if all(candidate.skipped != name for candidate in found)]
    index: dict[str, Any] = {"name": study.name, "pipeline": study.pipeline.name, "alone": study.alone, "builds": study.cubins.name}
    index |= {"unchanged": unchanged, "candidates": [candidate._asdict() for candidate in kept]}
    (folder / INDEX).write_text(json.dumps(index, indent=1) + "\n", encoding="utf-8")
    needed = {name for candidate in kept for name in (candidate.original, candidate.complete, candidate.without)}
    for file in folder.glob("*.cubin"):
        if file.name not in needed:
            file.unlink()
    size = sum([file.stat().st_size for file in folder.iterdir()])
    print(f"{len(kept)} candidates of {len(study.passes) - len(unchanged)} passes, {size / 2**20:.1f} MiB, in {folder}")


def measure(worker: Worker, entry: Entry, candidate: Candidate, folder: Path) -> dict[str, Any]:
    """Check both cubins against the original, and time one against the other."""
    launch, names = entry.file.launch(candidate.launch), (candidate.original, candidate.without, candidate.complete)
    original, without, complete = [(folder / name).read_bytes() for name in names]
    record = {"pass": candidate.skipped, "kernel": candidate.kernel, "launch": candidate.launch, "predicted": candidate.predicted}
    for side, cubin in (("without", without), ("with", complete)):
        result = check(worker, Pair(candidate.kernel, original, cubin), launch)
        if result.outcome != "equal":
            return record | {"outcome": result.outcome, "detail": f"{side} the pass: {result.detail}"}
    try:
        found = compare_times(worker.call(sample, without, complete, launch, SECONDS))
    except LaunchError as error:
        return record | {"outcome": "failed", "detail": str(error)}
    seconds = {"without": found.original.median, "with": found.candidate.median}
    return record | {"outcome": "equal", "seconds": seconds, "ratio": found.ratio, "low": found.low, "high": found.high}


def measure_all(folder: Path, output: Path, commit: str | None) -> int:
    """Measure everything in `folder`. Returns 1 if anything failed or computed something else."""
    index, begin = json.loads((folder / INDEX).read_text(encoding="utf-8")), time.perf_counter()
    candidates = [Candidate(**fields) for fields in index["candidates"]]
    entries = {entry.kernel: entry for entry in find_suite(BENCH, ARCH, sorted({candidate.kernel for candidate in candidates}))}
    records = list[dict[str, Any]]()
    with Worker() as worker:
        device = worker.describe_device()
        for candidate in candidates:
            record = measure(worker, entries[candidate.kernel], candidate, folder)
            records.append(record)
            detail = record.get("detail") or f"{record['ratio']:.3f} ({record['low']:.3f} to {record['high']:.3f})"
            print(f"{candidate.skipped:24}{candidate.kernel:18}{record['outcome']:10}{detail}", flush=True)
    head = {"device": device._asdict(), "date": date.today().isoformat(), "commit": commit or find_commit()}
    head |= {"seconds": round(time.perf_counter() - begin, 1)} | {key: index[key] for key in ("pipeline", "alone", "builds", "unchanged")}
    path = output / f"{index['name']}-{device.name.lower().replace(' ', '-')}-{head['date']}.json"
    output.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(head | {"records": records}, indent=1) + "\n", encoding="utf-8")
    print(f"{len(records)} pairs in {head['seconds']} s; written to {path}")
    return int(any(record["outcome"] != "equal" for record in records))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    step = parser.add_mutually_exclusive_group(required=True)
    step.add_argument("--make", type=Path, metavar="DIR", help="write the candidates into this folder")
    step.add_argument("--measure", type=Path, metavar="DIR", help="measure those in this folder")
    parser.add_argument("kernels", nargs="*", metavar="KERNEL", help="to make candidates of (default: all)")
    parser.add_argument("-p", "--pipeline", default="launch", help="launch or default")
    parser.add_argument("--alone", action="store_true", help="each pass by itself instead of all others")
    parser.add_argument("--pass", dest="passes", action="append", metavar="NAME", help="look at this one; repeatable (default: all of it)")
    parser.add_argument("--cubins", type=Path, default=CUBINS, metavar="DIR", help="other builds of the kernels (build_kernels.py)")
    parser.add_argument("-j", "--jobs", type=int, default=1, help="processes that make candidates (default: 1)")
    parser.add_argument("-n", "--count", type=int, default=KERNELS, help=f"kernels for each pass (default: {KERNELS})")
    parser.add_argument("-o", "--output", type=Path, default=BENCH / "results", metavar="OUT")
    parser.add_argument("--commit", help="what to record as commit, where git does not know")
    options = parser.parse_args()
    if options.measure:
        return measure_all(options.measure, options.output, options.commit)
    pipeline = read_pipeline(options.pipeline)
    names = options.passes or dict.fromkeys([name_of(text) for text in (*pipeline.passes, *pipeline.behind)])
    make_all(options.make, Study(pipeline, tuple(names), options.alone, options.cubins), options.kernels, options.count, options.jobs)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except SassirError as error:
        print(f"pass_gains: {error}", file=sys.stderr)
        sys.exit(1)
