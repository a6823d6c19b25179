"""`sassir run`: run a kernel, emulated or on a GPU, and show what it computes."""

from __future__ import annotations

import argparse
import hashlib
import math
import re
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sassir.cli.errors import warn
from sassir.cli.extract import check_target, read_file
from sassir.cubin.host import select_cubin
from sassir.errors import LaunchError
from sassir.launch import Launch, LaunchFile, Outputs, compare, read_launch_file
from sassir.launch.data import STORAGE, Array, load

if TYPE_CHECKING:
    from sassir.emulator import Trace

HELP = "run a kernel as a launch file says, emulated or on a GPU, and show its outputs"

_SHOWN = 6
"""Elements of each output that are printed."""
_REGISTER = re.compile(r"(U?[RP]|B)\d+")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.add_argument("file", type=Path, help="cubin, fatbin, host object, library or executable")
    parser.add_argument("--launch", type=Path, required=True, metavar="TOML", help="launch file (docs/launch-files.md)")
    parser.add_argument("--case", metavar="NAME", help="which launch of the file; the one with the least data by default")
    parser.add_argument("--arch", help="which cubin of a file with several, for example sm_90")
    parser.add_argument("--gpu", action="store_true", help="on the GPU instead of emulated")
    parser.add_argument("--reference", type=Path, metavar="NPZ", help="compare the outputs with these, by buffer name or CASE/BUFFER")
    parser.add_argument("-o", "--output", type=Path, metavar="NPZ", help="save the outputs")
    parser.add_argument("--timed", action="store_true", help="emulate the control codes, too: results of a broken schedule are wrong")
    look = parser.add_argument_group("looking on (emulated only)")
    look.add_argument("--trace", action="store_true", help="print every instruction of the chosen threads and what it writes")
    look.add_argument("--watch", action="append", default=[], metavar="REGISTER", help="print every change of a register; repeatable")
    look.add_argument("--block", type=int, default=0, metavar="N", help="number of the block in the grid (default: 0)")
    look.add_argument("--thread", type=int, action="append", metavar="N", help="number of a thread in its block; repeatable (default: 0)")
    allow = parser.add_argument_group("checks (emulated only)")
    allow.add_argument("--warn", action="store_true", help="only warn of races and of reads of what was never written")
    allow.add_argument("--allow-undefined", action="store_true", help="registers may be read that were never written")
    allow.add_argument("--steps", type=int, metavar="N", help="most instructions that some blocks together may execute")
    allow.add_argument("--allow-races", action="store_true", help="warps may share memory without a barrier in between")


def run(args: argparse.Namespace) -> int:
    """Print a summary of each output; status 1 when it differs from the reference. Raises SassirError when the kernel does not run."""
    check_target(args.output)
    file = read_launch_file(args.launch)
    launch = file.launch(args.case) if args.case else min(file.launches.values(), key=lambda launch: launch.nbytes)
    cubin = select_cubin(read_file(args.file), str(args.file), args.arch).data
    start = time.perf_counter()
    outputs = _on_gpu(cubin, launch) if args.gpu else _emulated(cubin, launch, args)
    seconds = time.perf_counter() - start
    print(f"{args.file}, launch {launch.name}: {'GPU' if args.gpu else 'emulated'}, {seconds:.2f} s")
    for buffer in launch.outputs:
        array = outputs[buffer.name]
        digest = hashlib.sha256(array.tobytes()).hexdigest()[:16]
        shown = " ".join([str(value) for value in load(array.reshape(-1)[:_SHOWN], buffer.dtype)])
        shape = "×".join(map(str, buffer.shape))
        print(f"  {buffer.name:<12} {buffer.dtype} {shape:<12} sha256 {digest}  {shown}{' …' if array.size > _SHOWN else ''}")
    if args.output is not None:
        np.savez_compressed(args.output, **outputs)  # type: ignore[arg-type]
    return _judge(file, launch, outputs, args.reference) if args.reference is not None else 0


def _emulated(cubin: bytes, launch: Launch, args: argparse.Namespace) -> Outputs:
    from sassir.emulator import Checks, emulate

    checks = Checks(registers=not args.allow_undefined, races=not args.allow_races)
    if args.steps is not None:
        checks = replace(checks, steps=args.steps)
    trace = _trace(launch, args.block, args.thread or [0], args.watch) if args.trace or args.watch else None
    return emulate(cubin, launch, str(args.file), checks=checks, warn=warn if args.warn else None, observer=trace, timed=args.timed)


def _trace(launch: Launch, block: int, threads: Sequence[int], watch: Sequence[str]) -> Trace:
    """Prints what these threads do. Raises LaunchError for one that no step of the launch has, and for what is no register."""
    from sassir.emulator import Trace

    for name, numbers, counts in (
        ("block", [block], [math.prod(step.grid) for step in launch.steps]),
        ("thread", threads, [math.prod(step.block) for step in launch.steps]),
    ):
        if not all(0 <= number < max(counts) for number in numbers):
            raise LaunchError(f"launch {launch.name} has {name}s 0 to {max(counts) - 1}, not {', '.join(map(str, numbers))}")
    for name in watch:
        if not _REGISTER.fullmatch(name):
            raise LaunchError(f"no register is called {name}; expected one such as R4, UR4, P0, UP0 or B0")
    return Trace(print, block, threads, watch)


def _on_gpu(cubin: bytes, launch: Launch) -> Outputs:
    from sassir.gpu import Worker

    with Worker() as worker:
        return worker.run(cubin, launch)


def _judge(file: LaunchFile, launch: Launch, outputs: Outputs, path: Path) -> int:
    """Compare bit for bit, and where that fails within the tolerance of the launch file, if it states one."""
    reference = _read_reference(path, launch)
    difference = compare(launch, reference, outputs)
    if difference is None:
        print(f"equal to {path}, bit for bit")
        return 0
    print(f"differs from {path}: {difference}")
    if file.tolerance is None or compare(launch, reference, outputs, file.tolerance) is not None:
        return 1
    print("within the tolerance of the launch file")
    return 0


def _read_reference(path: Path, launch: Launch) -> Outputs:
    """The outputs saved in an .npz file. Raises LaunchError when one is missing or of another shape."""
    reference: dict[str, Array] = {}
    try:
        saved = np.load(path)
    except FileNotFoundError as error:
        raise LaunchError(f"{path}: {error.strerror}") from error
    except (OSError, ValueError) as error:
        raise LaunchError(f"{path}: not an .npz file of outputs") from error
    with saved:
        for buffer in launch.outputs:
            key = next((k for k in (f"{launch.name}/{buffer.name}", buffer.name) if k in saved), None)
            if key is None:
                raise LaunchError(f"{path}: no array for the output {buffer.name}; it has {', '.join(saved.files)}")
            array: Array = saved[key]
            if array.shape != buffer.shape or array.dtype != STORAGE[buffer.dtype]:
                expected = f"{STORAGE[buffer.dtype]} {buffer.shape}"
                raise LaunchError(f"{path}: {key} is {array.dtype} {array.shape}, but the output {buffer.name} is {expected}")
            reference[buffer.name] = array
    return reference
