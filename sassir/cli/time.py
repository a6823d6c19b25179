"""`sassir time`: what blocks, loops and kernels take, what limits them, and where a warp waits."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sassir.asm.instruction import INSTRUCTION_BYTES
from sassir.cli.extract import read_file
from sassir.errors import LaunchError
from sassir.launch import read_launch_file

if TYPE_CHECKING:
    from rich.console import Console

    from sassir.timing import Part, Prediction
    from sassir.timing.kernels import Kernel

HELP = "predict cycles of blocks, loops and kernels from the machine tables, and say what limits them"
SHARE = 0.005
"""Blocks that take less of a kernel's time are left out of the table."""

WIDTH = 160
"""Columns of the table where no terminal says how many there are."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.add_argument("file", type=Path, help="cubin, fatbin, library or executable")
    parser.add_argument("--arch", help="which cubin of a file with several, for example sm_90")
    parser.add_argument("--kernel", metavar="NAME", help="only this kernel")
    parser.add_argument("--launch", type=Path, metavar="TOML", help="launch file: grid, block, and facts that tell trip counts")
    parser.add_argument("--case", metavar="NAME", help="the launch of that file (default: the first one)")
    parser.add_argument("--sample", action="store_true", help="run some blocks of the launch in the emulator: how often, which accesses")
    parser.add_argument("--trips", type=int, metavar="N", help="iterations of loops of which nothing is known (default: 16)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Print a table for each kernel, or for each step of the launch. Raises SassirError for bad input."""
    from sassir.timing.kernels import predict_sampled, predict_static, read_kernels
    from sassir.timing.profile import TRIPS

    data, where = read_file(args.file), str(args.file)
    if args.sample and args.launch is None:
        raise LaunchError(f"{where}: --sample needs --launch, which says what to run")
    file = read_launch_file(args.launch) if args.launch is not None else None
    launch = file.launch(args.case or next(iter(file.launches))) if file is not None else None
    if args.sample and launch is not None:
        found = predict_sampled(data, launch, where)
    else:
        found = predict_static(data, where, launch, file.facts if file is not None else None, args.trips or TRIPS, args.arch)
    chosen = [prediction for prediction in found if args.kernel in (None, prediction.kernel)]
    if not chosen:
        raise LaunchError(f"{where}: no kernel {args.kernel!r}; there are {', '.join(prediction.kernel for prediction in found)}")
    if args.json:
        print(json.dumps([as_json(prediction) for prediction in chosen], indent=1))
    else:
        _print(chosen, {kernel.function.name: kernel for kernel in read_kernels(data, where, args.arch)})
    return 0


def as_json(prediction: Prediction) -> dict[str, Any]:
    """The prediction as plain objects, with the names of its fields as keys."""
    parts = {"whole": prediction.whole._asdict()} | {key: [p._asdict() for p in getattr(prediction, key)] for key in ("loops", "blocks")}
    return prediction._asdict() | parts


def _print(predictions: list[Prediction], kernels: Mapping[str, Kernel]) -> None:
    from rich.console import Console

    console = Console(markup=False, highlight=False, soft_wrap=True)
    if not console.is_terminal:
        console = Console(markup=False, highlight=False, soft_wrap=True, width=WIDTH)
    for prediction in predictions:
        _print_parts(console, prediction)
        _print_places(console, prediction, kernels[prediction.kernel])


def _print_parts(console: Console, prediction: Prediction) -> None:
    """The kernel, its loops, and its blocks by their time."""
    from rich.table import Table

    headings = "", "runs of a warp", "cycles, 1 warp", f"{prediction.warps:.0f} warps", "bound", "busy", "stalls"
    table = Table(*headings, box=None, title=f"{prediction.kernel} on {prediction.gpu} ({prediction.arch})", title_justify="left")
    least = SHARE * prediction.whole.resident
    often = [p for p in prediction.blocks if p.runs * p.resident >= least]
    for part in (prediction.whole, *prediction.loops, *often):
        numbers = f"{part.runs:.4g}", f"{part.alone:.1f}", f"{part.resident:.1f}"
        table.add_row(part.name, *numbers, part.bound, _shares(part), _stalls(part))
    console.print(table)
    console.print(f"launch: {prediction.cycles:,.0f} cycles, {prediction.microseconds:.1f} µs. Counts: {prediction.source}.")


def _shares(part: Part, most: int = 3) -> str:
    busy = sorted(part.utilisation.items(), key=lambda item: -item[1])[:most]
    return " ".join([f"{unit} {share:.0%}" for unit, share in busy])


def _stalls(part: Part, most: int = 3) -> str:
    whole = sum(part.stalls.values())
    longest = [(reason, cycles) for reason, cycles in part.stalls.items() if reason != "selected"][:most]
    return ", ".join([f"{reason} {cycles / whole:.0%}" for reason, cycles in longest])


def _print_places(console: Console, prediction: Prediction, kernel: Kernel) -> None:
    """Where one warp waits longest, and for what."""
    lines = kernel.function.lines
    console.print("one warp waits longest:")
    for line, reason, cycles, cause in prediction.places:
        because = "" if cause is None or cause == line else f" for `{lines[cause].instruction}` at {INSTRUCTION_BYTES * cause:#x}"
        console.print(f"  {INSTRUCTION_BYTES * line:#06x} `{lines[line].instruction}`: {cycles:.0f} cycles, {reason}{because}")
