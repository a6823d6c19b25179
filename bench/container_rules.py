"""Does code of ptxas keep the rules by which sassir counts, and does the container checker accept genuine files?

    python bench/container_rules.py -o bench/results/container-rules.json FILE…

FILEs are cubins and libraries, from bench/fetch_corpus.py for example. Equal files count once. For each count of a code section: in how
many the file says what the rule gives, of those that the rule is about; and for registers, in how many it says LEAST instead. Exits with
1 if one says something else.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from sassir import __version__
from sassir.cubin.code import Resources
from sassir.cubin.cubin import Cubin
from sassir.cubin.fatbin import Entry, EntryKind
from sassir.cubin.host import open_binary
from sassir.cubin.resources import counts
from sassir.encoders.library import has_table
from sassir.errors import ContainerError
from sassir.translate.cubin import read_program
from sassir.translate.resources import resources, stack_frame
from sassir.verify.container import check_container

_NEVER = 1 << 16
"""More registers and barriers than there are: a count that stays as high as that is one that the code alone does not tell."""
LEAST = 24
"""Registers that some functions have where the code needs fewer: those that were compiled as relocatable code."""


class Record:
    """What was found in all files."""

    def __init__(self) -> None:
        self.cubins = self.bytes = self.sections = 0
        self.architectures: Counter[str] = Counter()
        self.rules: dict[str, Counter[str]] = {"registers": Counter(), "barriers": Counter(), "frame": Counter()}
        self.errors: Counter[str] = Counter()
        self.warnings: Counter[str] = Counter()
        self.examples: dict[str, str] = {}

    def add(self, entry: Entry) -> None:
        """Check one cubin and count what its functions need."""
        cubin = Cubin.read(entry.data, entry.where)
        self.cubins, self.bytes, self.sections = self.cubins + 1, self.bytes + len(entry.data), self.sections + len(cubin.code)
        self.architectures[cubin.arch] += 1
        for finding in check_container(entry.data, entry.where):
            (self.errors if finding.error else self.warnings)[finding.rule] += 1
            self.examples.setdefault(finding.rule, f"{entry.where}: {finding.kernel}: {finding.message}")
        functions = {function.section: function for function in read_program(entry.data, entry.where).functions}
        for section in cubin.code:
            if (function := functions.get(section.index)) is None:
                continue
            said = counts(cubin, section)
            needed = resources(function, Resources(_NEVER, _NEVER, None), cubin.arch)
            frame = stack_frame([line.instruction for line in function.lines], cubin.arch)
            for name, found, expected in (
                ("registers", said.registers, needed.registers if needed.registers != _NEVER else None),
                ("barriers", said.barriers, needed.barriers if needed.barriers != _NEVER else None),
                ("frame", said.stack, frame),
            ):
                if found is not None and expected is not None:
                    least = name == "registers" and found == LEAST > expected
                    verdict = "holds" if found == expected else "least" if least else "does not"
                    self.rules[name][verdict] += 1
                    if verdict != "holds":
                        self.examples.setdefault(f"{name}, {verdict}", f"{entry.where}: {section.kernel}: {found}, expected {expected}")

    def as_json(self) -> dict[str, Any]:
        """Plain objects."""
        return {
            "sassir": __version__,
            "date": date.today().isoformat(),
            "cubins": self.cubins,
            "bytes": self.bytes,
            "code sections": self.sections,
            "architectures": dict(sorted(self.architectures.items())),
            "rules": {name: {verdict: found[verdict] for verdict in ("holds", "least", "does not")} for name, found in self.rules.items()},
            "errors": dict(self.errors),
            "warnings": dict(self.warnings),
            "examples": self.examples,
        }


def entries(files: Sequence[Path]) -> Iterator[Entry]:
    """Every cubin that there is a table for, once; host files without device code are passed over."""
    seen: set[bytes] = set()
    for file in files:
        try:
            found = open_binary(file.read_bytes(), file.name)
        except ContainerError as error:
            print(f"passed over: {error}", file=sys.stderr)
            continue
        for entry in found:
            if entry.kind is EntryKind.CUBIN and has_table(entry.arch) and (digest := hashlib.sha256(entry.data).digest()) not in seen:
                seen.add(digest)
                yield entry


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="JSON")
    options = parser.parse_args()
    record = Record()
    for entry in entries(options.files):
        record.add(entry)
    found = record.as_json()
    options.output.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(found, indent=1))
    return 1 if any(counted["does not"] for counted in record.rules.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
