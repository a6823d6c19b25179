"""`sassir info`: what a cubin says about itself."""

from __future__ import annotations

import argparse
import json
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
        _print_table(str(args.file), summary)
    return 0


def as_json(summary: Summary) -> dict[str, Any]:
    """The summary as plain objects, with the names of its fields as keys."""
    kernels = [kernel._asdict() | {"parameters": [p._asdict() for p in kernel.parameters]} for kernel in summary.kernels]
    return summary._asdict() | {"kernels": kernels}


def _print_table(file: str, summary: Summary) -> None:
    # Imported here: rich takes a tenth of a second to load, which `--json` and `--help` need not pay.
    from rich.console import Console
    from rich.table import Column, Table

    remarks = {"relocatable": summary.relocatable, "line information": summary.line_info, "also for other SMs (capmerc)": summary.mercury}
    origin = " ".join([f"ABI {summary.abi}", summary.tool, summary.version, *([f"({summary.options})"] if summary.options else [])])
    table = Table(Column("kernel", overflow="fold"), *_COLUMNS, title=f"{file}: {summary.arch}, {origin}", title_justify="left")
    for kernel in summary.kernels:
        table.add_row(kernel.name + "".join([f"\n  + {name}" for name in kernel.functions]), *_cells(kernel))
    table.caption = ", ".join([remark for remark, holds in remarks.items() if holds])
    Console(markup=False).print(table)


_COLUMNS = ("registers", "shared", "stack", "barriers", "code", "bank 0", "block", "parameters (offset: size)")


def _cells(kernel: KernelSummary) -> list[str]:
    """One row of the table, in the order of the columns."""
    block = kernel.required_threads or kernel.max_threads
    limits = "" if block is None else ("" if kernel.required_threads else "≤ ") + "×".join(map(str, block))
    parameters = " ".join([f"{p.offset:#x}: {p.size}" for p in kernel.parameters])
    numbers = (kernel.registers, kernel.shared, kernel.stack, kernel.barriers, kernel.code, kernel.constant)
    return [*["?" if number is None else str(number) for number in numbers], limits, parameters]
