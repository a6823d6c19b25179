"""`sassir verify`: may one cubin stand in for another? A verdict for each layer, and a certificate."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from sassir.cli.extract import check_target, read_file
from sassir.cubin.host import select_cubin
from sassir.errors import LaunchError, VerificationError
from sassir.launch import Launch, LaunchFile, read_launch, read_launch_file

if TYPE_CHECKING:
    from sassir.gpu import Worker
    from sassir.verify.assumptions import Assumptions
    from sassir.verify.ladder import Rung
    from sassir.verify.report import Report

HELP = "check that one cubin computes what another one does: checkers, emulator, symbolically, on the GPU"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.add_argument("original", type=Path, metavar="A", help="the original: cubin, fatbin, library or executable")
    parser.add_argument("candidate", type=Path, metavar="B", help="the cubin that may replace it")
    parser.add_argument("--arch", help="which cubin of a file with several, for example sm_90")
    add_launch_arguments(parser)
    parser.add_argument("--tolerance", action="store_true", help="accept results within the launch file's tolerance: float facts were used")
    seconds = "prove equality with z3, within S seconds a kernel (default: 10)"
    parser.add_argument("--symbolic", type=float, nargs="?", const=10, metavar="S", help=seconds)
    certificate = "the certificate of B: launches that B is not made for are left out (default: the one beside B, if it is B's)"
    parser.add_argument("--certificate", type=Path, metavar="JSON", help=certificate)
    add_gpu_arguments(parser)
    parser.add_argument("--json", type=Path, metavar="OUT", help="write the certificate there")


def add_gpu_arguments(parser: argparse.ArgumentParser) -> None:
    """Whether to use a GPU; shared with optimize."""
    device = parser.add_mutually_exclusive_group()
    device.add_argument("--gpu", action="store_true", help="there must be a GPU (default: use one if there is)")
    device.add_argument("--no-gpu", action="store_true", help="do not use a GPU")


def add_launch_arguments(parser: argparse.ArgumentParser) -> None:
    """Which launches to try; shared with reduce."""
    parser.add_argument("--launch", type=Path, required=True, metavar="TOML", help="launch file (docs/launch-files.md)")
    parser.add_argument("--case", action="append", metavar="NAME", help="only this launch of the file; repeatable")
    help = "another value for a size of the launches; repeatable"
    parser.add_argument("--size", action="append", type=_size, default=[], metavar="NAME=N", help=help)


def run(args: argparse.Namespace) -> int:
    """Print a line for each layer. Returns 0 only if the candidate was compared and everything holds."""
    from sassir.verify.certificate import certificate
    from sassir.verify.ladder import verify_pair

    check_target(args.json)
    original, candidate = (select_cubin(read_file(path), str(path), args.arch).data for path in (args.original, args.candidate))
    file = read_launch_file(args.launch)
    launches = choose_launches(file, args.case, dict(args.size))
    assumptions = _assumptions(args, candidate)
    with ExitStack() as stack:
        more = [*_symbolic(args), *_gpu(args, file, launches, stack)]
        tolerance = file.tolerance if args.tolerance else None
        report = verify_pair(original, candidate, launches, file.facts, assumptions=assumptions, tolerance=tolerance, more=more)
    for kernel, assumption in (assumptions or {}).items():
        print(f"{kernel} relies on {', '.join(assumption.used)}")
    for line in lines(report):
        print(line)
    if args.json is not None:
        found = certificate(original, candidate, report, launches, file.facts, assumptions)
        args.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 0 if report.good else 1


def _assumptions(args: argparse.Namespace, candidate: bytes) -> Assumptions | None:
    """What the certificate says that B relies on. Raises VerificationError where the one that is given is not of B."""
    from sassir.verify.certificate import recorded_assumptions

    if args.certificate is not None:
        try:
            return recorded_assumptions(args.certificate.read_bytes(), candidate)
        except VerificationError as error:
            raise error.at(str(args.certificate)) from error
    beside = args.candidate.with_suffix(".json")
    try:
        return recorded_assumptions(beside.read_bytes(), candidate) if beside.is_file() else None
    except VerificationError:
        return None  # a file of another origin


def choose_launches(file: LaunchFile, names: Sequence[str] | None, sizes: Mapping[str, int] | None = None) -> list[Launch]:
    """Those named, else the small ones, which the emulator can run; with other sizes, if any are given. Raises LaunchError."""
    chosen = names or [launch.name for launch in file.small]
    return [read_launch(file.path, name, sizes) if sizes else file.launch(name) for name in chosen]


def _size(text: str) -> tuple[str, int]:
    name, _, value = text.partition("=")
    try:
        return name, int(value, 0)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"expected NAME=N, got {text!r}") from error


def lines(report: Report) -> Iterator[str]:
    """The report as text."""
    for layer in report.layers:
        yield f"{layer.name:<12}{layer.verdict:<11}{layer.seconds:6.1f} s  {layer.detail}"
    yield report.verdict


def _symbolic(args: argparse.Namespace) -> list[Rung]:
    if args.symbolic is None:
        return []
    from sassir.verify.symbolic import SymbolicRung

    return [SymbolicRung(args.symbolic)]


def _gpu(args: argparse.Namespace, file: LaunchFile, launches: list[Launch], stack: ExitStack) -> list[Rung]:
    """The rung of the GPU, if there is one. Raises LaunchError where there must be one."""
    if args.no_gpu:
        return []
    from sassir.gpu.agreement import GpuRung

    try:
        worker = open_worker(stack)
    except LaunchError:
        if args.gpu:
            raise
        return []
    return [GpuRung(worker, tuple(launches if args.case or args.size else file.launches.values()))]


def open_worker(stack: ExitStack) -> Worker:
    """A worker on the GPU, until `stack` is closed. Raises LaunchError without PyCUDA or a GPU."""
    from sassir.gpu import Worker

    worker = stack.enter_context(Worker())
    worker.describe_device()
    return worker
