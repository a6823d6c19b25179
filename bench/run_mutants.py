"""Does the GPU agree with the schedule checker about planted bugs?

    python bench/mutants.py --write DIR --count 200 bench/cubins/*.sm_90.cubin
    python bench/run_mutants.py DIR -o JSON [--seconds 150]

Each mutant runs once with full multiprocessors, and once with one block on a multiprocessor (by shared memory that nobody uses; 128
threads are one warp a scheduler), because other warps hide a short stall. What gives another result than the original and was not
reported is a hole in the checker; the exit status is 1. Each launch runs in another process, for LAUNCH_SECONDS at most; what does not
begin in the time given for all of them is counted as left out.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

from sassir.gpu import Worker
from sassir.gpu.pair import Pair, check
from sassir.gpu.report import find_commit
from sassir.launch import Launch, read_launch_file

BENCH = Path(__file__).parent
LAUNCH_SECONDS = 5
LIMIT = 80 << 20
"""Bytes of the buffers of a launch at most."""
ALONE = 160 << 10
"""Bytes of shared memory that leave room for one block on a multiprocessor of an H200."""


def launches(kernel: str) -> Iterator[tuple[str, Launch]]:
    """The largest launch of a kernel that is not too large; and `small` with one block on a multiprocessor."""
    file = read_launch_file(BENCH / "launch" / f"{kernel}.toml")
    yield "full", max([launch for launch in file.launches.values() if launch.nbytes <= LIMIT], key=lambda launch: launch.nbytes)
    small = file.launch("small")
    alone = tuple([replace(step, shared=max(step.shared, ALONE)) for step in small.steps])
    yield "one block a multiprocessor", replace(small, steps=alone)


def run(folder: Path, output: Path, seconds: float) -> int:
    """Launch every mutant of a folder against its original. The number of wrong results that were not reported."""
    records: list[dict[str, Any]] = []
    entries = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    random.Random(1).shuffle(entries)  # whatever the time is enough for is a fair sample
    begin, left_out = time.monotonic(), 0
    with Worker(timeout=LAUNCH_SECONDS) as worker:
        device = worker.describe_device()
        for entry in entries:
            kernel = entry["kernel"]
            pair = Pair(kernel, (folder / f"{kernel}.original.cubin").read_bytes(), (folder / entry["file"]).read_bytes())
            for manner, launch in launches(kernel):
                if time.monotonic() - begin > seconds:
                    left_out += 1
                    continue
                result = check(worker, pair, launch)
                records.append({**entry, "manner": manner, "launch": launch.name, "outcome": result.outcome, "detail": result.detail})
    holes = [r for r in records if r["outcome"] != "equal" and not r["reported"]]
    counts = Counter([f"{'reported' if r['reported'] else 'accepted'}, {r['manner']}, {r['outcome']}" for r in records])
    head: dict[str, Any] = {"device": device._asdict(), "date": date.today().isoformat(), "commit": find_commit()}
    head |= {"counts": dict(sorted(counts.items())), "left_out": left_out, "holes": holes}
    output.write_text(json.dumps({**head, "records": records}, indent=1) + "\n", encoding="utf-8")
    for name, number in sorted(counts.items()):
        print(f"{number:6} {name}")
    for hole in holes:
        print(f"not reported: {hole['change']}: {hole['outcome']} ({hole['manner']}): {hole['detail']}")
    return len(holes)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="JSON")
    parser.add_argument("--seconds", type=float, default=150, help="for all launches together")
    options = parser.parse_args()
    return 1 if run(options.folder, options.output, options.seconds) else 0


if __name__ == "__main__":
    sys.exit(main())
