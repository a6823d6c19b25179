"""`sassir bench-suite`: the whole suite on the GPU, original against what a pipeline makes of it."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from sassir.cli.bench import add_measuring_arguments, measuring_options

if TYPE_CHECKING:
    from sassir.gpu.pair import Result
    from sassir.gpu.report import Setting
    from sassir.gpu.suite import Entry

HELP = "run the benchmark suite on the GPU: every kernel against what a pipeline makes of it"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.add_argument("kernels", nargs="*", metavar="KERNEL", help="all by default")
    parser.add_argument("--suite", type=Path, default=Path("bench"), metavar="DIR", help="folder with launch/ and cubins/ (default: bench)")
    parser.add_argument("--pipeline", default="", metavar="P", help="passes as sassir-opt -p takes them (default: none)")
    parser.add_argument("--optimize", metavar="PIPELINE", help="instead: what `sassir optimize` makes, with the facts of each launch")
    parser.add_argument("--against", type=Path, metavar="DIR", help="instead: cubins of the same names, built in another way")
    parser.add_argument("--compare", type=Path, metavar="OLD.json", help="fail where something got worse since that result")
    parser.add_argument("-o", "--output", type=Path, metavar="DIR", help="folder for the JSON and the table (default: SUITE/results)")
    add_measuring_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Measure and write; print a line for each launch. Returns 1 if a candidate fails, computes something else, or got slower."""
    from sassir.gpu.pair import Pair, Result
    from sassir.gpu.report import summary
    from sassir.gpu.session import Case, measure_all
    from sassir.gpu.suite import find_suite, read_results, regressions
    from sassir.gpu.worker import Worker

    old = read_results(args.compare) if args.compare else None
    with Worker(args.timeout) as worker:
        entries = find_suite(args.suite, worker.describe_device().arch, args.kernels)
    jobs = list(_jobs(entries, args))
    candidates = make_candidates(jobs)
    given_back = _give_back(jobs, candidates, args.timeout) if args.optimize else {}
    cases, results = list[Case](), list[Result]()
    for job, candidate in zip(jobs, candidates, strict=True):
        entry = job.entry
        if isinstance(candidate, str):
            results.append(Result(entry.kernel, job.case or "", "failed", f"no candidate: {candidate}"))
        else:
            tolerance = entry.file.tolerance if args.tolerance else None
            cases.append(Case(Pair(entry.kernel, entry.cubin.read_bytes(), candidate, tolerance), entry.file, job.case))
    setting, measured = measure_all(cases, measuring_options(args), _show)
    results += measured
    toolkits = Counter(entry.toolkit() for entry in entries)
    _write(args, setting, results, toolkits, given_back)
    worse = list(regressions(old, results, {entry.kernel for entry in entries})) if old else []
    print("\n".join([*summary(results), *worse]))
    return 1 if worse or not all(result.good for result in results) else 0


class Job(NamedTuple):
    """A candidate to make."""

    entry: Entry
    passes: str
    """Passes for `sassir-opt`, every word encoded from its fields; not used if there is a pipeline."""
    pipeline: str | None = None
    """The pipeline of `sassir optimize`."""
    case: str | None = None
    """The launch whose facts it gets."""
    made: Path | None = None
    """The candidate, where it is there already."""


def _jobs(entries: Sequence[Entry], args: argparse.Namespace) -> Iterator[Job]:
    """One candidate for all launches of a kernel, or one for each timed launch where facts of the launch are used."""
    for entry in entries:
        if args.against is not None:
            yield Job(entry, "", made=args.against / entry.cubin.name)
        elif args.optimize in (None, "default"):
            yield Job(entry, args.pipeline, args.optimize)
        else:
            yield from [Job(entry, "", args.optimize, case) for case in entry.file.timed]


def make_candidates(jobs: Sequence[Job]) -> list[bytes | str]:
    """The candidates, or why there is none; on all processors."""
    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn")) as pool:
        return list(pool.map(make_candidate, jobs))


