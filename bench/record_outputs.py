"""Record what the GPU computes, so that the emulator is compared with hardware where there is no GPU.

    python bench/record_outputs.py

Every launch of the suite's kernels (bench/cubins) that is not there to be timed runs twice. Writes two files in bench/results/outputs:
ARCH.json, the SHA-256 of each output buffer, or why there is none (the kernel differs from itself, or fails); and ARCH.npz, the
content of the buffers of at most 16 KiB, keys `KERNEL/LAUNCH/BUFFER`, so that a test can say which element differs.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from sassir.errors import SassirError
from sassir.gpu import Worker
from sassir.gpu.report import find_commit
from sassir.gpu.suite import Entry, find_suite
from sassir.launch import Launch, Outputs, compare
from sassir.launch.data import Array

BENCH = Path(__file__).parent
KEPT_BYTES = 16 << 10


def run_twice(worker: Worker, cubin: bytes, launch: Launch) -> Outputs | str:
    """The outputs of a launch, or why there are none to rely on."""
    try:
        first, second = worker.run(cubin, launch), worker.run(cubin, launch)
    except SassirError as error:
        return str(error)
    difference = compare(launch, first, second)
    return first if difference is None else f"differs from itself: {difference}"


def record(worker: Worker, entry: Entry) -> dict[str, Outputs | str]:
    """What the small launches of a kernel give, by name."""
    cubin = entry.cubin.read_bytes()
    return {launch.name: run_twice(worker, cubin, launch) for launch in entry.file.small}


def digest(array: Array) -> str:
    """SHA-256 of the bytes of an array."""
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=BENCH / "results" / "outputs", metavar="DIR")
    parser.add_argument("--commit", help="what to record as commit, where git does not know")
    options = parser.parse_args()
    records: dict[str, dict[str, Any]] = {}
    kept: dict[str, Array] = {}
    with Worker() as worker:
        device = worker.describe_device()
        for entry in find_suite(BENCH, device.arch):
            results = record(worker, entry)
            outputs = {name: found for name, found in results.items() if not isinstance(found, str)}
            arrays = {f"{entry.kernel}/{name}/{buffer}": a for name, found in outputs.items() for buffer, a in found.items()}
            kept |= {key: array for key, array in arrays.items() if array.nbytes <= KEPT_BYTES}
            digests = {name: o if isinstance(o, str) else {b: digest(a) for b, a in o.items()} for name, o in results.items()}
            records[entry.kernel] = {"cubin": hashlib.sha256(entry.cubin.read_bytes()).hexdigest(), "launches": digests}
            print(f"{entry.kernel:<18}{', '.join(f'{n}: {o}' if isinstance(o, str) else n for n, o in results.items())}", flush=True)
    options.output.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(options.output / f"{device.arch}.npz", **kept)  # type: ignore[arg-type]
    head = {"device": device._asdict(), "date": date.today().isoformat(), "commit": options.commit or find_commit()}
    path = options.output / f"{device.arch}.json"
    path.write_text(json.dumps({**head, "kernels": records}, indent=1) + "\n", encoding="utf-8")
    print(f"{device.name}: {len(records)} kernels; written to {path} and {path.with_suffix('.npz').name}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except SassirError as error:
        print(f"record_outputs: {error}", file=sys.stderr)
        sys.exit(1)
