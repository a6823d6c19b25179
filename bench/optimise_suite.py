"""Optimise builds of the bench kernels for any architectures, and verify them without a GPU.

    python bench/build_kernels.py --arch sm_80 --arch sm_120 -o FOLDER
    python bench/optimise_suite.py -p launch -o bench/results/optimise-suite.json FOLDER

With facts, each kernel is optimised anew for each of the small launches of its launch file, and verified with that one; without
(`-p default`) once, and verified with all of them.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from sassir import __version__
from sassir.errors import SassirError, SassirWarning
from sassir.launch import Launch, LaunchFile, read_launch_file
from sassir.optimize import Pipeline, Task, optimise_cubin, read_pipeline
from sassir.verify.differential import Original
from sassir.verify.ladder import verify_pair

LAUNCHES = Path(__file__).parent / "launch"


def check(cubin: Path, file: LaunchFile, pipeline: Pipeline) -> Iterator[dict[str, Any]]:
    """What becomes of one build, for each way to optimise it."""
    original = cubin.read_bytes()
    known = Original(original)
    ways: Sequence[tuple[Launch | None, Sequence[Launch]]] = [(launch, [launch]) for launch in file.small]
    if pipeline.name == "default":
        ways = [(None, list(file.small))]
    for case, launches in ways:
        start = time.perf_counter()
        made = optimise_cubin(Task(original, str(cubin), pipeline, file.facts, case))
        seconds = time.perf_counter() - start
        report = verify_pair(known, made.cubin, launches, file.facts, assumptions=made.assumptions)
        kernel, arch, _ = cubin.name.rsplit(".", 2)
        yield {
            "kernel": kernel,
            "arch": arch,
            "launch": case.name if case is not None else None,
            "verdict": report.verdict,
            "failures": report.failures(),
            "kept": {o.kernel: o.reason for o in made.outcomes if not o.changed},
            "instructions": [list(o.instructions) for o in made.outcomes],
            "seconds": round(seconds, 2),
        }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="KERNEL.ARCH.cubin files")
    parser.add_argument("-p", "--pipeline", default="launch")
    parser.add_argument("--arch", action="append", help="only this one; may be repeated")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="JSON")
    options = parser.parse_args()
    warnings.simplefilter("ignore", SassirWarning)
    pipeline = read_pipeline(options.pipeline)
    records: list[dict[str, Any]] = []
    for cubin in sorted(options.folder.glob("*.cubin")):
        kernel, arch, _ = cubin.name.rsplit(".", 2)
        launch = LAUNCHES / f"{kernel}.toml"
        if launch.exists() and (options.arch is None or arch in options.arch):
            try:
                records += check(cubin, read_launch_file(launch), pipeline)
            except SassirError as error:
                records.append({"kernel": kernel, "arch": arch, "verdict": "fails", "failures": [str(error)], "kept": {}})
    found = {"sassir": __version__, "date": date.today().isoformat(), "pipeline": list(pipeline.texts), "records": records}
    options.output.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    _print_table(records)
    return int(any(record["verdict"] == "fails" for record in records))


def _print_table(records: Sequence[dict[str, Any]]) -> None:
    table = Table("architecture", "optimised for", "kept as they were", "verdicts", box=None)
    for arch in sorted({record["arch"] for record in records}):
        own = [record for record in records if record["arch"] == arch]
        verdicts = ", ".join([f"{count} {verdict}" for verdict, count in Counter(record["verdict"] for record in own).items()])
        table.add_row(arch, f"{len(own)} launches", str(sum(bool(record["kept"]) for record in own)), verdicts)
    console = Console(markup=False, highlight=False)
    console.print(table)
    for record in records:
        for line in record["failures"]:
            console.print(f"{record['kernel']} {record['arch']} {record.get('launch')}: {line}")


if __name__ == "__main__":
    sys.exit(main())
