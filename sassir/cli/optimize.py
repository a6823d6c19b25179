"""`sassir optimize`: a faster cubin that computes the same, with a certificate that says on what that rests."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sassir.cli.extract import read_file
from sassir.cli.verify import choose_launches, lines
from sassir.cubin.host import select_cubin
from sassir.launch import Launch, LaunchFile, read_launch_file

if TYPE_CHECKING:
    from sassir.optimize import Optimised, Pipeline
    from sassir.verify.report import Report

HELP = "optimise the kernels of a cubin, verify the result, and write it with a certificate"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.add_argument("file", type=Path, help="cubin, fatbin, library or executable")
    parser.add_argument("--arch", help="which cubin of a file with several, for example sm_90")
    parser.add_argument("--launch", type=Path, metavar="TOML", help="launch file: gives facts, and launches to verify with")
    parser.add_argument("--case", metavar="NAME", help="the launch that the result is for (default: the first one)")
    parser.add_argument("-p", "--pipeline", help="default (no facts), launch, or a TOML file (default: launch with --launch)")
    parser.add_argument("--kernel", action="append", default=[], metavar="NAME", help="only this kernel; repeatable")
    parser.add_argument("-o", "--output", type=Path, help="where to write the cubin (default: FILE.opt.cubin)")
    parser.add_argument("--certificate", type=Path, metavar="JSON", help="where to write the certificate (default: beside the cubin)")


def run(args: argparse.Namespace) -> int:
    """Print a table and the layers of verification. Returns 1, and writes the original, if the result does not hold."""
    from sassir.optimize import optimise_or_keep, read_pipeline
    from sassir.verify.certificate import certificate

    original = select_cubin(read_file(args.file), str(args.file), args.arch).data
    file = read_launch_file(args.launch) if args.launch is not None else None
    pipeline = read_pipeline(args.pipeline or ("launch" if file is not None else "default"))
    case = _case(file, args.case) if pipeline.name != "default" else None
    made, gains = optimise_or_keep(original, str(args.file), pipeline, file.facts if file else None, case, args.kernel)
    _print_table(original, made, gains)
    report = _verify(original, made, file, case, pipeline, args.kernel)
    for line in lines(report):
        print(line)
    output = args.output or args.file.with_suffix(".opt.cubin")
    kept = made.cubin if report.verdict != "fails" else original
    output.write_bytes(kept)
    launches = choose_launches(file, None) if file is not None else []
    found = certificate(original, kept, report, launches, file.facts if file else None, made.assumptions, ",".join(pipeline.passes))
    (args.certificate or output.with_suffix(".json")).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 0 if report.verdict != "fails" else 1


def _case(file: LaunchFile | None, name: str | None) -> Launch | None:
    if file is None:
        return None
    return file.launch(name or next(iter(file.launches)))


def _verify(
    original: bytes, made: Optimised, file: LaunchFile | None, case: Launch | None, pipeline: Pipeline, kernels: Sequence[str]
) -> Report:
    """Climb the ladder with the result; where it is for one launch that is too large to emulate, with what the same pipeline
    makes for the small launches of the file as well."""
    from sassir.optimize import optimise_cubin
    from sassir.verify.differential import Original
    from sassir.verify.ladder import verify_pair
    from sassir.verify.report import Report

    if file is None:
        return verify_pair(original, made.cubin, [], assumptions=made.assumptions)
    small = choose_launches(file, None)
    known = Original(original)
    report = verify_pair(known, made.cubin, small, file.facts, assumptions=made.assumptions)
    if case is None or not any(made.assumptions.values()):
        return report
    layers = list(report.layers)
    for launch in small:
        other = optimise_cubin(original, "the original", pipeline, file.facts, launch, kernels)
        found = verify_pair(known, other.cubin, [launch], file.facts, assumptions=other.assumptions)
        emulated = [layer for layer in found.layers if layer.name == "emulator"]
        layers += [layer._replace(detail=f"made for launch {launch.name}: {layer.detail}") for layer in emulated]
    return Report(tuple(layers))


def _print_table(original: bytes, made: Optimised, gains: Mapping[str, float]) -> None:
    """The column `predicted` says how many times as fast it is; empty where loops are not known."""
    from rich.console import Console
    from rich.table import Table

    from sassir.cubin.cubin import Cubin
    from sassir.cubin.summary import summarise

    before, after = ({k.name: k for k in summarise(Cubin.read(data)).kernels} for data in (original, made.cubin))
    table = Table("kernel", "instructions", "registers", "predicted", "relies on", "kept as it was because", box=None)
    for outcome in made.outcomes:
        old, new = before[outcome.kernel], after[outcome.kernel]
        counts = [f"{a} → {b}" for a, b in (outcome.instructions, (old.registers, new.registers))]
        predicted = f"{gains[outcome.kernel]:.2f} x" if outcome.kernel in gains else ""
        table.add_row(outcome.kernel, *counts, predicted, ", ".join(outcome.facts), outcome.reason)
    Console(markup=False, highlight=False, soft_wrap=True).print(table)
