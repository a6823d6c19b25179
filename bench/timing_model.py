"""The static timing model against what an H200 took: predicted and measured time, and the change that an optimised kernel makes.

    python bench/timing_model.py --samples DIR --candidates DIR      # predict and compare
    python bench/timing_model.py --samples DIR --fit                 # estimate the overheads of sassir/machine/hierarchy.py anew

Measured: bench/results/suite-identity-*.json and suite-optimize-launch-*.json, the newest of each. How often a line runs and what its
accesses move is counted in the emulator, over blocks of the very launch (`sassir.timing.sample`); that takes half an hour, so the
samples are kept in DIR. Candidates are the optimised cubins that were measured, KERNEL.LAUNCH.cubin; what is missing there is
made with the pipeline as it is now. Writes bench/results/timing-model-nvidia-h200-*.json.

Numbers were estimated from the kernels in SEEN; the others are held out. `--fit` tries other values of those that these kernels
decide together, and prints the errors of both groups.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sassir.errors import SassirError
from sassir.gpu.suite import Entry, find_suite
from sassir.machine.hierarchy import HIERARCHIES, Hierarchy
from sassir.optimize import optimise_cubin, read_pipeline
from sassir.timing import Prediction, Profile, Shape, Traffic
from sassir.timing.kernels import Kernel, first_level, predict_kernel, read_kernels, shapes_of
from sassir.timing.sample import Sampled, sample

BENCH = Path(__file__).parent
ARCH = "sm_90"
MEMORY_BOUND = 0.7
"""Share of the measured copy rate from which on a launch counts as bound by memory."""


SEEN = {
    "aes_tconst": "the constant cache: cycles of an address",
    "black_scholes": "MUFU: cycles until the result, which were measured by themselves later",
    "cupy_ew3d": "MUFU",
    "cupy_silu_f16": "how soon blocks follow each other",
    "cupy_where": "the same",
    "dgemv_col": "latency of memory, with one warp a scheduler",
    "histogram256": "latency of memory",
    "mandelbrot": "cycles of a branch",
    "reduce_sum": "latency of memory",
    "softmax_rows": "the usable share of the first level",
    "topk_local": "the usable share of the first level",
}
"""The kernels from whose times and counters numbers were estimated, and which. All others are held out."""


class Case(NamedTuple):
    """One cubin of the suite with one launch."""

    entry: Entry
    launch: str
    cubin: bytes
    variant: str
    """`original` or `optimised`."""
    seconds: float
    """Measured: median."""
    share: float
    """Of the copy rate, that the launch reached by its bytes."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernels", nargs="*", metavar="KERNEL", help="all by default")
    parser.add_argument("--samples", type=Path, required=True, metavar="DIR", help="where samples are kept")
    parser.add_argument("--candidates", type=Path, metavar="DIR", help="optimised cubins, KERNEL.LAUNCH.cubin")
    parser.add_argument("--launch", metavar="NAME", help="only this launch of each kernel (default: all that were timed)")
    parser.add_argument("--fit", action="store_true", help="estimate the overheads instead of comparing")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE")
    options = parser.parse_args()
    entries = find_suite(BENCH, ARCH, options.kernels)
    identity, optimised = newest("suite-identity"), newest("suite-optimize-launch")
    originals = list(cases(entries, identity, options.launch, lambda entry, launch: entry.cubin.read_bytes(), "original"))
    if options.fit:
        fit([(case, profiles(case, options.samples)) for case in originals])
        return 0
    candidates = list(
        cases(entries, optimised, options.launch, lambda entry, launch: candidate(entry, launch, options.candidates), "optimised")
    )
    found = compare(originals, candidates, options.samples, optimised)
    head = {"device": identity["device"], "date": date.today().isoformat(), "clock_mhz": HIERARCHIES[ARCH].clock}
    name = f"timing-model-nvidia-h200-{head['date']}.json"
    output = options.output or BENCH / "results" / name
    output.write_text(json.dumps(head | {"measured": [identity["commit"], optimised["commit"]]} | found, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(found["summary"], indent=1))
    return 0


def newest(name: str) -> dict[str, Any]:
    """The newest results of that name."""
    return max([json.loads(file.read_text()) for file in (BENCH / "results").glob(f"{name}-*.json")], key=lambda found: found["date"])


def cases(
    entries: Sequence[Entry], results: dict[str, Any], launch: str | None, cubin: Callable[[Entry, str], bytes], variant: str
) -> Iterator[Case]:
    """What was timed, of the kernels in `entries`: one launch of each, or all."""
    by_kernel = {entry.kernel: entry for entry in entries}
    side = "original" if variant == "original" else "candidate"
    for result in results["results"]:
        if result["measured"] and result["kernel"] in by_kernel and launch in (None, result["launch"]):
            entry, measured = by_kernel[result["kernel"]], result["measured"]
            seconds = measured["comparison"][side]["median"]
            yield Case(entry, result["launch"], cubin(entry, result["launch"]), variant, seconds, measured["shares"].get("bytes", 0.0))


def candidate(entry: Entry, launch: str, folder: Path | None) -> bytes:
    """The optimised cubin for a launch."""
    path = folder / f"{entry.kernel}.{launch}.cubin" if folder is not None else None
    if path is not None and path.is_file():
        return path.read_bytes()
    case = entry.file.launch(launch)
    return optimise_cubin(entry.cubin.read_bytes(), str(entry.cubin), read_pipeline("launch"), entry.file.facts, case).cubin


def profiles(case: Case, folder: Path) -> list[tuple[Profile, int]]:
    """The profiles of the steps of a launch, and the blocks that were sampled; from `folder`, if they are there."""
    path = folder / f"{case.entry.kernel}.{case.launch}.{case.variant}.json"
    if not path.is_file():
        launch = case.entry.file.launch(case.launch)
        kernels = kernels_of(case.cubin)
        size = min([first_level(kernels[name], shape) for name, shape in shapes_of(kernels, launch, str(path))])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps([plain(found) for found in sample(case.cubin, launch, size)]))
    return [
        (Profile(executions, slowest, {line: Traffic(*traffic) for line, *traffic in moved}, source), blocks)
        for executions, slowest, moved, source, blocks in json.loads(path.read_text())
    ]


