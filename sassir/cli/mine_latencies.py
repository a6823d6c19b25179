"""`sassir mine-latencies`: make the latency table of an architecture anew."""

from __future__ import annotations

import argparse
import sys
import time
from hashlib import sha256
from pathlib import Path

from sassir.cubin.fatbin import EntryKind
from sassir.cubin.host import open_binary
from sassir.encoders.library import has_table
from sassir.errors import EncodingError
from sassir.machine import machine
from sassir.machine.instructions import OVERRIDES
from sassir.machine.latency import print_matrices
from sassir.translate.cubin import read_program

HELP = "derive the latency table of an architecture from code of ptxas"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="files with code that ptxas made for the architecture")
    parser.add_argument("--arch", required=True, choices=tuple(OVERRIDES))
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="DIR", help="where to write ARCH.txt")
    parser.add_argument("--no-chains", action="store_true", help="do without chain kernels, which need ptxas on the PATH")


def run(args: argparse.Namespace) -> int:
    """Mine, and write the table. Progress goes to standard error."""
    # Imported here: no other command needs the miner.
    from sassir.machine.mining.chains import chain_kernels, ptxas_version
    from sassir.machine.mining.matrices import matrices
    from sassir.machine.mining.samples import Samples

    start = time.monotonic()
    code, chains = Samples(args.arch), Samples(args.arch)
    used: set[bytes] = set()
    for file in args.files:
        for place, data in _cubins(file, args.arch):
            used.add(sha256(data).digest())
            for function in read_program(data, place).functions:
                code.add(function, f"{place}[{function.section}]")
    if not used:
        raise EncodingError(f"none of the files has code for {args.arch}")
    evidence = f"{code.instructions} instructions of {len(used)} cubins, SHA-256 of all: {sha256(b''.join(sorted(used))).hexdigest()[:16]}"
    if not args.no_chains:
        for function in read_program(chain_kernels(args.arch), "the chain kernels").functions:
            chains.add(function, function.name)
        evidence += f"; chain kernels of ptxas {ptxas_version()}"
    head = f"# Latencies of {args.arch}. Made by `sassir mine-latencies`; do not edit. Notation: sassir/machine/latency.py.\n"
    head += f"# {evidence}.\n\n"
    args.output.mkdir(parents=True, exist_ok=True)
    table = args.output / f"{args.arch}.txt"
    table.write_text(head + print_matrices(matrices(args.arch, code, chains)), "utf-8")
    for line in code.doubtful():
        print(f"look at {line}: the classes may be too coarse", file=sys.stderr)
    print(f"{time.monotonic() - start:5.0f} s  {evidence}; written to {table}", file=sys.stderr)
    return 0


def _cubins(file: Path, arch: str) -> list[tuple[str, bytes]]:
    """The cubins for `arch` in a file, and where each of them is."""
    entries = list(open_binary(file.read_bytes(), str(file)))
    single = len(entries) == 1
    return [
        (file.name if single else f"{file.name}#{i}", entry.data)
        for i, entry in enumerate(entries)
        if entry.kind is EntryKind.CUBIN and entry.arch and has_table(entry.arch) and machine(entry.arch).kinds == arch
    ]
