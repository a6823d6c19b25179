"""Record what the GPU computes, so that the emulator is compared with hardware where there is no GPU.

    python bench/build_kernels.py --arch sm_90 -o DIR && python bench/record_outputs.py DIR

Every launch of every bench kernel whose buffers hold at most --limit bytes runs twice. Writes bench/results/outputs/ARCH.json: the
SHA-256 of each output buffer, or why there is none (the kernel differs from itself, or fails), and one ARCH/KERNEL.npz with
the content of the buffers of at most 16 KiB, keys `LAUNCH/BUFFER`, so that a test can say which element differs.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from sassir.errors import SassirError
from sassir.gpu import Worker
from sassir.launch import Launch, Outputs, compare, read_launch_file
from sassir.launch.data import Array

BENCH = Path(__file__).parent
KEPT_BYTES = 16 << 10


def kernels(folder: Path, arch: str) -> Iterator[tuple[str, bytes]]:
    """Every bench kernel of the folder that has a launch file, and its cubin."""
    for path in sorted((BENCH / "launch").glob("*.toml")):
        cubin = folder / f"{path.stem}.{arch}.cubin"
        if cubin.exists():
            yield path.stem, cubin.read_bytes()


def run_twice(worker: Worker, cubin: bytes, launch: Launch) -> Outputs | str:
    """The outputs of a launch, or why there are none to rely on."""
    try:
        first, second = worker.run(cubin, launch), worker.run(cubin, launch)
    except SassirError as error:
        return str(error)
    difference = compare(launch, first, second)
    return first if difference is None else f"differs from itself: {difference}"


def digest(array: Array) -> str:
    """SHA-256 of the bytes of an array."""
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


def commit() -> str | None:
    """The commit that is checked out, if git knows."""
    result = subprocess.run(["git", "rev-parse", "HEAD"], cwd=BENCH, capture_output=True, text=True, check=False)
    return result.stdout.strip() if result.returncode == 0 else None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cubins", type=Path, metavar="DIR", help="cubins made by build_kernels.py for this GPU")
    parser.add_argument("-o", "--output", type=Path, default=BENCH / "results" / "outputs", metavar="DIR")
    parser.add_argument("--limit", type=int, default=1 << 20, metavar="BYTES", help="of the buffers of a launch (default: 1 MiB)")
    options = parser.parse_args()
    records: dict[str, dict[str, Any]] = {}
    with Worker() as worker:
        device = worker.describe_device()
        folder = options.output / device.arch
        folder.mkdir(parents=True, exist_ok=True)
        for kernel, cubin in kernels(options.cubins, device.arch):
            launches = [x for x in read_launch_file(BENCH / "launch" / f"{kernel}.toml").launches.values() if x.nbytes <= options.limit]
            results = {launch.name: run_twice(worker, cubin, launch) for launch in launches}
            records[kernel] = {
                "cubin": hashlib.sha256(cubin).hexdigest(),
                "launches": {
                    name: outputs if isinstance(outputs, str) else {buffer: digest(array) for buffer, array in outputs.items()}
                    for name, outputs in results.items()
                },
            }
            kept = {
                f"{name}/{buffer}": array
                for name, outputs in results.items()
                if not isinstance(outputs, str)
                for buffer, array in outputs.items()
                if array.nbytes <= KEPT_BYTES
            }
            np.savez_compressed(folder / f"{kernel}.npz", **kept)  # type: ignore[arg-type]
            print(f"{kernel:<18}{', '.join(f'{n}: {o}' if isinstance(o, str) else n for n, o in results.items())}")
    if not records:
        parser.error(f"{options.cubins} has no cubins for {device.arch}; build them with bench/build_kernels.py --arch {device.arch}")
    head = {"device": device._asdict(), "date": date.today().isoformat(), "commit": commit()}
    path = options.output / f"{device.arch}.json"
    path.write_text(json.dumps({**head, "kernels": records}, indent=1) + "\n", encoding="utf-8")
    print(f"{device.name}: {len(records)} kernels; written to {path}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except SassirError as error:
        print(f"record_outputs: {error}", file=sys.stderr)
        sys.exit(1)
