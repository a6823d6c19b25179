"""How fast the emulator is: thread instructions a second on full blocks.

    python bench/emulator_speed.py

Writes bench/results/emulator-speed.json.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import sys
import tempfile
import time
from datetime import date
from pathlib import Path

import numpy as np

from sassir.emulator import Counts, emulate
from sassir.errors import SassirError
from sassir.launch import Launch, read_launch_file

BENCH = Path(__file__).parent

SIZES = {
    "aes_tconst": "n = 65536, rounds = 10",
    "black_scholes": "n = 131072",
    "mandelbrot": "w = 512, h = 256, limit = 64",
    "nbody": "n = 1024, b = 256",
    "poly_strict": "n = 131072, steps = 32",
    "sgemm_tiled": "M = 128, N = 128, K = 128",
    "stencil3d7": "nx = 128, ny = 64, nz = 32",
    "xxh32_rows": "rows = 16384, len = 256",
}
"""Sizes that keep many full blocks busy."""


def launch_of(kernel: str) -> Launch:
    """The launch of the kernel's file with the sizes of `SIZES`."""
    text = (BENCH / "launch" / f"{kernel}.toml").read_text(encoding="utf-8")
    text = re.sub(r"\[launches\]\n(.+\n)+", f"[launches]\nspeed = {{ {SIZES[kernel]} }}\n", text)
    text = re.sub(r"(?m)^timed = .*\n", "", text)
    text = re.sub(r"\[fill\.\w+\]\n(.+\n)+", "", text)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{kernel}.toml"
        path.write_text(text, encoding="utf-8")
        return read_launch_file(path).launch("speed")


def measure(cubin: bytes, launch: Launch) -> dict[str, float]:
    """Thread instructions, seconds of processor time (one thread; decoding included), and millions of thread instructions a second."""
    counts = Counts()
    start = time.process_time()
    emulate(cubin, launch, counts=counts)
    seconds = time.process_time() - start
    count = counts.thread_instructions
    return {"thread_instructions": count, "seconds": round(seconds, 3), "millions_a_second": round(count / seconds / 1e6, 1)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernels", nargs="*", metavar="KERNEL", help="all by default")
    parser.add_argument("--cubins", type=Path, default=BENCH / "cubins", metavar="DIR", help="made by build_kernels.py")
    parser.add_argument("--arch", default="sm_90")
    parser.add_argument("-o", "--output", type=Path, default=BENCH / "results" / "emulator-speed.json", metavar="FILE")
    options = parser.parse_args()
    results: dict[str, dict[str, float]] = {}
    for kernel in options.kernels or SIZES:
        results[kernel] = measure((options.cubins / f"{kernel}.{options.arch}.cubin").read_bytes(), launch_of(kernel))
        print(f"{kernel:<16}{results[kernel]['thread_instructions']:>14,}{results[kernel]['millions_a_second']:>10} M/s")
    machine = {"processor": platform.processor() or platform.machine(), "python": platform.python_version(), "numpy": np.__version__}
    head = {"date": date.today().isoformat(), "arch": options.arch, **machine}
    options.output.write_text(json.dumps({**head, "kernels": results}, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except SassirError as error:
        print(f"emulator_speed: {error}", file=sys.stderr)
        sys.exit(1)
