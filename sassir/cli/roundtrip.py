"""`sassir roundtrip`: does every instruction of these files survive decoding and encoding?"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from sassir.asm.instruction import INSTRUCTION_BYTES, OPAQUE
from sassir.cubin.code import words
from sassir.cubin.cubin import Cubin
from sassir.cubin.fatbin import EntryKind
from sassir.cubin.host import open_binary
from sassir.encoders import table
from sassir.encoders.library import ARCHITECTURES, has_table
from sassir.errors import ContainerError, EncodingError

HELP = "decode and encode every instruction from its fields, and compare the words"
_LISTED = 100


class Miss(NamedTuple):
    """An instruction that did not come back, or that no table describes."""

    where: str
    word: str
    text: str
    reason: str


class Result(NamedTuple):
    """What a round trip over some files found."""

    files: int
    cubins: int
    skipped: dict[str, int]
    """Cubins of architectures without a table."""
    kernels: int
    instructions: int
    exact: int
    opaque: int
    wrong: int
    hidden: int
    """Exact, with a field that the text of NVIDIA's tools does not show."""
    misses: tuple[Miss, ...]
    """The opaque and the wrong ones; the first hundred."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="cubins, fatbins, or programs and libraries with device code")
    parser.add_argument("--arch", help="only cubins of this architecture")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Print the counts; status 1 when an instruction came back wrong. Raises EncodingError where no cubin has a table."""
    result = round_trip(args.files, args.arch)
    if not result.cubins:
        raise EncodingError(f"no encoding table for {', '.join(result.skipped)}; there are tables for {', '.join(ARCHITECTURES)}")
    if args.json:
        print(json.dumps(result._asdict() | {"misses": [m._asdict() for m in result.misses]}, indent=2))
    else:
        counts = {name: value for name, value in result._asdict().items() if name not in ("skipped", "misses")}
        skipped = [f"{count} cubins of {arch} skipped" for arch, count in result.skipped.items()]
        print(", ".join([*[f"{value} {name}" for name, value in counts.items()], *skipped]))
        for miss in result.misses:
            print(f"{miss.where}: {miss.word} {miss.text}: {miss.reason}")
    return 1 if result.wrong else 0


def round_trip(files: list[Path], arch: str | None = None) -> Result:
    """Decode and encode all code of `files`. Raises ContainerError for a file that cannot be read or has no such cubin."""
    cubins = kernels = instructions = exact = opaque = wrong = hidden = 0
    skipped: dict[str, int] = {}
    misses: list[Miss] = []
    for file in files:
        for cubin in _cubins(file, arch):
            if not has_table(cubin.arch):
                skipped[cubin.arch] = skipped.get(cubin.arch, 0) + 1
                continue
            cubins += 1
            coder = table(cubin.arch)
            decode, encode = coder.decode, coder.encode
            for section in cubin.code:
                kernels += 1
                code = words(section)
                instructions += len(code)
                for i, word in enumerate(code):
                    instruction = decode(word)
                    try:
                        same, reason = encode(instruction) == word, "comes back as another word"
                    except EncodingError as error:
                        same, reason = False, str(error)
                    if not same:
                        wrong += 1
                    elif instruction.mnemonic == OPAQUE:
                        opaque, reason = opaque + 1, "no form of the table describes it"
                    else:
                        exact += 1
                        hidden += bool(instruction.extra)
                        continue
                    if len(misses) < _LISTED:
                        where = f"{file}: {section.kernel}+{INSTRUCTION_BYTES * i:#x} ({cubin.arch})"
                        misses.append(Miss(where, f"{word:#034x}", instruction.text, reason))
    return Result(len(files), cubins, skipped, kernels, instructions, exact, opaque, wrong, hidden, tuple(misses))


def _cubins(file: Path, arch: str | None) -> Iterator[Cubin]:
    entries = [e for e in open_binary(file.read_bytes(), str(file)) if e.kind is EntryKind.CUBIN and arch in (None, e.arch)]
    if not entries:
        raise ContainerError(f"{file}: no cubin{f' for {arch}' if arch else ''} in it; `sassir extract --list` shows what there is")
    for entry in entries:
        yield Cubin.read(entry.data, str(file))