@cache
def kernels_of(cubin: bytes) -> dict[str, Kernel]:
    """The kernels of a cubin by name."""
    return {kernel.function.name: kernel for kernel in read_kernels(cubin)}


def plain(found: Sampled) -> list[Any]:
    """A sample as JSON has it; `profiles` reads it."""
    profile = found.profile
    moved = [[line, *traffic] for line, traffic in profile.traffic.items()]
    return [profile.executions, profile.slowest, moved, profile.source, found.blocks]


def predictions(case: Case, known: Sequence[tuple[Profile, int]], hierarchy: Hierarchy) -> list[Prediction]:
    """The prediction of each step."""
    kernels = kernels_of(case.cubin)
    shapes: Sequence[tuple[str, Shape]] = shapes_of(kernels, case.entry.file.launch(case.launch), case.entry.kernel)
    return [predict_kernel(kernels[name], shape, profile, hierarchy) for (name, shape), (profile, _) in zip(shapes, known, strict=True)]


def microseconds(found: Iterable[Prediction]) -> float:
    """Of all steps of a launch together."""
    return sum([prediction.microseconds for prediction in found])


def compare(originals: Sequence[Case], candidates: Sequence[Case], folder: Path, optimised: dict[str, Any]) -> dict[str, Any]:
    """Rows for each launch and each change, and what they come to."""
    hierarchy = HIERARCHIES[ARCH]
    rows: list[dict[str, Any]] = []
    for case in originals:
        known = profiles(case, folder)
        found = predictions(case, known, hierarchy)
        rows.append(
            {
                "kernel": case.entry.kernel,
                "launch": case.launch,
                "predicted_us": round(microseconds(found), 2),
                "measured_us": round(case.seconds * 1e6, 2),
                "predicted_cycles": round(microseconds(found) * hierarchy.clock),
                "measured_cycles": round(case.seconds * 1e6 * hierarchy.clock),
                "bound": [prediction.whole.bound for prediction in found],
                "memory_share": round(case.share, 3),
                "held_out": held_out(case),
                "blocks": [blocks for _, blocks in known],
            }
        )
        print(f"{case.entry.kernel:18}{case.launch:8}{microseconds(found):10.1f} predicted{case.seconds * 1e6:10.1f} µs", flush=True)
    before = {(row["kernel"], row["launch"]): row["predicted_us"] for row in rows}
    measured = {(r["kernel"], r["launch"]): r["measured"]["comparison"]["ratio"] for r in optimised["results"] if r["measured"]}
    changes: list[dict[str, Any]] = []
    for case in candidates:
        place = case.entry.kernel, case.launch
        after = microseconds(predictions(case, profiles(case, folder), hierarchy))
        ratios = {"predicted": round(before[place] / after, 3), "measured": round(measured[place], 3)}
        changes.append({"kernel": place[0], "launch": place[1]} | ratios)
    return {"summary": summary(rows, changes), "kernels": rows, "changes": changes}


