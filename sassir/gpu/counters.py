"""Hardware counters of launches, read by NVIDIA's profiler `ncu` where it is installed and allowed to."""

from __future__ import annotations

import csv
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from sassir.errors import LaunchError

SECTIONS = ("InstructionStats", "WarpStateStats")
EXECUTED = "smsp__inst_executed.sum"
_STALL = re.compile(r"smsp__average_warps?_issue_stalled_(?P<reason>\w+)_per_issue_active\.ratio")
_NOT_A_STALL = {"selected"}
_SECONDS_A_LAUNCH = 30


class Job(NamedTuple):
    """One launch to watch."""

    cubin: Path
    file: Path
    launch: str
    steps: int
    """Kernels that it starts."""


class Counters(NamedTuple):
    """One kernel, watched once."""

    executed: int
    """Warp instructions."""
    stalls: Mapping[str, float]
    """Reason to the cycles that a warp waits for it between two of its instructions, the largest first.

    ncu calls their sum `Warp Cycles Per Issued Instruction`.
    """


def read_counters(jobs: Sequence[Job]) -> list[list[Counters]]:
    """The counters of every kernel of every job. Raises LaunchError when ncu cannot be had, or is refused by the driver."""
    ncu = shutil.which("ncu")
    if ncu is None:
        raise LaunchError("ncu is not on PATH")
    arguments = [text for job in jobs for text in (str(job.cubin), str(job.file), job.launch)]
    sections = [text for section in SECTIONS for text in ("--section", section)]
    # Without `--clock-control none` ncu would set the device's clocks.
    options = ["--csv", "--page", "raw", "--print-units", "base", "--clock-control", "none", *sections]
    command = [ncu, *options, sys.executable, "-m", "sassir.gpu.once", *arguments]
    try:
        result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_SECONDS_A_LAUNCH * (1 + len(jobs)))
    except subprocess.TimeoutExpired as error:
        raise LaunchError(f"ncu gave no answer within {error.timeout:g} s") from error
    kernels = list(parse(result.stdout.splitlines()))
    if len(kernels) != sum(job.steps for job in jobs):
        complaint = [line for line in (result.stdout + result.stderr).splitlines() if line.startswith("==ERROR==")]
        raise LaunchError(f"ncu: {complaint[0].removeprefix('==ERROR== ') if complaint else f'{len(kernels)} kernels seen'}")
    rest = iter(kernels)
    return [[next(rest) for _ in range(job.steps)] for job in jobs]


def parse(lines: Iterable[str]) -> Iterable[Counters]:
    """One record for each kernel in ncu's raw CSV, in the order of the launches."""
    table = csv.reader(line for line in lines if line.startswith('"'))
    names = next(table, list[str]())
    for row in table:
        values = dict(zip(names, row, strict=True))
        if not values["ID"]:  # the units
            continue
        stalls = {match["reason"]: _number(values[name]) for name in names if (match := _STALL.fullmatch(name))}
        waiting = {reason: value for reason, value in stalls.items() if value > 0 and reason not in _NOT_A_STALL}
        yield Counters(int(_number(values[EXECUTED])), dict(sorted(waiting.items(), key=lambda item: -item[1])))


def _number(text: str) -> float:
    return float(text.replace(",", ""))
