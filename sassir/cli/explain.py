"""`sassir explain`: why an instruction has its stall count, its waits and its scoreboards, and who needs them."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sassir.asm.instruction import INSTRUCTION_BYTES
from sassir.cli.extract import read_file
from sassir.errors import ContainerError

if TYPE_CHECKING:
    from sassir.asm.program import Function
    from sassir.timing.explain import Explanation, Reason
    from sassir.timing.kernels import Kernel

HELP = "say why an instruction stalls, waits and signals, and who needs that"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.add_argument("file", type=Path, help="cubin, fatbin, library or executable")
    parser.add_argument("--at", type=_offset, required=True, metavar="OFFSET", help="byte offset of the instruction in its kernel: 0x1f0")
    parser.add_argument("--kernel", metavar="NAME", help="the kernel (default: the only one)")
    parser.add_argument("--arch", help="which cubin of a file with several, for example sm_90")


def _offset(text: str) -> int:
    try:
        return int(text, 0)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"expected a number such as 0x1f0, got {text!r}") from error


def run(args: argparse.Namespace) -> int:
    """Print the instruction, and the parts of its control code with those who need them. Raises SassirError."""
    from sassir.machine import machine
    from sassir.timing.explain import explain
    from sassir.timing.kernels import read_kernels

    kernel = choose(read_kernels(read_file(args.file), str(args.file), args.arch), args.kernel, str(args.file))
    function, offset = kernel.function, int(args.at)
    if offset % INSTRUCTION_BYTES:
        raise ContainerError(f"{args.file}: no instruction begins at {offset:#x}; expected a multiple of {INSTRUCTION_BYTES}")
    line = offset // INSTRUCTION_BYTES
    found = explain(function, kernel.flow, machine(kernel.arch), line)
    instruction = function.lines[line].instruction
    print(f"{function.name}+{offset:#x}  {instruction}  {instruction.control}")
    for explanation in found:
        for text in _lines(function, explanation):
            print(text)
    return 0


def choose(kernels: Sequence[Kernel], name: str | None, where: str) -> Kernel:
    """The kernel of that name, or the only one. Raises ContainerError."""
    found = [kernel for kernel in kernels if name in (None, kernel.function.name)]
    if len(found) != 1:
        problem = f"no kernel {name!r}" if name is not None else f"{len(kernels)} kernels; choose one with --kernel"
        raise ContainerError(f"{where}: {problem}; there are {', '.join(kernel.function.name for kernel in kernels)}")
    return found[0]


def _lines(function: Function, explanation: Explanation) -> Iterator[str]:
    yield f"  {explanation.part}{':' if explanation.reasons or explanation.note else ''}"
    for reason in explanation.reasons:
        yield from _reason(function, reason)
    if explanation.note:
        yield f"    {explanation.note}"


def _reason(function: Function, reason: Reason) -> Iterator[str]:
    distance = f": {reason.distance} cycles there, {reason.needed} needed" if reason.needed else ""
    yield f"    `{function.lines[reason.second].instruction}` at {INSTRUCTION_BYTES * reason.second:#x} {reason.text}{distance}"
    if reason.evidence:
        yield f"      evidence: {reason.evidence}"
