"""`sassir optimize`: a faster cubin that computes the same, with a certificate that says on what that rests."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from sassir.cli.extract import check_target, read_file
from sassir.cli.facts import add_facts_argument
from sassir.cli.verify import add_gpu_arguments, choose_launches, lines, open_worker
from sassir.cubin.host import select_cubin
from sassir.errors import LaunchError
from sassir.launch import LaunchFile, read_launch_file

if TYPE_CHECKING:
    from sassir.gpu import Worker
    from sassir.gpu.statistics import Comparison
    from sassir.optimize import Optimised, Task
    from sassir.verify.ladder import Rung
    from sassir.verify.report import Report

HELP = "optimise the kernels of a cubin, verify and measure the result, and write it with a certificate"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.add_argument("file", type=Path, help="cubin, fatbin, library or executable")
    parser.add_argument("--arch", help="which cubin of a file with several, for example sm_90")
    parser.add_argument("--launch", type=Path, metavar="TOML", help="launch file: gives facts, and launches to verify and measure with")
    parser.add_argument("--case", metavar="NAME", help="the launch that the result is for (default: the first one)")
    add_facts_argument(parser)
    parser.add_argument("-p", "--pipeline", help="default (no launch), launch, or a TOML file (default: launch with --launch or --facts)")
    parser.add_argument("--kernel", action="append", default=[], metavar="NAME", help="only this kernel; repeatable")
    add_gpu_arguments(parser)
    parser.add_argument("-o", "--output", type=Path, help="where to write the cubin (default: FILE.opt.cubin)")
    parser.add_argument("--certificate", type=Path, metavar="JSON", help="where to write the certificate (default: beside the cubin)")


class _Job(NamedTuple):
    """What is optimised, and with what it is tried."""

    task: Task
    arch: str
    file: LaunchFile | None
    worker: Worker | None
    """The GPU, if there is one for this code and launches to run on it."""


def run(args: argparse.Namespace) -> int:
    """Print a table and the layers of verification. Returns 1, and writes the original, if the result does not hold."""
    from sassir.cli.optimize_table import Gains, as_json, print_table
    from sassir.cubin.summary import summarise
    from sassir.optimize import Task, optimise_or_keep, read_pipeline
    from sassir.translate.facts import stated_with
    from sassir.translate.facts_file import stated_facts
    from sassir.verify.certificate import certificate

    output = args.output or args.file.with_suffix(".opt.cubin")
    certified = args.certificate or output.with_suffix(".json")
    for path in (output, certified):
        check_target(path)
    cubin = select_cubin(read_file(args.file), str(args.file), args.arch)
    file = read_launch_file(args.launch) if args.launch is not None else None
    chosen = file.launch(args.case or next(iter(file.launches))) if file is not None else None
    given = stated_facts(args.facts, {k.name: k.parameters for k in summarise(cubin).kernels} if args.facts else {}, cubin.arch)
    stated = stated_with(file.facts, file.launches.values(), given, cubin.arch) if file is not None else None
    pipeline = read_pipeline(args.pipeline or ("launch" if file is not None or given else "default"))
    with ExitStack() as stack:
        worker, remark = _find_worker(args, cubin.arch, file, stack)
        case = chosen if pipeline.name != "default" else None
        task = Task(cubin.data, str(args.file), pipeline, stated, case, args.kernel, given=given)
        made, predicted = optimise_or_keep(task)
        made, report, measured = _try(_Job(task, cubin.arch, file, worker), made)
    gains = Gains(predicted, measured, file.launches if file is not None else {})
    print_table(task.original, made, gains, chosen)
    for line in (remark, *lines(report)):
        print(line)
    kept = made.cubin if report.verdict != "fails" else task.original
    output.write_bytes(kept)
    launches = choose_launches(file, None) if file is not None else []
    outcomes = as_json(made, gains)
    found = certificate(task.original, kept, report, launches, stated, made.assumptions, ",".join(pipeline.texts), outcomes)
    certified.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 0 if report.verdict != "fails" else 1


def _find_worker(args: argparse.Namespace, arch: str, file: LaunchFile | None, stack: ExitStack) -> tuple[Worker | None, str]:
    """The GPU to verify and measure on, if there is one, and a line about it. Raises LaunchError where there must be one."""
    try:
        if args.no_gpu:
            raise LaunchError("it is not wanted")
        if file is None:
            raise LaunchError("without a launch file nothing can be launched")
        worker = open_worker(stack)
        device = worker.describe_device()
        if device.arch != arch.rstrip("af"):
            raise LaunchError(f"{device.name} is {device.arch}, the code is for {arch}")
    except LaunchError as error:
        if args.gpu:
            raise
        return None, f"Times are predicted, no GPU was used: {error}."
    return worker, f"Measured on {device.name}: medians of launches in turn, and how many times as fast, with its interval at 99 %."


def _try(job: _Job, made: Optimised) -> tuple[Optimised, Report, Mapping[str, Comparison]]:
    """Verify and measure; what is measured to be slower is given back as it was."""
    from sassir.optimize import give_back

    report = _verify(job, made)
    if job.worker is None or job.file is None or job.task.stated is None or report.verdict == "fails":
        return made, report, {}
    from sassir.gpu.gain import measured_gains, slower_kernels
    from sassir.verify.assumptions import broken_fact

    names = job.file.timed or job.file.launches
    timed = [job.file.launch(name) for name in names]
    launches = [launch for launch in timed if broken_fact(made.assumptions, launch, job.task.stated, job.arch) is None]
    measured = measured_gains(job.worker, job.task.original, made.cubin, launches)
    kept = give_back(job.task, made, slower_kernels(measured, launches))
    return kept, report if kept is made else _verify(job, kept), measured


def _verify(job: _Job, made: Optimised) -> Report:
    """Climb the ladder with the result; where it is for one launch that is too large to emulate, with what the same pipeline
    makes for the small launches of the file as well."""
    from sassir.optimize import optimise_cubin
    from sassir.translate.facts import known_facts
    from sassir.verify.assumptions import broken_fact
    from sassir.verify.differential import Original
    from sassir.verify.ladder import verify_pair
    from sassir.verify.report import Layer, Report

    task, facts = job.task, job.task.stated
    known = Original(task.original, task.where)
    if job.file is None or facts is None:
        return verify_pair(known, made.cubin, [], assumptions=made.assumptions)
    small = choose_launches(job.file, None)
    meant = [launch for launch in small if broken_fact(made.assumptions, launch, facts, job.arch) is None]
    report = verify_pair(known, made.cubin, meant, facts, assumptions=made.assumptions, more=_gpu_rung(job))
    if task.case is None or not any(made.assumptions.values()):
        return report
    layers = [layer for layer in report.layers if meant or layer.name != "emulator"]
    kept = [outcome.kernel for outcome in made.outcomes if not outcome.changed]
    for launch in small:
        try:
            known_facts(job.arch, launch, facts, task.given)
        except LaunchError as error:
            layers.append(Layer("emulator", "skipped", f"launch {launch.name} is none that --facts is about: {error}"))
            continue
        other = optimise_cubin(task._replace(case=launch, without=kept))
        found = verify_pair(known, other.cubin, [launch], facts, assumptions=other.assumptions)
        emulated = [layer for layer in found.layers if layer.name == "emulator"]
        layers += [layer._replace(detail=f"made for launch {launch.name}: {layer.detail}") for layer in emulated]
    return Report(tuple(layers))


def _gpu_rung(job: _Job) -> Sequence[Rung]:
    if job.worker is None or job.file is None:
        return ()
    from sassir.gpu.agreement import GpuRung

    return (GpuRung(job.worker, tuple(job.file.launches.values())),)
