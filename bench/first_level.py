"""What a kernel loses when shared memory takes its first-level cache: the same code and as many blocks, with more or less shared memory.

    python bench/first_level.py -o OUT [KERNEL …]      # on a GPU, a second for each kernel

Each kernel of the suite that needs little shared memory gets as much as makes its blocks fill a partition of shared memory (see
`sassir.analysis.occupancy.shared_partition`), and does not use it. Timed is the largest partition, which leaves least to L1, against each
other that the same number of blocks fits into. Both the originals and what `-p launch` makes of them are measured; what they compute is
checked. Writes first-level-GPU-DATE.json.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import warnings
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

from sassir.analysis.occupancy import MULTIPROCESSORS, occupancy, shared_partition
from sassir.cubin.cubin import Cubin
from sassir.cubin.elf import Elf
from sassir.cubin.shared import grown
from sassir.cubin.summary import KernelSummary, summarise
from sassir.errors import SassirError, SassirWarning
from sassir.gpu import Worker
from sassir.gpu.pair import Pair, check
from sassir.gpu.report import find_commit
from sassir.gpu.statistics import compare_times
from sassir.gpu.suite import Entry, find_suite
from sassir.gpu.timing import sample
from sassir.launch import Launch
from sassir.machine.hierarchy import HIERARCHIES
from sassir.optimize import Task, optimise_cubin, read_pipeline

BENCH = Path(__file__).parent
ARCH = "sm_90"
PARTITIONS = (132, 164, 196, 228)
"""KiB of shared memory."""
MOST_STATIC = 48 * 1024
SECONDS = 0.08
"""To sample each pair."""


def versions(data: bytes, kernel: str, threads: int) -> Iterator[tuple[int, bytes]]:
    """The kernel with as much shared memory as fills each partition that its blocks fit into: bytes left for L1, and the cubin."""
    cubin = Cubin.read(data, kernel)
    summary = next(k for k in summarise(cubin).kernels if k.name == kernel)
    assert summary.registers is not None
    blocks = occupancy(ARCH, summary.registers, summary.asked_shared, threads, summary.barriers).blocks
    for kib in PARTITIONS:
        asked = kib * 1024 // blocks // 128 * 128 - MULTIPROCESSORS[ARCH].reserved
        if not summary.asked_shared <= asked <= MOST_STATIC:
            continue
        fits = occupancy(ARCH, summary.registers, asked, threads, summary.barriers)
        if fits.blocks == blocks and shared_partition(ARCH, fits.shared) == kib * 1024:
            yield HIERARCHIES[ARCH].first_size - kib * 1024, _with_shared(cubin, summary, asked)


def _with_shared(cubin: Cubin, kernel: KernelSummary, asked: int) -> bytes:
    elf = Elf.read(cubin.data, kernel.name)
    return grown(elf, elf.sections[kernel.section], cubin.arch, asked - kernel.asked_shared)


def measure(worker: Worker, entry: Entry, what: str, data: bytes, launch: Launch) -> Iterator[dict[str, Any]]:
    """The time with the least L1 over that with more."""
    (step,) = launch.steps
    found = list(versions(data, entry.kernel, math.prod(step.block)))
    for left, cubin in found[:-1]:
        least, slow = found[-1]
        record: dict[str, Any] = {"kernel": entry.kernel, "launch": launch.name, "code": what, "least": least, "left": left}
        results = [check(worker, Pair(entry.kernel, entry.cubin.read_bytes(), made), launch) for made in (slow, cubin)]
        if bad := [result for result in results if result.outcome != "equal"]:
            yield record | {"outcome": bad[0].outcome, "detail": bad[0].detail}
            continue
        times = compare_times(worker.call(sample, slow, cubin, launch, SECONDS))
        seconds = {"least": times.original.median, "left": times.candidate.median}
        yield record | {"outcome": "equal", "seconds": seconds, "ratio": times.ratio, "low": times.low, "high": times.high}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernels", nargs="*", metavar="KERNEL", help="(default: all)")
    parser.add_argument("-o", "--output", type=Path, default=BENCH / "results", metavar="OUT")
    parser.add_argument("--commit", help="what to record as commit, where git does not know")
    options = parser.parse_args()
    warnings.simplefilter("ignore", SassirWarning)
    records, pipeline = list[dict[str, Any]](), read_pipeline("launch")
    with Worker() as worker:
        device = worker.describe_device()
        for entry in find_suite(BENCH, ARCH, options.kernels):
            launch, original = entry.file.launch(entry.file.timed[0]), entry.cubin.read_bytes()
            if len(launch.steps) > 1 or launch.steps[0].kernel != entry.kernel or launch.steps[0].shared:
                continue
            made = optimise_cubin(Task(original, entry.kernel, pipeline, entry.file.facts, launch)).cubin
            for what, data in (("original", original), ("launch", made)):
                for record in measure(worker, entry, what, data, launch):
                    records.append(record)
                    detail = record.get("detail") or f"{record['ratio']:.3f}"
                    print(f"{entry.kernel:18}{what:10}{record['least'] >> 10} to {record['left'] >> 10} KiB: {detail}", flush=True)
    head = {"device": device._asdict(), "date": date.today().isoformat(), "commit": options.commit or find_commit()}
    path = options.output / f"first-level-{device.name.lower().replace(' ', '-')}-{head['date']}.json"
    options.output.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(head | {"records": records}, indent=1) + "\n", encoding="utf-8")
    return int(any(record["outcome"] != "equal" for record in records))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except SassirError as error:
        print(f"first_level: {error}", file=sys.stderr)
        sys.exit(1)
