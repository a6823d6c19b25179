"""`sassir launch-template`: a first launch file for a kernel."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator
from pathlib import Path

from sassir.cli.extract import read_file
from sassir.cubin.host import select_cubin
from sassir.cubin.nvinfo import Parameter
from sassir.cubin.summary import KernelSummary, summarise
from sassir.errors import LaunchError
from sassir.launch.records import POINTER_BYTES

HELP = "write a first launch file for a kernel, from what its cubin says about its parameters"

_BLOCK = 256
_SCALARS = {1: "u8", 2: "u16", 4: "i32"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.add_argument("file", type=Path, help="cubin, fatbin, host object, library or executable")
    parser.add_argument("--kernel", metavar="NAME", help="which kernel of a file with several")
    parser.add_argument("--arch", help="which cubin of a file with several, for example sm_90")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write there, not to standard output")


def run(args: argparse.Namespace) -> int:
    """Write the file. Raises LaunchError when the kernel is not clear, or has a parameter that a launch file cannot pass."""
    summary = summarise(select_cubin(read_file(args.file), str(args.file), args.arch))
    text = template(_choose(summary.kernels, args.kernel, str(args.file)))
    if args.output is None:
        sys.stdout.write(text)
    else:
        args.output.write_text(text, encoding="utf-8")
    return 0


def _choose(kernels: tuple[KernelSummary, ...], name: str | None, where: str) -> KernelSummary:
    found = [kernel for kernel in kernels if kernel.entry and name in (None, kernel.name)]
    if len(found) != 1:
        known = ", ".join([kernel.name for kernel in kernels if kernel.entry]) or "none"
        raise LaunchError(f"{where}: {'no kernel ' + name if name else 'several kernels or none'}; choose one with --kernel: {known}")
    return found[0]


def template(kernel: KernelSummary) -> str:
    """A launch file that `read_launch_file` accepts and whose parameters have the places the kernel expects.

    What the cubin does not tell is assumed, and to be corrected: every 8-byte parameter is taken for a pointer to n
    singles that are read and written, every other one for an integer. Raises LaunchError for a parameter of another size.
    """
    return "\n".join(_lines(kernel)) + "\n"


def _lines(kernel: KernelSummary) -> Iterator[str]:
    threads = kernel.required_threads or (min(_BLOCK, math.prod(kernel.max_threads or (_BLOCK,))), 1, 1)
    yield f"# {kernel.name}. Check element types, shapes, roles and scalars: the cubin tells only the size of each parameter."
    yield ""
    yield "[launches]"
    yield "small = { n = 1000 }"
    yield "one = { n = 1 }"
    yield ""
    yield "[buffers]"
    for parameter in kernel.parameters:
        if parameter.size == POINTER_BYTES:
            yield f'p{parameter.ordinal} = {{ dtype = "f32", shape = "n", role = "inout", fill = "uniform(-1, 1)" }}'
    yield ""
    yield "[[steps]]"
    yield f'kernel = "{kernel.name}"'
    yield f'grid = "cdiv(n, {threads[0]})"'
    yield f"block = [{', '.join(map(str, threads))}]"
    yield f"arguments = [{', '.join(_argument(kernel, parameter) for parameter in kernel.parameters)}]"


def _argument(kernel: KernelSummary, parameter: Parameter) -> str:
    if parameter.size == POINTER_BYTES:
        return f'"p{parameter.ordinal}"'
    if parameter.size not in _SCALARS:
        raise LaunchError(f"kernel {kernel.name}: parameter {parameter.ordinal} has {parameter.size} bytes; launch files pass 1, 2, 4 or 8")
    return f'{{ {_SCALARS[parameter.size]} = "n" }}' if parameter.size == 4 else f"{{ {_SCALARS[parameter.size]} = 1 }}"
