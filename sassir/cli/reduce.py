"""`sassir reduce`: the smallest launch, passes and changes with which a candidate still computes something else."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sassir.cli.extract import check_target, read_file
from sassir.cli.verify import add_launch_arguments, choose_launches
from sassir.cubin.host import select_cubin
from sassir.errors import SassirError
from sassir.launch import Launch, LaunchFile, read_launch, read_launch_file
from sassir.translate.cubin import read_program

if TYPE_CHECKING:
    from sassir.optimize import Pipeline
    from sassir.verify.reduce import Failing, Make

HELP = "make a failing verification smaller: its launch, its passes, the changed instructions"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.add_argument("original", type=Path, metavar="A", help="the original cubin")
    parser.add_argument("candidate", type=Path, nargs="?", metavar="B", help="the cubin that computes something else")
    parser.add_argument("-p", "--pipeline", help="in place of B: what `sassir optimize` makes with this pipeline, of each launch's facts")
    add_launch_arguments(parser)
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write the reduced candidate there")


def run(args: argparse.Namespace) -> int:
    """Print the reduced failure. Returns 1 if there is none. Raises SassirError."""
    from sassir.optimize import read_pipeline
    from sassir.verify.differential import Original
    from sassir.verify.reduce import find_failure

    if (args.candidate is None) == (args.pipeline is None):
        raise SassirError("give either a candidate B or the --pipeline that makes it")
    check_target(args.output)
    file = read_launch_file(args.launch)
    pipeline = read_pipeline(args.pipeline) if args.pipeline is not None else None
    if pipeline is not None:
        pipeline.all_passes()  # refused here rather than taken for passes that make nothing
    original = Original(select_cubin(read_file(args.original), str(args.original)).data)
    make = _given(args.candidate) if pipeline is None else _made(original.cubin, pipeline, file)
    launches = choose_launches(file, args.case, dict(args.size))
    failing = find_failure(original, make, pipeline.passes if pipeline is not None else (), launches, file.facts.noalias)
    if failing is None:
        print("nothing to reduce: both compute the same in the emulator")
        return 1
    for line in _reduce(args, failing, file.facts.noalias):
        print(line, flush=True)
    return 0


def _given(path: Path) -> Make:
    """The same candidate always."""
    candidate = select_cubin(read_file(path), str(path)).data

    def make(passes: Sequence[str], launch: Launch) -> bytes:
        return candidate

    return make


def _made(original: bytes, pipeline: Pipeline, file: LaunchFile) -> Make:
    """As `sassir optimize` makes it, with the facts of the launch unless the pipeline is one that uses none."""
    from sassir.optimize import Task, optimise_cubin

    def make(passes: Sequence[str], launch: Launch) -> bytes | None:
        case = None if pipeline.name == "default" else launch
        try:
            return optimise_cubin(Task(original, "the original", pipeline._replace(passes=tuple(passes)), file.facts, case)).cubin
        except SassirError:  # a list of passes that makes nothing does not fail
            return None

    return make


def _reduce(args: argparse.Namespace, failing: Failing, noalias: bool) -> Iterator[str]:
    """A line for each step; writes the reduced candidate at the end."""
    from sassir.verify.reduce import reduce_passes, reduce_regions, shrink_launch

    def resize(name: str, sizes: dict[str, int]) -> Launch:
        return read_launch(args.launch, name, {**dict(args.size), **sizes})

    sizes, failing = shrink_launch(failing, resize, noalias)
    options = "".join([f" --size {name}={value}" for name, value in {**dict(args.size), **sizes}.items()])
    yield f"launch:  {failing.case} (--case {failing.case.launch.name}{options})"
    if args.pipeline is not None:
        count = len(failing.passes)
        failing = reduce_passes(failing)
        yield f"passes:  {len(failing.passes)} of {count}: {', '.join(failing.passes) or 'registers and schedule alone'}"
    reduced = reduce_regions(failing)
    if reduced is None:
        yield "changes: the code was laid out anew; not reduced further"
    else:
        before, after = read_program(failing.original.cubin), read_program(failing.candidate)
        for region in reduced[0]:
            yield from [f"change:  {text}" for text in region.describe(before, after)]
        failing = reduced[1]
    yield f"result:  {failing.check.detail}"
    if args.output is not None:
        args.output.write_bytes(failing.candidate)