def held_out(case: Case) -> bool:
    """Whether no number was estimated from this kernel."""
    return case.entry.kernel not in SEEN


def summary(rows: Sequence[dict[str, Any]], changes: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Errors and rank correlations."""
    free = [row for row in rows if row["memory_share"] < MEMORY_BOUND]
    first = [row for i, row in enumerate(free) if row["kernel"] not in {other["kernel"] for other in free[:i]}]
    return {
        "launches": len(rows),
        "rank_correlation_of_times": spearman([(row["predicted_us"], row["measured_us"]) for row in rows]),
        "error_of_all": error(rows),
        "not_memory_bound": len(free),
        "kernels_not_memory_bound": len(first),
        "error_of_these_kernels": error(first),
        "error_not_memory_bound": error(free),
        "error_not_memory_bound_held_out": error([row for row in free if row["held_out"]]),
        "within_20_percent": sum(abs(row["predicted_us"] / row["measured_us"] - 1) <= 0.2 for row in free),
        "changes": len(changes),
        "rank_correlation_of_changes": spearman([(change["predicted"], change["measured"]) for change in changes]),
        "changes_beyond_2_percent": sum(abs(math.log(change["measured"])) > math.log(1.02) for change in changes),
        "rank_correlation_of_these": spearman(
            [(change["predicted"], change["measured"]) for change in changes if abs(math.log(change["measured"])) > math.log(1.02)]
        ),
    }


def error(rows: Sequence[dict[str, Any]]) -> float | None:
    """Mean absolute error of the predicted time, relative to the measured one."""
    errors = [abs(row["predicted_us"] / row["measured_us"] - 1) for row in rows]
    return round(float(np.mean(errors)), 4) if errors else None


def spearman(pairs: Sequence[tuple[float, float]]) -> float | None:
    """The rank correlation; equal values have the mean of their ranks."""
    if len(pairs) < 3:
        return None
    first, second = (ranks([pair[side] for pair in pairs]) for side in (0, 1))
    return round(float(np.corrcoef(first, second)[0, 1]), 3)


def ranks(values: Sequence[float]) -> list[float]:
    """The rank of each value."""
    return [sum(other < value for other in values) + (sum(other == value for other in values) - 1) / 2 for value in values]


RANGES: dict[str, tuple[float, ...]] = {
    "memory_latency": (600, 650, 700, 750, 800),
    "block_start": (300, 400, 500, 700, 900),
    "block_interval": (130, 145, 150, 160),
    "skew": (0.05, 0.08, 0.11, 0.14),
    "launch": (1.5, 2, 3),
}
"""What is tried: only what is physically possible."""
PASSES = 2


def fit(known: Sequence[tuple[Case, Sequence[tuple[Profile, int]]]]) -> None:
    """Estimate the overheads by coordinate descent; print them, and the errors of both halves."""
    halves = [[pair for pair in known if held_out(pair[0]) == side and pair[0].share < MEMORY_BOUND] for side in (False, True)]
    best = HIERARCHIES[ARCH]
    least = deviation(halves[0], best)
    for name, values in [*RANGES.items()] * PASSES:
        for value in values:
            tried = changed(best, name, value)
            if (found := deviation(halves[0], tried)) < least - 1e-4:
                best, least = tried, found
                print(f"{name} {value}: {least:.4f}", flush=True)
    print(f"memory latency {best.memory_latency}, second level {best.second_rate:.0f} bytes a cycle, {best.overheads}")
    for half, name in zip(halves, ("estimated from", "held out"), strict=True):
        print(f"{name}: {len(half)} kernels, mean deviation {deviation(half, best):.3f}, before {deviation(half, HIERARCHIES[ARCH]):.3f}")


def changed(hierarchy: Hierarchy, name: str, value: float) -> Hierarchy:
    """With another value for one number."""
    if name in Hierarchy._fields:
        return hierarchy._replace(**{name: value})
    return hierarchy._replace(overheads=hierarchy.overheads._replace(**{name: value}))


def deviation(known: Sequence[tuple[Case, Sequence[tuple[Profile, int]]]], hierarchy: Hierarchy) -> float:
    """Mean absolute logarithm of predicted over measured time."""
    return float(np.mean([abs(math.log(microseconds(predictions(case, found, hierarchy)) / case.seconds / 1e6)) for case, found in known]))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except SassirError as failure:
        print(f"timing_model: {failure}", file=sys.stderr)
        sys.exit(1)
