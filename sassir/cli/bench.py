"""`sassir bench`: two cubins over one launch file on the GPU: the same results? which is faster, and why?"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sassir.cli.extract import read_file
from sassir.launch import LaunchFile, read_launch_file

if TYPE_CHECKING:
    from sassir.gpu.pair import Result
    from sassir.gpu.report import Setting
    from sassir.gpu.session import Options

HELP = "compare original and candidate on the GPU: results, times and their likely cause"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.add_argument("original", type=Path, metavar="A", help="the original cubin")
    parser.add_argument("candidate", type=Path, metavar="B", help="the cubin that may replace it")
    parser.add_argument("--launch", required=True, metavar="FILE[:NAME]", help="all launches of a file, or the one named")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
    add_measuring_arguments(parser)


def add_measuring_arguments(parser: argparse.ArgumentParser) -> None:
    """How to measure; shared with bench-suite."""
    parser.add_argument("--tolerance", action="store_true", help="accept results within the launch file's tolerance: float facts were used")
    parser.add_argument("--seconds", type=float, default=0.4, metavar="S", help="time to sample each launch (default: 0.4)")
    parser.add_argument("--timeout", type=float, default=30, metavar="S", help="a kernel that runs longer has failed (default: 30)")
    parser.add_argument("--no-counters", action="store_true", help="do not ask ncu for executed instructions and stall reasons")
    parser.add_argument("--commit", help="what to record as commit, where git does not know")


def measuring_options(args: argparse.Namespace) -> Options:
    """What `add_measuring_arguments` read."""
    from sassir.gpu.session import Options

    return Options(args.seconds, args.timeout, not args.no_counters, args.commit)


def run(args: argparse.Namespace) -> int:
    """Print what was found. Returns 1 if the candidate fails or computes something else."""
    from sassir.gpu.pair import Pair
    from sassir.gpu.report import as_json
    from sassir.gpu.session import Case, measure_all

    file, only = choose_launches(args.launch)
    tolerance = file.tolerance if args.tolerance else None
    pair = Pair(file.path.stem, read_file(args.original), read_file(args.candidate), tolerance)
    setting, results = measure_all([Case(pair, file, only)], measuring_options(args))
    if args.json:
        print(json.dumps(as_json(setting, results), indent=1))
    else:
        _print(setting, results)
    return 0 if all(result.good for result in results) else 1


def choose_launches(text: str) -> tuple[LaunchFile, str | None]:
    """FILE or FILE:NAME. Raises LaunchError."""
    path, _, name = text.rpartition(":")
    if not path or Path(text).exists():
        return read_launch_file(text), None
    file = read_launch_file(path)
    return file, file.launch(name).name


def _print(setting: Setting, results: Sequence[Result]) -> None:
    from rich.console import Console
    from rich.table import Table

    from sassir.gpu.report import describe, rates

    console = Console(markup=False, highlight=False, soft_wrap=True)
    console.print(f"{setting.sentence()}\n{setting.ceilings_sentence()}\nCounters: {setting.counters}")
    for result in results:
        head = f"\n{result.kernel}, launch {result.launch}: results {result.outcome}"
        if result.measured is None:
            console.print(f"{head}: {result.detail}")
            continue
        comparison = result.measured.comparison
        interval = f"{comparison.ratio:.3f}, {comparison.low:.3f} to {comparison.high:.3f}"
        console.print(f"{head}; {comparison.verdict} (original / candidate {interval})")
        table = Table("", "original", "candidate", box=None)
        for row in describe(result):
            table.add_row(*row)
        console.print(table)
        for line in (rates(result.measured), result.cause, result.detail):
            if line:
                console.print(f"  {line}")
