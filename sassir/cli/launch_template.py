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
_WORD = 4


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.add_argument("file", type=Path, help="cubin, fatbin, host object, library or executable")
    parser.add_argument("--kernel", metavar="NAME", help="which kernel of a file with several")
    parser.add_argument("--arch", help="which cubin of a file with several, for example sm_90")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write there, not to standard output")


def run(args: argparse.Namespace) -> int:
    """Write the file. Raises LaunchError when the kernel is not clear."""
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
    singles that are read and written, one of 4 for the number n, every other one for zeros.
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
    yield "arguments = ["
    for parameter in kernel.parameters:
        yield f"    {_argument(parameter)},  # {parameter.size} bytes"
    yield "]"


def _argument(parameter: Parameter) -> str:
    """A buffer, a number, or a structure of the largest numbers that lie at multiples of their size."""
    if parameter.size == POINTER_BYTES:
        return f'"p{parameter.ordinal}"'
    if parameter.size == _WORD:
        return '{ i32 = "n" }'
    unit = math.gcd(parameter.offset, parameter.size, POINTER_BYTES)
    numbers = [f"{{ u{8 * unit} = 0 }}"] * (parameter.size // unit)
    return numbers[0] if len(numbers) == 1 else f"[{', '.join(numbers)}]"
