"""The static timing model against what an H200 took: predicted and measured time, and the changes that candidates make.

    python bench/timing_model.py --samples DIR --candidates DIR      # predict and compare
    python bench/timing_model.py --samples DIR --fit                 # estimate the overheads of sassir/machine/hierarchy.py anew

Measured: the newest results of the suite in bench/results (timing_cases.py: originals, both pipelines, order and control codes alone,
builds with register caps). Predictions are from the code and the facts of a launch alone, as `sassir optimize` has them, and from how often
a line runs and what its accesses move, counted in the emulator over blocks of the very launch (`sassir.timing.sample`). That takes
hours, so samples are kept in DIR, and so are the cubins that were measured; what is missing is made with the code as it is now (with
`--kept` no samples of candidates). Writes bench/results/timing-model-nvidia-h200-*.json.

Numbers were estimated from the kernels in SEEN; the others are held out. `--fit` tries other values of those that these kernels
decide together, and prints the errors of both groups.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterable, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from newest import newest
from timing_cases import ARCH, CHANGED, ORIGINAL, Case, changed, kernels_of, originals, profiles, sample_of

from sassir.errors import SassirError
from sassir.gpu.suite import find_suite
from sassir.machine.hierarchy import HIERARCHIES, Hierarchy
from sassir.optimize import LOSS
from sassir.timing import Prediction, Profile, Shape
from sassir.timing.kernels import predict_kernel, predict_static, shapes_of

BENCH = Path(__file__).parent
MEMORY_BOUND = 0.7
"""Share of the measured copy rate from which on a launch counts as bound by memory."""
CHANGE = 1.02
"""A measured change from here on, or below its inverse, is one."""
WAYS = ("from_code", "sampled")
"""The two ways to predict."""


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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernels", nargs="*", metavar="KERNEL", help="all by default")
    parser.add_argument("--samples", type=Path, required=True, metavar="DIR", help="where samples are kept")
    parser.add_argument("--candidates", type=Path, metavar="DIR", help="where the cubins are that were measured (default: in the samples)")
    parser.add_argument("--launch", metavar="NAME", help="only this launch of each kernel (default: all that were timed)")
    parser.add_argument("--kept", action="store_true", help="of candidates use only the samples that are there")
    parser.add_argument("--fit", action="store_true", help="estimate the overheads instead of comparing")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE")
    options = parser.parse_args()
    entries = find_suite(BENCH, ARCH, options.kernels)
    before = list(originals(entries, options.launch))
    if options.fit:
        fit([(case, profiles(case, options.samples)) for case in before])
        return 0
    after = list(changed(entries, options.launch, options.candidates or options.samples / "candidates"))
    rows = times(before, options.samples)
    found = compare(rows, before, after, options.samples, options.kept)
    measured = [result[1] for name in (ORIGINAL, *CHANGED) if (result := newest(name))]
    head = {"device": measured[0]["device"], "date": date.today().isoformat(), "clock_mhz": HIERARCHIES[ARCH].clock}
    output = options.output or BENCH / "results" / f"timing-model-nvidia-h200-{head['date']}.json"
    commits = {result["pipeline"]: result["commit"] for result in measured}
    output.write_text(json.dumps(head | {"measured": commits} | found, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(found["summary"], indent=1))
    return 0


def predictions(case: Case, known: Sequence[tuple[Profile, int]], hierarchy: Hierarchy) -> list[Prediction]:
    """The prediction of each step."""
    kernels = kernels_of(case.cubin)
    shapes: Sequence[tuple[str, Shape]] = shapes_of(kernels, case.entry.file.launch(case.launch), case.entry.kernel)
    return [predict_kernel(kernels[name], shape, profile, hierarchy) for (name, shape), (profile, _) in zip(shapes, known, strict=True)]


def microseconds(found: Iterable[Prediction]) -> float:
    """Of all steps of a launch together."""
    return sum([prediction.microseconds for prediction in found])


def from_code(case: Case) -> list[Prediction]:
    """What the code and the facts of the launch alone predict for each step."""
    return predict_static(case.cubin, case.entry.kernel, case.entry.file.launch(case.launch), case.entry.file.facts)


def ratio(before: Sequence[Prediction], after: Sequence[Prediction]) -> float | None:
    """How many times as fast it becomes; None where nobody says how often a loop runs, and it is not the same loop."""
    known = all(old.comparable(new) for old, new in zip(before, after, strict=True))
    return round(microseconds(before) / microseconds(after), 3) if known else None


def from_sample(case: Case, folder: Path) -> list[Prediction]:
    """What the sample of the launch predicts for each step."""
    return predictions(case, profiles(case, folder), HIERARCHIES[ARCH])


def times(cases: Sequence[Case], folder: Path) -> list[dict[str, Any]]:
    """A row for each launch: predicted and measured."""
    rows: list[dict[str, Any]] = []
    for case in cases:
        known = profiles(case, folder)
        found = predictions(case, known, HIERARCHIES[ARCH])
        rows.append(
            {
                "kernel": case.entry.kernel,
                "launch": case.launch,
                "predicted_us": round(microseconds(found), 2),
                "measured_us": round(case.seconds * 1e6, 2),
                "bound": [prediction.whole.bound for prediction in found],
                "memory_share": round(case.share, 3),
                "held_out": held_out(case),
                "blocks": [blocks for _, blocks in known],
            }
        )
        print(f"{case.entry.kernel:18}{case.launch:8}{microseconds(found):10.1f} predicted{case.seconds * 1e6:10.1f} µs", flush=True)
    return rows


def compare(rows: list[dict[str, Any]], before: Sequence[Case], after: Sequence[Case], folder: Path, kept: bool) -> dict[str, Any]:
    """A row for each change, and what all rows come to."""
    sampled = {case.place: from_sample(case, folder) for case in before}
    static = {case.place: from_code(case) for case in before}
    changes: list[dict[str, Any]] = []
    for case in after:
        seen = not kept or sample_of(case, folder).is_file()
        changes.append(
            {
                "kernel": case.entry.kernel,
                "launch": case.launch,
                "suite": case.suite,
                "from_code": ratio(static[case.place], from_code(case)),
                "sampled": ratio(sampled[case.place], from_sample(case, folder)) if seen else None,
                "measured": round(case.ratio, 3),
            }
        )
        print(*changes[-1].values(), flush=True)
    by_suite = {suite: changes_summary([c for c in changes if c["suite"] == suite]) for suite in CHANGED.values()}
    return {"summary": summary(rows) | changes_summary(changes), "suites": by_suite, "kernels": rows, "changes": changes}


def held_out(case: Case) -> bool:
    """Whether no number was estimated from this kernel."""
    return case.entry.kernel not in SEEN


def summary(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Errors of the times, and how well they keep the order."""
    free = [row for row in rows if row["memory_share"] < MEMORY_BOUND]
    return {
        "launches": len(rows),
        "rank_correlation_of_times": spearman([(row["predicted_us"], row["measured_us"]) for row in rows]),
        "error_of_all": error(rows),
        "not_memory_bound": len(free),
        "kernels_not_memory_bound": len({row["kernel"] for row in free}),
        "error_not_memory_bound": error(free),
        "error_not_memory_bound_held_out": error([row for row in free if row["held_out"]]),
        "within_20_percent": sum(abs(row["predicted_us"] / row["measured_us"] - 1) <= 0.2 for row in free),
    }


