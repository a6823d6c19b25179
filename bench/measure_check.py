"""Can the measurement be believed? A kernel against itself, planted slowdowns, and every planted fault, on this GPU.

    python bench/measure_check.py [-o DIR]

- The same cubin against itself, twenty times for each of several kernels of 20 µs and more: the ratio is within 1 % and the verdict
  `same` in at least 19.
- One kernel with a few more dependent instructions in its hot loop: whatever makes it 3 % slower or more is called slower.
- A wrong result, an illegal address, a misaligned access, an endless loop, too much shared memory, a cubin of another
  architecture: each is reported as what it is, and the next candidate still runs.

Writes measure-check-GPU-DATE.json into DIR, bench/results by default; exits with 1 if anything does not hold.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from datetime import date
from pathlib import Path

from planted import KERNEL, LAUNCHES, LOOP_INSTRUCTIONS, ORIGINAL, OTHER_ARCHITECTURE, REPLACEMENTS, faulty, slowed_down

from sassir.errors import SassirError
from sassir.gpu import Worker
from sassir.gpu.ceilings import measure_ceilings
from sassir.gpu.pair import Pair, check, measure
from sassir.gpu.report import find_commit
from sassir.gpu.statistics import MARGIN, compare_times
from sassir.gpu.timing import sample
from sassir.launch import Launch, read_launch_file

BENCH = Path(__file__).parent
RUNS, NEEDED = 20, 19
AGAINST_THEMSELVES = {
    "saxpy_gs": "full",
    "sgemm_tiled": "full",
    "reduce_sum": "medium",
    "transpose_tile": "medium",
    "triton_layernorm": "full",
    "poly_strict": "medium",
}
"""Kernels that memory, arithmetic, latency or shared memory bounds, and the launch to time."""
ADDED = (1, 2, 3, 4, 6, 8)
"""Instructions more in a loop of LOOP_INSTRUCTIONS."""
SLOWDOWN = 0.03
REPORTED = {
    "wrong result": ("different", "elements differ"),
    "illegal address": ("failed", "illegal memory access"),
    "misaligned access": ("failed", "misaligned address"),
    "endless loop": ("failed", "may loop forever"),
    "too much shared memory": ("failed", "too much shared memory"),
    "another architecture": ("failed", "it is for sm_80"),
}
"""Fault to the outcome and the words that must name it."""


@dataclass(frozen=True)
class Record:
    """One thing that was checked."""

    check: str
    holds: bool
    detail: str
    seconds: float = 0


def against_itself(worker: Worker, kernel: str, name: str) -> Iterator[Record]:
    """The same cubin as original and candidate."""
    cubin = (BENCH / "cubins" / f"{kernel}.sm_90.cubin").read_bytes()
    launch = read_launch_file(BENCH / "launch" / f"{kernel}.toml").launch(name)
    begin = time.perf_counter()
    found = [compare_times(worker.call(sample, cubin, cubin, launch, 0.4)) for _ in range(RUNS)]
    good = [abs(c.ratio - 1) <= MARGIN and c.verdict == "same" for c in found]
    ratios, microseconds = [c.ratio for c in found], found[0].original.median * 1e6
    detail = f"{sum(good)} of {RUNS} same within 1 %; ratios {min(ratios):.4f} to {max(ratios):.4f}; {microseconds:.1f} µs"
    yield Record(f"{kernel} against itself", sum(good) >= NEEDED, detail, time.perf_counter() - begin)


def slowdowns(worker: Worker, launch: Launch) -> Iterator[Record]:
    """More instructions in the hot loop: equal results, and slower from SLOWDOWN on."""
    called, ceilings = list[bool](), worker.call(measure_ceilings)
    for added in ADDED:
        begin = time.perf_counter()
        result = measure(worker, Pair(KERNEL, ORIGINAL.read_bytes(), slowed_down(added)), launch, ceilings, seconds=0.4)
        if result.measured is None:
            yield Record(f"{added} instructions more", False, f"{result.outcome}: {result.detail}", time.perf_counter() - begin)
            continue
        comparison = result.measured.comparison
        slowed = 1 / comparison.ratio - 1
        holds = result.outcome == "equal" and (comparison.verdict == "slower" or slowed < SLOWDOWN)
        if slowed >= SLOWDOWN:
            called.append(holds)
        detail = f"{slowed:.2%} slower (interval {1 / comparison.high - 1:.2%} to {1 / comparison.low - 1:.2%}): {comparison.verdict}"
        yield Record(f"{added} of {LOOP_INSTRUCTIONS} instructions more in the loop", holds, detail, time.perf_counter() - begin)
    yield Record("a slowdown of 3 % was planted and called", bool(called) and all(called), f"{len(called)} slowdowns of 3 % and more")


def faults(worker: Worker, launch: Launch) -> Iterator[Record]:
    """Each fault, and after each the original once more."""
    original = ORIGINAL.read_bytes()
    (step,) = launch.steps
    oversized = replace(launch, steps=(replace(step, shared=1 << 20),))
    tried = {fault: (faulty(fault), launch) for fault in REPLACEMENTS}
    tried |= {"too much shared memory": (original, oversized), "another architecture": (OTHER_ARCHITECTURE.read_bytes(), launch)}
    for fault, (candidate, case) in tried.items():
        begin = time.perf_counter()
        result = check(worker, Pair(KERNEL, original, candidate), case)
        outcome, words = REPORTED[fault]
        holds = result.outcome == outcome and words in result.detail
        yield Record(fault, holds, f"{result.outcome}: {result.detail}", time.perf_counter() - begin)
        after = check(worker, Pair(KERNEL, original, original), launch)
        yield Record(f"the next candidate after {fault}", after.outcome == "equal", f"{after.outcome} {after.detail}")


def records(worker: Worker) -> Iterator[Record]:
    """Everything, in order."""
    launches = read_launch_file(LAUNCHES)
    yield from faults(worker, launches.launch("small"))
    yield from slowdowns(worker, launches.launch("full"))
    for kernel, name in AGAINST_THEMSELVES.items():
        yield from against_itself(worker, kernel, name)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=BENCH / "results", metavar="DIR")
    parser.add_argument("--commit", help="what to record as commit, where git does not know")
    options = parser.parse_args()
    found, begin = list[Record](), time.perf_counter()
    with Worker(timeout=10) as worker:
        device = worker.describe_device()
        for record in records(worker):
            found.append(record)
            print(f"{'holds' if record.holds else 'FAILS':6}{record.check:55}{record.seconds:6.1f} s  {record.detail}", flush=True)
    head = {"device": device._asdict(), "date": date.today().isoformat(), "commit": options.commit or find_commit()}
    head["seconds"] = round(time.perf_counter() - begin, 1)
    path = options.output / f"measure-check-{device.name.lower().replace(' ', '-')}-{date.today().isoformat()}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**head, "records": [asdict(record) for record in found]}, indent=1) + "\n", encoding="utf-8")
    print(f"{device.name}, driver {device.driver}: {sum(r.holds for r in found)} of {len(found)} hold; written to {path}")
    return 0 if all(record.holds for record in found) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except SassirError as error:
        print(f"measure_check: {error}", file=sys.stderr)
        sys.exit(1)
