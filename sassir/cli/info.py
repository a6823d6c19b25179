"""`sassir info`: what a cubin says about itself."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sassir.cli.extract import read_file
from sassir.cubin.host import select_cubin
from sassir.cubin.summary import KernelSummary, Summary, summarise

HELP = "registers, memory, barriers and parameters of the kernels of a file"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.add_argument("file", type=Path, help="cubin, fatbin, host object, library or executable")
    parser.add_argument("--arch", help="which cubin of a file with several, for example sm_90")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")


def run(args: argparse.Namespace) -> int:
    """Print the summary of the one cubin that is meant. Raises ContainerError when it cannot be read or is not the only one."""
    summary = summarise(select_cubin(read_file(args.file), str(args.file), args.arch))
    if args.json:
        print(json.dumps(as_json(summary), indent=2))
    else:
        print("\n".join(_lines(str(args.file), summary)))
    return 0


def as_json(summary: Summary) -> dict[str, Any]:
    """The summary as plain objects, with the names of its fields as keys."""
    kernels = [kernel._asdict() | {"parameters": [p._asdict() for p in kernel.parameters]} for kernel in summary.kernels]
    return summary._asdict() | {"kernels": kernels}


def _lines(file: str, summary: Summary) -> Iterator[str]:
    """What the file is, a row for each kernel, and below it what has no fixed number: device functions and parameters."""
    remarks = {"relocatable": summary.relocatable, "line information": summary.line_info, "also for other SMs (capmerc)": summary.mercury}
    origin = " ".join([f"ABI {summary.abi}", summary.tool, summary.version, *([f"({summary.options})"] if summary.options else [])])
    yield f"{file}: {', '.join([summary.arch, origin, *[remark for remark, holds in remarks.items() if holds]])}"
    rows = [_COLUMNS, *[_cells(kernel) for kernel in summary.kernels]]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  " + "  ".join([cell.ljust(width) for cell, width in zip(row, widths, strict=True)]).rstrip()
    for kernel in summary.kernels:
        if kernel.functions:
            yield f"  {kernel.name}: device functions {', '.join(kernel.functions)}"
        if kernel.parameters:
            parameters = ", ".join([f"{p.offset:#x}: {p.size}" for p in kernel.parameters])
            yield f"  {kernel.name}: parameters (offset: size) {parameters}"


_COLUMNS = ("kernel", "registers", "shared", "stack", "barriers", "code", "bank 0", "block")


def _cells(kernel: KernelSummary) -> tuple[str, ...]:
    """One row of the table, in the order of the columns."""
    block = kernel.required_threads or kernel.max_threads
    limits = "" if block is None else ("" if kernel.required_threads else "≤ ") + "×".join(map(str, block))
    numbers = (kernel.registers, kernel.shared, kernel.stack, kernel.barriers, kernel.code, kernel.constant)
    return (kernel.name, *["?" if number is None else str(number) for number in numbers], limits)
