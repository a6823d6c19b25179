"""Does the schedule checker accept real code? How good are the control codes that sassir makes for it?

    python bench/schedule_check.py -o bench/results/schedule.json [--limit N] FILE…

FILEs are cubins and libraries, from bench/fetch_corpus.py for example. For each architecture: the findings about the code as it is,
by rule; `sass-assign-control` on all of it, the findings about the result, and for each kernel its issue cycles over the
original's, as a geometric mean. On the GPU: sassir bench-suite --pipeline sass-assign-control,sass-check-schedule

Issue cycles: stall counts, and waits until the expected latency of what is awaited is over, one warp alone; a block counts
ten times for each loop around it. The same estimate for both, whoever made the code.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from xdsl.context import Context

from sassir import __version__
from sassir.analysis.cfg import Cfg
from sassir.analysis.loops import Loops
from sassir.asm.control import SCOREBOARDS
from sassir.asm.program import Function, Program
from sassir.cubin.cubin import Cubin
from sassir.cubin.fatbin import EntryKind
from sassir.cubin.host import open_binary
from sassir.encoders.library import base_architecture, has_table
from sassir.findings import Finding
from sassir.passes.assign_control import AssignControl
from sassir.schedule.expected import expected_latency
from sassir.schedule.scoreboards import OPERAND_CYCLES
from sassir.translate.cubin import jump_tables, read_program
from sassir.translate.emit import emit_program
from sassir.translate.flow import Flow, find_flow
from sassir.translate.lift import lift_program
from sassir.verify.schedule import check_schedule

LISTED = 20
LONG_STALL = 15
"""Cycles counted for stall count 0."""


@dataclass
class Record:
    """What was found on one architecture."""

    cubins: int = 0
    kernels: int = 0
    assigned: int = 0
    """Kernels that got new control codes; the others are fixed."""
    instructions: int = 0
    check_seconds: float = 0
    assign_seconds: float = 0
    errors: Counter[str] = field(default_factory=Counter[str])
    """Of the original code, by rule."""
    warnings: Counter[str] = field(default_factory=Counter[str])
    made_errors: Counter[str] = field(default_factory=Counter[str])
    """Of the code with new control codes."""
    examples: list[str] = field(default_factory=list[str])
    ratios: list[float] = field(default_factory=list[float])
    """Issue cycles, new over original, by kernel."""
    worst: list[tuple[float, str]] = field(default_factory=list[tuple[float, str]])

    def as_json(self) -> dict[str, Any]:
        """Plain objects."""
        logs = [math.log(ratio) for ratio in self.ratios]
        return {
            "cubins": self.cubins,
            "kernels": self.kernels,
            "instructions": self.instructions,
            "errors": dict(self.errors),
            "warnings": dict(self.warnings),
            "checked_per_second": round(self.instructions / self.check_seconds),
            "assigned_kernels": self.assigned,
            "errors_after_assignment": dict(self.made_errors),
            "assigned_per_second": round(self.instructions / self.assign_seconds),
            "issue_cycles_ratio": round(math.exp(sum(logs) / len(logs)), 4) if logs else None,
            "worst": sorted(self.worst, reverse=True)[:LISTED],
            "examples": self.examples,
        }


def programs(files: list[Path], limit: int) -> Iterator[tuple[str, Program]]:
    """The cubins of the files, at most `limit` of one architecture."""
    seen: Counter[str] = Counter()
    for file in files:
        for entry in open_binary(file.read_bytes(), str(file)):
            if entry.kind is EntryKind.CUBIN and has_table(entry.arch):
                arch = base_architecture(entry.arch)
                seen[arch] += 1
                if seen[arch] <= limit:
                    yield entry.where, read_program(entry.data, entry.where)


def measure(where: str, program: Program, record: Record) -> None:
    """Check, assign, check again."""
    record.cubins += 1
    record.kernels += len(program.functions)
    record.instructions += sum([len(function.lines) for function in program.functions])
    start = time.process_time()
    findings = check_schedule(program)
    record.check_seconds += time.process_time() - start
    record.errors.update([f.rule for f in findings if f.error])
    record.warnings.update([f.rule for f in findings if not f.error])
    _list(where, findings, record)
    assert program.container is not None
    tables = jump_tables(Cubin.read(program.container, where))
    module = lift_program(program, tables)
    start = time.process_time()
    AssignControl().apply(Context(), module)
    record.assign_seconds += time.process_time() - start
    made = emit_program(module)
    findings = [f for f in check_schedule(made) if f not in findings]
    record.made_errors.update([f.rule for f in findings if f.error])
    _list(f"{where}, new control codes", findings, record)
    for before, after in zip(program.functions, made.functions, strict=True):
        flow = find_flow(before, tables[before.section or 0])
        if flow.problem is None:
            record.assigned += 1
            ratio = issue_cycles(after, find_flow(after, tables[before.section or 0])) / issue_cycles(before, flow)
            record.ratios.append(ratio)
            record.worst = sorted([*record.worst, (round(ratio, 3), f"{where} {before.name}")], reverse=True)[:LISTED]


def _list(where: str, findings: list[Finding], record: Record) -> None:
    errors = [f for f in findings if f.error]
    record.examples += [f"{where}: {f.kernel}+{f.offset:#x}: {f.message}" for f in errors][: LISTED - len(record.examples)]


def issue_cycles(function: Function, flow: Flow) -> float:
    """The estimate for one kernel."""
    cfg = Cfg(flow.successors, [0])
    loops = Loops(cfg)
    clear: dict[int, list[int]] = {}
    cycles = [0] * len(flow.blocks)
    for _ in range(2):  # the second time, what is under way at the end of a loop is known at its start
        for b in cfg.order:
            before = [p for p in cfg.predecessors[b] if p in clear]
            nearest = max(before, key=loops.depth, default=None)
            cycles[b], clear[b] = _run(function, flow.blocks[b], [0] * SCOREBOARDS if nearest is None else [*clear[nearest]])
    return 1 + sum([cycles[b] * 10 ** loops.depth(b) for b in _reached(cfg)])


def _run(function: Function, block: range, clear: list[int]) -> tuple[int, list[int]]:
    """Cycles of a block, and when each scoreboard is clear after it; `clear` is the same at its start."""
    now = 0
    for line in block:
        instruction = function.lines[line].instruction
        control = instruction.control
        now = max([now, *[clear[s] for s in control.wait]])
        if control.write is not None:
            clear[control.write] = max(clear[control.write], now + expected_latency(instruction.mnemonic))
        if control.read is not None:
            clear[control.read] = max(clear[control.read], now + OPERAND_CYCLES)
        now += control.stall or LONG_STALL
    return now, [time - now for time in clear]


def _reached(cfg: Cfg) -> set[int]:
    """The blocks that the kernel's entry leads to: padding is none."""
    reached: set[int] = set()
    work = [0]
    while work:
        b = work.pop()
        if b not in reached:
            reached.add(b)
            work += cfg.successors[b]
    return reached


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="JSON")
    parser.add_argument("--limit", type=int, default=1 << 30, metavar="N", help="cubins of one architecture at most")
    options = parser.parse_args()
    records: dict[str, Record] = {}
    for where, program in programs(options.files, options.limit):
        measure(where, program, records.setdefault(base_architecture(program.arch), Record()))
    rows = {arch: record.as_json() for arch, record in sorted(records.items())}
    options.output.write_text(json.dumps({"sassir": __version__, "date": date.today().isoformat(), "architectures": rows}, indent=1) + "\n")
    for arch, row in rows.items():
        print(f"{arch:8}", {key: value for key, value in row.items() if key not in ("worst", "examples")})
    return 1 if any(row["errors"] or row["errors_after_assignment"] for row in rows.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
