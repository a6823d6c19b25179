"""How long a whole verification takes: every kernel of the suite against its rebuild, and against what `sassir optimize` makes of it.

    python bench/verify_speed.py

Each pair climbs the ladder of `sassir verify` with all small launches of its launch file, without a GPU. Writes
bench/results/verify-speed.json; exits with 1 if a pair takes more than half a minute of processor time (one thread), or does not hold.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

from sassir.errors import SassirError
from sassir.gpu.suite import Entry, find_suite
from sassir.optimize import Task, optimise_cubin, read_pipeline
from sassir.translate.cubin import read_program, write_cubin
from sassir.verify.assumptions import Assumptions
from sassir.verify.ladder import verify_pair

BENCH = Path(__file__).parent
LIMIT = 30
"""Seconds."""


def candidates(entry: Entry, original: bytes) -> Iterator[tuple[str, bytes, Assumptions | None]]:
    """What to compare the original with: its name, the cubin, and the facts that it relies on."""
    yield "rebuilt", write_cubin(read_program(original), from_fields=True), None
    launch = entry.file.small[0]
    made = optimise_cubin(Task(original, str(entry.cubin), read_pipeline("launch"), entry.file.facts, launch))
    yield f"optimised for {launch.name}", made.cubin, made.assumptions


def measure(entry: Entry) -> Iterator[dict[str, Any]]:
    """For each candidate the verdict, and the seconds of each layer and of all, with the emulation of the original."""
    original = entry.cubin.read_bytes()
    for name, candidate, assumptions in candidates(entry, original):
        begin, processor = time.perf_counter(), time.process_time()
        report = verify_pair(original, candidate, entry.file.small, entry.file.facts, assumptions=assumptions)
        yield {
            "kernel": entry.kernel,
            "candidate": name,
            "verdict": report.verdict,
            "seconds": round(time.perf_counter() - begin, 2),
            "processor_seconds": round(time.process_time() - processor, 2),
            "layers": {layer.name: round(layer.seconds, 2) for layer in report.layers},
            "detail": report.layers[-1].detail,
        }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernels", nargs="*", metavar="KERNEL", help="all by default")
    parser.add_argument("-o", "--output", type=Path, default=BENCH / "results" / "verify-speed.json", metavar="FILE")
    options = parser.parse_args()
    results: list[dict[str, Any]] = []
    for entry in find_suite(BENCH, "sm_90", options.kernels):
        for found in measure(entry):
            results.append(found)
            times = f"{found['processor_seconds']:6.2f} s ({found['seconds']:.2f} s elapsed)"
            print(f"{found['kernel']:<18}{found['candidate']:<22}{found['verdict']:<10}{times}", flush=True)
    most = max(results, key=lambda found: found["processor_seconds"])
    good = all(found["verdict"] == "holds" for found in results) and most["processor_seconds"] < LIMIT
    machine = {"processor": platform.processor() or platform.machine(), "python": platform.python_version()}
    record = {"date": date.today().isoformat(), **machine, "holds": good, "longest": most["processor_seconds"], "pairs": results}
    options.output.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(f"{len(results)} pairs, {most['processor_seconds']} s at most ({most['kernel']}); written to {options.output}")
    return 0 if good else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except SassirError as error:
        print(f"verify_speed: {error}", file=sys.stderr)
        sys.exit(1)
