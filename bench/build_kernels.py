"""Build the bench kernels: bench/build_kernels.py --arch sm_90 -o DIR [KERNEL …] writes DIR/KERNEL.sm_90.cubin with nvcc from PATH.

What a flag alone would have done:

    python bench/build_kernels.py --arch sm_90 --maxrregcount 64 -o maxrregcount-64
    sassir bench-suite --against maxrregcount-64

Code to which no compiler has done anything yet:

    python bench/build_kernels.py --arch sm_90 --unoptimised -o unoptimised
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

BENCH = Path(__file__).parent
SOURCES = {path.stem: path for folder in ("kernels", "edits") for path in sorted((BENCH / folder).glob("*.cu"))}

FLAGS = {"poly_strict": ["-fmad=false"]}
"""What a kernel is built with beyond -O3."""
PTX_ARCH = {"silu_mul_bf16": "compute_75"}
"""Kernels built through PTX of an older architecture, as a library that ships one PTX would be."""


def build(kernel: str, arch: str, folder: Path, more: Sequence[str] = ()) -> str | None:
    """Compile one kernel, with `more` flags; nvcc's message if that fails."""
    ptx_arch = PTX_ARCH.get(kernel, arch.replace("sm_", "compute_"))
    target = ["-gencode", f"arch={ptx_arch},code={arch}"]
    output = folder / f"{kernel}.{arch}.cubin"
    command = ["nvcc", "-O3", "-cubin", *target, *FLAGS.get(kernel, []), *more, "-o", str(output), str(SOURCES[kernel])]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    return f"{kernel} for {arch}: {result.stderr.strip()}" if result.returncode else None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernels", nargs="*", metavar="KERNEL", help="all by default")
    parser.add_argument("--arch", action="append", required=True, help="sm_90; may be repeated")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="DIR")
    parser.add_argument("--maxrregcount", type=int, metavar="N", help="most registers of a thread, whatever the source says")
    parser.add_argument("--unoptimised", action="store_true", help="by a front end and an assembler that do not optimise")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    if unknown := set(options.kernels) - SOURCES.keys():
        parser.error(f"no kernel {min(unknown)!r}; there are {', '.join(SOURCES)}")
    options.output.mkdir(parents=True, exist_ok=True)
    jobs = [(kernel, arch) for arch in options.arch for kernel in options.kernels or SOURCES]
    more = [] if options.maxrregcount is None else ["-maxrregcount", str(options.maxrregcount)]
    more += ["-Xcicc", "-O0", "-Xptxas", "-O0"] if options.unoptimised else []
    with ThreadPoolExecutor(options.jobs) as pool:
        failures = [message for message in pool.map(lambda job: build(*job, options.output, more), jobs) if message]
    for message in failures:
        print(message, file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
