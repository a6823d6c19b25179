"""`sassir extract`: write the cubins of a fatbin or host file to files of their own."""

from __future__ import annotations

import argparse
import errno
import os
from collections import Counter
from pathlib import Path

from sassir.cubin.fatbin import Entry, EntryKind
from sassir.cubin.host import open_binary
from sassir.errors import ContainerError

HELP = "write the cubins of a fatbin, host object, library or executable to files"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.add_argument("file", type=Path, help="cubin, fatbin, host object, library or executable")
    parser.add_argument("--arch", help="only those for this architecture, for example sm_90")
    parser.add_argument("-o", "--output", type=Path, default=Path(), metavar="DIR", help="where to write; made if it is not there")
    parser.add_argument("--list", action="store_true", help="list what is in the file, write nothing")


def run(args: argparse.Namespace) -> int:
    """List or write the entries. Raises ContainerError for a file that cannot be read, or without a cubin that is asked for."""
    entries = [entry for entry in open_binary(read_file(args.file), str(args.file)) if args.arch in (None, entry.arch)]
    if args.list:
        for entry in entries:
            print(describe(entry))
        return 0
    cubins = [entry for entry in entries if entry.kind is EntryKind.CUBIN]
    if not cubins:
        raise ContainerError(f"{args.file}: no cubin for {args.arch or 'any architecture'}; `sassir extract --list` shows what there is")
    args.output.mkdir(parents=True, exist_ok=True)
    for entry, name in zip(cubins, file_names(cubins, args.file.stem), strict=True):
        (args.output / name).write_bytes(entry.data)
        print(args.output / name)
    return 0


def read_file(path: Path) -> bytes:
    """The bytes of a file. Raises ContainerError when the system does not give them."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise ContainerError(f"{path}: {error.strerror}") from None


def check_target(path: Path | None) -> None:
    """Raises ContainerError, before work is spent, if a file of that name could not be written; None is no file."""
    if path is None:
        return
    if path.is_dir():
        raise ContainerError(f"{path}: {os.strerror(errno.EISDIR)}")
    if not path.parent.is_dir():
        raise ContainerError(f"{path}: {os.strerror(errno.ENOENT)}")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise ContainerError(f"{path}: {os.strerror(errno.EACCES)}")


def file_names(cubins: list[Entry], stem: str) -> list[str]:
    """`stem.sm_90.cubin`; with several for one architecture `stem.3.sm_90.cubin`, with the number of the entry."""
    times = Counter([entry.arch for entry in cubins])
    return [f"{stem}{f'.{entry.number}' if times[entry.arch] > 1 else ''}.{entry.arch}.cubin" for entry in cubins]


def describe(entry: Entry) -> str:
    """One line: number, kind, architecture, size, compression, and the kernels of a cubin."""
    kernels = ", ".join([section.kernel for section in entry.cubin.code]) if entry.kind is EntryKind.CUBIN else entry.name
    return f"{entry.number:4} {entry.kind.name:7} {entry.arch:11} {entry.size:9} bytes {entry.compression.value:4} {kernels}".rstrip()
