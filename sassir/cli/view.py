"""`sassir view`: kernels as a person reads them."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.text import Text

from sassir.asm import INSTRUCTION_BYTES, Function, Instruction, Line
from sassir.asm.print import describe_control, place_names, with_labels
from sassir.cubin.code import CodeSection, words
from sassir.cubin.cubin import Cubin
from sassir.cubin.host import select_cubin
from sassir.encoders import table
from sassir.errors import ContainerError

HELP = "show kernels: offset, instruction with labels, and its control code in words"

_PARTS = re.compile(r"(?P<guard>@\S+ )?(?P<name>\S+)(?P<operands>[^{]*)(?P<extra>.*)")
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
    """The command line of `sassir view`."""
    parser.add_argument("file", type=Path, help="a cubin, a fatbin, or a program or library that holds device code")
    parser.add_argument("--kernel", metavar="NAME", help="only this kernel or device function")
    parser.add_argument("--arch", help="the architecture to show, where the file has several, such as sm_90")
    parser.add_argument("--plain", action="store_true", help="no colour, also on a terminal")


def run(args: argparse.Namespace) -> int:
    """Print the listing to standard output: coloured on a terminal, plain where piped."""
    cubin = select_cubin(args.file.read_bytes(), str(args.file), args.arch)
    console = Console(highlight=False)
    plain = args.plain or not console.is_terminal
    for pieces in view(cubin, args.kernel):
        if plain:
            sys.stdout.write("".join([text for text, _ in pieces]).rstrip() + "\n")
        else:
            console.print(Text.assemble(*[(text, _STYLES[style]) for text, style in pieces]), soft_wrap=True)
    return 0


def view(cubin: Cubin, kernel: str | None = None) -> Iterator[list[Piece]]:
    """The lines of the listing. Raises ContainerError when `kernel` is not in the file."""
    sections = [s for s in cubin.code if kernel is None or kernel == s.kernel or kernel in [f.name for f in s.functions]]
    if not sections:
        known = ", ".join([s.kernel for s in cubin.code]) or "none"
        raise ContainerError(f"{cubin.where}: no kernel {kernel}; it has {known}")
    for section in sections:
        yield from _section(section, cubin.arch)


def _section(section: CodeSection, arch: str) -> Iterator[list[Piece]]:
    decode = table(arch).decode
    lines = tuple([Line(decode(word), INSTRUCTION_BYTES * i) for i, word in enumerate(words(section))])
    function = Function(section.kernel, section.index, lines, {f.name: f.offset for f in section.functions if f.name})
    names = place_names(function)
    yield [(f"{section.kernel}  {arch}, {len(lines)} instructions", "title")]
    for i, line in enumerate(lines):
        offset = INSTRUCTION_BYTES * i
        yield from ([(f"{name}:", "label")] for name in names.get(offset, ()))
        yield [(f"  {offset:04x}  ", "offset"), *_instruction(line.instruction, with_labels(line.instruction, offset, names))]
    yield from ([(f"{name}:", "label")] for name in names.get(function.size, ()))
    yield []


def _instruction(instruction: Instruction, text: str) -> Iterator[Piece]:
    match = _PARTS.fullmatch(text)
    assert match is not None, text
    yield from ((part, kind) for kind, part in match.groupdict(default="").items())
    yield " " * max(2, _TEXT_COLUMNS - len(text)) + describe_control(instruction.control), "control"
