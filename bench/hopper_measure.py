"""What Hopper needs: latencies, issue intervals and scoreboard rules, measured with probes written in SASS.

    python bench/hopper_measure.py -o OUT                    # needs an sm_90 GPU and PyCUDA; two minutes
    python bench/hopper_measure.py --publish OUT/FILE.json   # anywhere: page and table overlay from a result

The first writes OUT/hopper-GPU-DATE.json; groups of probes run in processes of their own, and one that fails is listed, not fatal.
The second copies the result to bench/results, and writes docs/hopper-measured.md and sassir/machine/tables/sm_90.measured.txt.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

from hopper import hazards, intervals, orders
from hopper.report import overlay, page

from sassir.errors import SassirError
from sassir.gpu.worker import Worker

ROOT = Path(__file__).parents[1]
GROUP_SECONDS = 60.0
"""Time that one group of probes may take."""

Task = tuple[str, str, Callable[[Worker], list[dict[str, Any]]]]
"""Name of a group, where its results go, and what measures it."""


def tasks() -> Iterator[Task]:
    """All groups of probes."""
    yield "scoreboards and queues", "rules", lambda worker: [rule._asdict() for rule in orders.measure(worker)]
    for group in intervals.GROUPS:
        yield group, "intervals", lambda worker, group=group: [found._asdict() for found in intervals.measure(worker, group)]
    for number, (kind, chosen) in enumerate(hazards.all_pairs()):
        yield f"{kind}, part {number}", "hazards", lambda worker, chosen=chosen: hazards.measure(worker, chosen)


def measure(folder: Path) -> int:
    """Run everything; write the result after each group. Returns 1 if a group failed."""
    folder.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    with Worker(GROUP_SECONDS) as worker:
        device = worker.describe_device()
        if device.arch != "sm_90":
            raise SassirError(f"the probes are for sm_90; this device, {device.name}, is {device.arch}")
        today = date.today().isoformat()
        found: dict[str, Any] = {"device": device._asdict(), "date": today, "hazards": [], "intervals": [], "rules": [], "failed": {}}
        path = folder / f"hopper-{device.name.lower().replace(' ', '-')}-{today}.json"
        for name, where, run in tasks():
            try:
                found[where] += run(worker)
            except SassirError as error:
                found["failed"][name] = str(error)
            path.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
            print(f"{time.monotonic() - start:5.0f} s  {name}: {found['failed'].get(name, 'done')}", file=sys.stderr)
    print(path)
    return 1 if found["failed"] else 0


def publish(result: Path) -> int:
    """Page, overlay and copy of a result."""
    kept = ROOT / "bench" / "results" / result.name
    if result.resolve() != kept.resolve():
        shutil.copyfile(result, kept)
    measured = json.loads(result.read_text("utf-8"))
    (ROOT / "docs" / "hopper-measured.md").write_text(page(measured, f"bench/results/{result.name}"), "utf-8")
    (ROOT / "sassir" / "machine" / "tables" / "sm_90.measured.txt").write_text(overlay(measured), "utf-8")
    return 0


def main() -> int:
    """Measure, or publish."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("-o", "--output", type=Path, metavar="OUT", help="measure, and write the result into this folder")
    what.add_argument("--publish", type=Path, metavar="FILE", help="make page and table overlay from a result")
    arguments = parser.parse_args()
    try:
        return measure(arguments.output) if arguments.output else publish(arguments.publish)
    except SassirError as error:
        print(f"hopper_measure: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