def make_candidate(job: Job) -> bytes | str:
    """One candidate, or the error as text: whatever goes wrong with one kernel must not cost the results of the others."""
    try:
        if job.made is not None:
            return job.made.read_bytes()
        return _optimised(job) if job.pipeline is not None else _rebuilt(job.entry.cubin, job.passes)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def _give_back(jobs: Sequence[Job], candidates: list[bytes | str], timeout: float) -> dict[str, str]:
    """Put the original in place of what is surely slower, as `sassir optimize` does on a GPU. Returns the reasons by kernel and launch.

    The measurements for that are apart from those that the suite reports.
    """
    from sassir.errors import LaunchError
    from sassir.gpu.gain import measured_gains, slower_kernels
    from sassir.gpu.worker import Worker

    given_back = dict[str, str]()
    with Worker(timeout) as worker:
        for i, (job, candidate) in enumerate(zip(jobs, candidates, strict=True)):
            file, original = job.entry.file, job.entry.cubin.read_bytes()
            launches = [file.launch(name) for name in ([job.case] if job.case is not None else file.timed)]
            if isinstance(candidate, str):
                continue
            try:
                slower = slower_kernels(measured_gains(worker, original, candidate, launches), launches)
            except LaunchError as error:
                print(f"{job.entry.kernel} {job.case or ''}: not measured before: {error}", flush=True)
                continue
            if slower:
                candidates[i] = original
                given_back[f"{job.entry.kernel} {job.case or ''}".strip()] = "; ".join(slower.values())
    return given_back


def _optimised(job: Job) -> bytes:
    from sassir.optimize import Task, optimise_or_keep, read_pipeline

    file = job.entry.file
    case = file.launch(job.case) if job.case is not None else None
    task = Task(job.entry.cubin.read_bytes(), str(job.entry.cubin), read_pipeline(job.pipeline or ""), file.facts, case)
    return optimise_or_keep(task)[0].cubin


def _rebuilt(cubin: Path, passes: str) -> bytes:
    from sassir.cli.opt import SassirOpt

    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "candidate.cubin"
        SassirOpt([str(cubin), *(["-p", passes] if passes else []), "-t", "cubin{from_fields=true}", "-o", str(output)]).run()
        return output.read_bytes()


def _show(result: Result) -> None:
    if result.measured:
        comparison = result.measured.comparison
        times = f"{comparison.original.median * 1e6:10.2f} µs {comparison.ratio:7.3f} ({comparison.low:.3f} to {comparison.high:.3f})"
        print(f"{result.kernel:24}{result.launch:10}{result.outcome:18}{times}  {comparison.verdict}", flush=True)
    elif not result.good:
        print(f"{result.kernel:24}{result.launch:10}{result.outcome}: {result.detail}", flush=True)


def _write(
    args: argparse.Namespace, setting: Setting, results: Sequence[Result], toolkits: Mapping[str, int], given_back: Mapping[str, str]
) -> None:
    from sassir.gpu.report import as_json, markdown

    pipeline = f"optimize {args.optimize}" if args.optimize else args.pipeline or "identity"
    pipeline = f"{args.against.name} builds" if args.against is not None else pipeline
    slug = re.sub(r"[^a-z0-9]+", "-", f"{pipeline}-{setting.device.name}-{date.today().isoformat()}".lower()).strip("-")
    folder: Path = args.output or args.suite / "results"
    folder.mkdir(parents=True, exist_ok=True)
    found = as_json(setting, results, pipeline=pipeline, toolkits=toolkits, given_back=given_back)
    (folder / f"suite-{slug}.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    compilers = ", ".join(f"{version} ({count})" for version, count in toolkits.items())
    title = f"Suite: original against {pipeline}"
    remarks = [f"Compilers: {compilers}.", *[f"{name}: {reason}." for name, reason in given_back.items()]]
    (folder / f"suite-{slug}.md").write_text(markdown(setting, results, title, *remarks), encoding="utf-8")
    print(f"written to {folder / f'suite-{slug}.json'} and .md")
