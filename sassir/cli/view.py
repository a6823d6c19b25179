"""`sassir view`: kernels as a person reads them."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.text import Text

from sassir.asm import INSTRUCTION_BYTES, Function, Instruction, Program
from sassir.asm.print import describe_control, place_names, with_labels
from sassir.cli.extract import read_file
from sassir.errors import ContainerError
from sassir.translate.cubin import read_program

HELP = "show kernels: offset, instruction with labels, and its control code in words"

_PARTS = re.compile(r"(@\S+ )?(\S+)(.*?)((?: \{[a-z_]\w*=.*)?)")
_TEXT_COLUMNS = 64
_STYLES = {
    "title": "bold green",
    "label": "yellow",
    "offset": "dim",
    "guard": "magenta",
    "name": "bold",
    "operands": "",
    "extra": "dim",
    "control": "cyan",
}

Piece = tuple[str, str]
"""Text, and the key of its style."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.add_argument("file", type=Path, help="cubin, fatbin, host object, library or executable")
    parser.add_argument("--kernel", metavar="NAME", help="only this kernel")
    parser.add_argument("--arch", help="which cubin of a file with several, for example sm_90")
    parser.add_argument("--plain", action="store_true", help="no colour, also on a terminal")


def run(args: argparse.Namespace) -> int:
    """Print the listing: coloured on a terminal, plain where piped. Raises ContainerError for a file that cannot be read."""
    program = read_program(read_file(args.file), str(args.file), args.arch)
    console = Console(highlight=False)
    coloured = console.is_terminal and not args.plain
    for pieces in view(program, str(args.file), args.kernel):
        if coloured:
            console.print(Text.assemble(*[(text, _STYLES[style]) for text, style in pieces]), soft_wrap=True)
        else:
            sys.stdout.write("".join([text for text, _ in pieces]).rstrip() + "\n")
    return 0


def view(program: Program, where: str, kernel: str | None = None) -> Iterator[list[Piece]]:
    """The lines of the listing. Raises ContainerError when `kernel` is not in the program."""
    functions = [function for function in program.functions if kernel in (None, function.name)]
    if kernel is not None and not functions:
        known = ", ".join([function.name for function in program.functions]) or "none"
        raise ContainerError(f"{where}: no kernel {kernel} in it; it has {known}")
    for function in functions:
        yield [(f"{function.name}  {program.arch}, {len(function.lines)} instructions", "title")]
        yield from _function(function)
        yield []


def _function(function: Function) -> Iterator[list[Piece]]:
    names = place_names(function)
    for i, line in enumerate(function.lines):
        offset = INSTRUCTION_BYTES * i
        yield from ([(f"{name}:", "label")] for name in names.get(offset, ()))
        yield [(f"  {offset:04x}  ", "offset"), *_instruction(line.instruction, with_labels(line.instruction, offset, names))]
    yield from ([(f"{name}:", "label")] for name in names.get(function.size, ()))


def _instruction(instruction: Instruction, text: str) -> Iterator[Piece]:
    guard, name, operands, extra = _PARTS.fullmatch(text).groups(default="")  # type: ignore[union-attr]
    yield from ((guard, "guard"), (name, "name"), (operands, "operands"), (extra, "extra"))
    yield " " * max(2, _TEXT_COLUMNS - len(text)) + describe_control(instruction.control), "control"