def changes_summary(changes: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """How well predicted changes keep the order of the measured ones: of all, and of those that are more than noise."""
    found: dict[str, Any] = {"changes": len(changes)}
    for way in WAYS:
        pairs = [(change[way], change["measured"]) for change in changes if change[way] is not None]
        beyond = [(predicted, measured) for predicted, measured in pairs if abs(math.log(measured)) > math.log(CHANGE)]
        found[way] = {
            "changes": len(pairs),
            "rank_correlation": spearman(pairs),
            "beyond_2_percent": len(beyond),
            "rank_correlation_of_these": spearman(beyond),
            "right_direction": sum((predicted > 1) == (measured > 1) for predicted, measured in beyond),
            "losses": sum(measured < 1 for _, measured in beyond),
            "losses_foreseen": sum(predicted < 1 for predicted, measured in beyond if measured < 1),
            "gains_taken_for_losses": sum(predicted < LOSS for predicted, measured in pairs if measured > 1),
        }
    return found


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
            tried = varied(best, name, value)
            if (found := deviation(halves[0], tried)) < least - 1e-4:
                best, least = tried, found
                print(f"{name} {value}: {least:.4f}", flush=True)
    print(f"memory latency {best.memory_latency}, second level {best.second_rate:.0f} bytes a cycle, {best.overheads}")
    for half, name in zip(halves, ("estimated from", "held out"), strict=True):
        print(f"{name}: {len(half)} kernels, mean deviation {deviation(half, best):.3f}, before {deviation(half, HIERARCHIES[ARCH]):.3f}")


def varied(hierarchy: Hierarchy, name: str, value: float) -> Hierarchy:
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
