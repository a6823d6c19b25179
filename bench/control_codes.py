"""How good are the control codes that sassir makes, and are they safe?

    python bench/control_codes.py -o bench/results/control-codes.json [--arch sm_90]… FILE…

`sass-assign-control` on every cubin in the FILEs; then the schedule checker, which must find nothing that it does not find in the
original. Kernels that keep their codes (`fixed`), and those that have the same code as one before, are not counted. By architecture:

- `issue_cycles`: new over original, geometric mean over the kernels, estimated for one warp alone: stall counts, and waits until the
  expected latency of what is awaited is over; a block counts ten times for each loop around it;
- `reuse`: operands marked for the operand cache, new over original, all kernels together.

The rows of the architectures that were measured replace those in the result. Exits with 1 if something is unsafe. On the GPU:
sassir bench-suite --pipeline sass-assign-control,sass-check-schedule
"""

from __future__ import annotations

import math
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from schedule_check import place, run
from xdsl.context import Context

from sassir.analysis.cfg import Cfg
from sassir.analysis.loops import Loops
from sassir.asm.control import SCOREBOARDS
from sassir.asm.program import Function, Program
from sassir.cubin.cubin import Cubin
from sassir.machine import Machine, machine
from sassir.passes.assign_control import AssignControl
from sassir.translate.cubin import jump_tables
from sassir.translate.emit import emit_program
from sassir.translate.flow import Flow, find_flow
from sassir.translate.lift import lift_program
from sassir.verify.schedule import check_schedule

LISTED = 10
LONG_STALL = 15
"""Cycles counted for stall count 0."""


@dataclass
class Record:
    """What was found on one architecture."""

    kernels: int = 0
    instructions: int = 0
    seconds: float = 0
    errors: Counter[str] = field(default_factory=Counter[str])
    examples: list[str] = field(default_factory=list[str])
    cycles: list[tuple[float, str]] = field(default_factory=list[tuple[float, str]])
    reuse: tuple[int, int] = (0, 0)
    """New and original marks."""
    seen: set[int] = field(default_factory=set[int])
    """Hashes of kernels."""

    def add(self, where: str, program: Program) -> None:
        """Assign, check, compare."""
        assert program.container is not None
        tables = jump_tables(Cubin.read(program.container, where))
        module = lift_program(program, tables)
        start = time.process_time()
        AssignControl().apply(Context(), module)
        self.seconds += time.process_time() - start
        self.instructions += sum([len(function.lines) for function in program.functions])
        made = emit_program(module)
        known = {*check_schedule(program)}
        for finding in check_schedule(made):
            if finding.error and finding not in known:
                self.errors[finding.rule] += 1
                self.examples += [f"{where}: {place(finding)}: {finding.message}"][: LISTED - len(self.examples)]
        for before, after in zip(program.functions, made.functions, strict=True):
            flow, new = (find_flow(function, tables[before.section or 0]) for function in (before, after))
            self._compare(where, machine(program.arch), before, after, flow, new)

    def _compare(self, where: str, costs: Machine, before: Function, after: Function, flow: Flow, new: Flow) -> None:
        words = hash(tuple([line.instruction.word for line in before.lines]))
        if flow.problem is not None or words in self.seen:
            return
        self.seen.add(words)
        self.kernels += 1
        self.cycles.append((issue_cycles(after, new, costs) / issue_cycles(before, flow, costs), f"{where} {before.name}"))
        self.reuse = self.reuse[0] + marks(after), self.reuse[1] + marks(before)

    def as_json(self) -> dict[str, Any]:
        """Plain objects."""
        return {
            "date": date.today().isoformat(),
            "kernels": self.kernels,
            "instructions": self.instructions,
            "instructions_per_second": round(self.instructions / self.seconds),
            "errors": dict(self.errors),
            "issue_cycles": _mean([ratio for ratio, _ in self.cycles]),
            "reuse": round(self.reuse[0] / max(1, self.reuse[1]), 4),
            "worst": [f"{ratio:.3f} {where}" for ratio, where in sorted(self.cycles, reverse=True)[:LISTED]],
            "examples": self.examples,
        }


def _mean(ratios: Sequence[float]) -> float | None:
    """The geometric mean."""
    return round(math.exp(sum([math.log(ratio) for ratio in ratios]) / len(ratios)), 4) if ratios else None


def marks(function: Function) -> int:
    """How many operands are marked for the operand cache."""
    return sum([operand.reuse for line in function.lines for operand in line.instruction.operands])


def issue_cycles(function: Function, flow: Flow, costs: Machine) -> float:
    """The estimate for one kernel."""
    cfg = Cfg(flow.successors, [0])
    loops = Loops(cfg)
    clear: dict[int, list[int]] = {}
    cycles = [0] * len(flow.blocks)
    for _ in range(2):  # the second time, what is under way at the end of a loop is known at its start
        for b in cfg.order:
            before = [p for p in cfg.predecessors[b] if p in clear]
            nearest = max(before, key=loops.depth, default=None)
            cycles[b], clear[b] = _run(function, flow.blocks[b], costs, [0] * SCOREBOARDS if nearest is None else [*clear[nearest]])
    return 1 + sum([cycles[b] * 10 ** loops.depth(b) for b in _reached(cfg)])


def _run(function: Function, block: range, costs: Machine, clear: list[int]) -> tuple[int, list[int]]:
    """Cycles of a block, and when each scoreboard is clear after it; `clear` is the same at its start."""
    now = 0
    for line in block:
        instruction = function.lines[line].instruction
        control = instruction.control
        now = max([now, *[clear[s] for s in control.wait]])
        if control.write is not None:
            clear[control.write] = max(clear[control.write], now + costs.usual_latency(instruction))
        if control.read is not None:
            clear[control.read] = max(clear[control.read], now + costs.cost(instruction).read)
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
    return run(__doc__, Record)


if __name__ == "__main__":
    sys.exit(main())
