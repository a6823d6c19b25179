"""How many instructions a second the checker, sass-schedule and sass-assign-control take, by the size of the kernel: processor seconds.

    python bench/schedule_speed.py [--sizes 1 4 16 64]

The kernels are those of bench/pipeline_speed.py, for which nvcc is needed; each is done twice, and the second time counts: the first one
fills the caches of forms. Writes bench/results/schedule-speed.json.
"""

from __future__ import annotations

import argparse
import json
import platform
import tempfile
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path

from pipeline_speed import ARCH, BENCH, build
from xdsl.context import Context

from sassir.optimize import collection_paused, make_pass
from sassir.translate.cubin import read_module, read_program
from sassir.verify.schedule import check_schedule

SIZES = (1, 4, 16, 64)
BEFORE = {"sass-schedule": ["sass-virtualise"], "sass-assign-control": []}
"""Passes, and what must run before them."""


def measure(cubin: bytes) -> dict[str, object]:
    """Instructions, and how many of them each takes in a second."""
    program = read_program(cubin)
    count = sum(len(function.lines) for function in program.functions)
    seconds = {"checker": _seconds(lambda: check_schedule(program))}
    for name, before in BEFORE.items():
        for _ in range(2):
            module = read_module(cubin)
            for step in before:
                make_pass(step).apply(Context(), module)
            seconds[name] = _seconds(lambda name=name, module=module: make_pass(name).apply(Context(), module), 1)
    return {"instructions": count, "per_second": {name: round(count / taken) for name, taken in seconds.items()}}


def _seconds(work: Callable[[], object], times: int = 2) -> float:
    """Processor time of the last of some runs."""
    taken = 0.0
    for _ in range(times):
        with collection_paused():
            start = time.process_time()
            work()
            taken = time.process_time() - start
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="options that a thread prices, some 300 instructions each")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        kernels = [measure(build(count, Path(folder))) for count in options.sizes]
    result = {"date": date.today().isoformat(), "arch": ARCH, "python": platform.python_version(), "kernels": kernels}
    (BENCH / "results" / "schedule-speed.json").write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(kernels, indent=1))


if __name__ == "__main__":
    main()
