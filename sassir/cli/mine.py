"""`sassir mine-encodings`: make the encoding table of an architecture anew."""

from __future__ import annotations

import argparse
import sys
import time
from hashlib import sha256
from pathlib import Path

from sassir.cubin.code import words
from sassir.cubin.cubin import Cubin
from sassir.cubin.fatbin import EntryKind
from sassir.cubin.host import open_binary
from sassir.encoders.library import CHAIN, base_architecture, blocks, has_table, print_table
from sassir.errors import EncodingError

HELP = "derive the encoding table of an architecture from nvdisasm"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="files with real code of the architecture")
    parser.add_argument("--arch", required=True, choices=CHAIN)
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="DIR", help="where to write ARCH.txt")


def run(args: argparse.Namespace) -> int:
    """Mine, and write the table as the difference from its predecessor's. Progress goes to standard error."""
    # Imported here: the miner needs nvdisasm's modules, which the other commands do not.
    from sassir.encoders.mining.ambiguity import mark_ambiguous
    from sassir.encoders.mining.mine import mine
    from sassir.encoders.mining.oracle import Oracle

    start = time.monotonic()
    corpus, used = _corpus(args.files, args.arch)

    def report(line: str) -> None:
        print(f"{time.monotonic() - start:5.0f} s  {line}", file=sys.stderr)

    found = mine(args.arch, corpus, report)
    at = CHAIN.index(args.arch)
    evidence = [f"nvdisasm {Oracle(args.arch).version()}, {found.words} words asked; {len(found.forms)} forms."]
    evidence += [f"{len(corpus)} words of real code from {len(used)} cubins, SHA-256 of all: {_digest(used)}."]
    order = sorted(range(len(found.forms)), key=lambda i: (found.forms[i].mnemonic, -found.uses[i], found.forms[i].opcode, i))
    forms = mark_ambiguous(args.arch, [found.forms[i] for i in order])
    text = print_table(args.arch, forms, blocks(CHAIN[at - 1]) if at else None, evidence)
    args.output.mkdir(parents=True, exist_ok=True)
    (args.output / f"{args.arch}.txt").write_text(text, "utf-8")
    for name, problems in sorted(found.problems.items()):
        report(f"not fully learned: {name}: {problems[-1]}")
    report(f"{len(found.forms)} forms written to {args.output / f'{args.arch}.txt'}")
    return 0


def _corpus(files: list[Path], arch: str) -> tuple[list[int], list[bytes]]:
    """All words of the cubins for `arch` in the files, and these cubins."""
    used: list[bytes] = []
    corpus: list[int] = []
    for file in files:
        for entry in open_binary(file.read_bytes(), str(file)):
            if entry.kind is EntryKind.CUBIN and entry.arch and has_table(entry.arch) and base_architecture(entry.arch) == arch:
                used.append(entry.data)
                for section in Cubin.read(entry.data, str(file)).code:
                    corpus += words(section)
    if files and not used:
        raise EncodingError(f"none of the files has code for {arch}")
    return corpus, used


def _digest(cubins: list[bytes]) -> str:
    return sha256(b"".join(sorted(sha256(c).digest() for c in cubins))).hexdigest()[:16]
