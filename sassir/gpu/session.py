"""Many pairs measured one after the other on one device, with the ceilings and counters of the same run."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from sassir.errors import LaunchError
from sassir.gpu.cause import explain
from sassir.gpu.ceilings import measure_ceilings
from sassir.gpu.counters import Job, read_counters
from sassir.gpu.pair import Pair, Result, Side, check, measure
from sassir.gpu.report import Setting, find_commit
from sassir.gpu.worker import Worker
from sassir.launch import Launch, LaunchFile


class Case(NamedTuple):
    """A pair over a launch file: every launch is checked, and timed if the file says so."""

    pair: Pair
    file: LaunchFile
    only: str | None = None
    """The one launch to check and to time, in place of all."""

    @property
    def telling(self) -> str | None:
        """The launch whose counters are worth reading."""
        return self.only or next(iter(self.file.timed), None)

    def launches(self) -> list[tuple[Launch, bool]]:
        """What to run, and whether to time it."""
        if self.only is not None:
            return [(self.file.launch(self.only), True)]
        return [(launch, name in self.file.timed) for name, launch in self.file.launches.items()]


class Options(NamedTuple):
    """How to measure."""

    seconds: float = 0.4
    """To sample each launch."""
    timeout: float = 30
    """For a launch, in seconds; a kernel that takes longer has failed."""
    counters: bool = True
    """Ask ncu for executed instructions and stall reasons, once for each pair."""
    commit: str | None = None
    """What to record; None: what git says."""


def measure_all(cases: Iterable[Case], options: Options, show: Callable[[Result], None] | None = None) -> tuple[Setting, list[Result]]:
    """Measure every case; what kernels do is a result, and the next case still runs. `show` sees each result as it comes.

    Raises LaunchError only where there is no usable GPU.
    """
    results, watched = list[Result](), list[tuple[Result, Case, Launch]]()
    begin = time.perf_counter()
    with Worker(options.timeout) as worker:
        device = worker.describe_device()
        ceilings = worker.call(measure_ceilings)
        for case in cases:
            for launch, timed in case.launches():
                pair = case.pair
                result = measure(worker, pair, launch, ceilings, options.seconds) if timed else check(worker, pair, launch)
                results.append(result)
                if launch.name == case.telling:
                    watched.append((result, case, launch))
                if show:
                    show(result)
    source = _count(watched) if options.counters else "not asked"
    for result in results:
        if result.measured:
            result.cause = explain(result.measured)
    seconds = time.perf_counter() - begin
    return Setting(device, ceilings, options.commit or find_commit(), source, seconds), results


def _count(watched: Sequence[tuple[Result, Case, Launch]]) -> str:
    """Give the measured ones of these results their counters; `ncu`, or why there are none."""
    sides, jobs = list[Side](), list[Job]()
    with tempfile.TemporaryDirectory() as folder:
        for result, case, launch in watched:
            if not result.measured:
                continue
            for cubin, side in ((case.pair.original, result.measured.original), (case.pair.candidate, result.measured.candidate)):
                path = Path(folder) / f"{len(jobs)}.cubin"
                path.write_bytes(cubin)
                sides.append(side)
                jobs.append(Job(path, case.file.path, launch.name, len(launch.steps)))
        try:
            found = read_counters(jobs) if jobs else []
        except LaunchError as error:
            return f"none: {error}"
    for side, counters in zip(sides, found, strict=True):
        side.counters = counters
    return "ncu"
