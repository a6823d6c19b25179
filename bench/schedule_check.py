"""Does the schedule checker accept real code?

    python bench/schedule_check.py -o bench/results/schedule-check.json [--arch sm_90]… FILE…

FILEs are cubins and libraries, from bench/fetch_corpus.py for example; those of other architectures are passed over. The rows of the
architectures that were checked replace those in the result. Findings are counted by rule and by the mnemonics of the two
instructions, with one example each. Exits with 1 if one is an error.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any, Protocol

from sassir import __version__
from sassir.asm.program import Program
from sassir.cubin.fatbin import EntryKind
from sassir.cubin.host import open_binary
from sassir.encoders.library import base_architecture, has_table
from sassir.findings import Finding
from sassir.translate.cubin import read_program
from sassir.verify.schedule import check_schedule

_MNEMONIC = re.compile(r"`(?:@!?U?P\w+ )?(\w+)")


@dataclass
class Record:
    """What was found on one architecture."""

    cubins: int = 0
    kernels: int = 0
    instructions: int = 0
    seconds: float = 0
    errors: Counter[str] = field(default_factory=Counter[str])
    warnings: Counter[str] = field(default_factory=Counter[str])
    examples: dict[str, str] = field(default_factory=dict[str, str])
    """By the same names: where the first is, and what it says."""

    def add(self, where: str, program: Program) -> None:
        """Check one cubin."""
        self.cubins += 1
        self.kernels += len(program.functions)
        self.instructions += sum([len(function.lines) for function in program.functions])
        start = time.process_time()
        findings = check_schedule(program)
        self.seconds += time.process_time() - start
        for finding in findings:
            name = " ".join([finding.rule, *reversed(_MNEMONIC.findall(finding.message)[:2])])
            (self.errors if finding.error else self.warnings)[name] += 1
            self.examples.setdefault(name, f"{where}: {place(finding)}: {finding.message}")

    def as_json(self) -> dict[str, Any]:
        """Plain objects."""
        return {
            "date": date.today().isoformat(),
            "cubins": self.cubins,
            "kernels": self.kernels,
            "instructions": self.instructions,
            "instructions_per_second": round(self.instructions / self.seconds),
            "errors": dict(self.errors.most_common()),
            "warnings": dict(self.warnings.most_common()),
            "examples": self.examples,
        }


def place(finding: Finding) -> str:
    """Kernel and offset."""
    return finding.kernel if finding.offset is None else f"{finding.kernel}+{finding.offset:#x}"


def programs(files: Sequence[Path], architectures: Sequence[str]) -> Iterator[tuple[str, str, Program]]:
    """Architecture, place and program of every cubin in the files; all architectures if none is named."""
    for file in files:
        for entry in open_binary(file.read_bytes(), file.name):
            if entry.kind is EntryKind.CUBIN and has_table(entry.arch):
                arch = base_architecture(entry.arch)
                if not architectures or arch in architectures:
                    yield arch, entry.where, read_program(entry.data, entry.where)


def save(path: Path, rows: dict[str, Any]) -> None:
    """Write the rows, and keep those of other architectures that are there."""
    known: dict[str, Any] = json.loads(path.read_text("utf-8"))["architectures"] if path.is_file() else {}
    merged = {arch: row for arch, row in sorted((known | rows).items(), key=lambda item: int(item[0].removeprefix("sm_")))}
    path.write_text(json.dumps({"sassir": __version__, "architectures": merged}, indent=1) + "\n", "utf-8")


class Rows(Protocol):
    """What is found for one architecture."""

    errors: Counter[str]

    def add(self, where: str, program: Program) -> None: ...

    def as_json(self) -> dict[str, Any]: ...


def run(description: str | None, start: Callable[[], Rows]) -> int:
    """The command: look at all programs of some files, and write a row for each architecture."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="JSON")
    parser.add_argument("--arch", action="append", default=[], metavar="ARCH", help="only these architectures")
    options = parser.parse_args()
    records: dict[str, Rows] = {}
    for arch, where, program in programs(options.files, options.arch):
        if arch not in records:
            records[arch] = start()
        records[arch].add(where, program)
    rows = {arch: record.as_json() for arch, record in records.items()}
    save(options.output, rows)
    for arch, row in rows.items():
        print(f"{arch:8}", *[f"{key}: {value}" for key, value in row.items() if key != "examples"], sep="\n    ")
    return 1 if any(record.errors for record in records.values()) else 0


def main() -> int:
    return run(__doc__, Record)


if __name__ == "__main__":
    sys.exit(main())
