"""Why an instruction has its stall count, its waits and its scoreboards: each is taken away, and the schedule checker says what breaks.

So there is no second opinion on what depends on what: what `sassir check` would report without a part of the control code is the
reason for it, with both instructions, the distance and the evidence of the machine tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from sassir.asm.control import Control
from sassir.asm.instruction import INSTRUCTION_BYTES
from sassir.asm.program import Function, Line
from sassir.errors import SchedulingError
from sassir.machine import Machine
from sassir.translate.flow import Flow
from sassir.verify.schedule.check import find_faults
from sassir.verify.schedule.report import Reporter
from sassir.verify.schedule.rules import DRAIN_CYCLES, STALL, Fault


class Reason(NamedTuple):
    """Somebody who needs a part of a control code."""

    second: int
    """The line that would come too early."""
    first: int | None
    """The line that it must keep away from; None where the rule is about one instruction."""
    text: str
    """What the second does, and what it has to do with the first: `reads R4, which … writes`."""
    distance: int
    """Cycles between the two as the code is; 0 where a scoreboard is waited for, whatever time that takes."""
    needed: int
    """Cycles needed; 0 likewise."""
    evidence: str


class Explanation(NamedTuple):
    """One part of the control code."""

    part: str
    """`stall 5`, `wait for SB0`, `signals SB1 when its results are written`."""
    reasons: tuple[Reason, ...]
    note: str
    """What else there is to say; empty if nothing."""


def explain(function: Function, flow: Flow, machine: Machine, line: int) -> list[Explanation]:
    """Why each part of the control code of `line` is there. Raises SchedulingError for a line that is not in the function."""
    if not 0 <= line < len(function.lines):
        at, last = INSTRUCTION_BYTES * line, INSTRUCTION_BYTES * (len(function.lines) - 1)
        raise SchedulingError(f"{function.name}: no instruction at {at:#x}; expected a multiple of {INSTRUCTION_BYTES} up to {last:#x}")
    return list(_Explainer(function, flow, machine, line).parts())


class _Explainer:
    def __init__(self, function: Function, flow: Flow, machine: Machine, line: int) -> None:
        self.function, self.flow, self.machine, self.line = function, flow, machine, line
        self.known = {_key(fault) for fault in find_faults(function, flow, machine)[0]}

    def parts(self) -> Iterator[Explanation]:
        control = self.function.lines[self.line].instruction.control
        yield self._stall(control)
        for scoreboard in control.wait:
            rest = tuple([s for s in control.wait if s != scoreboard])
            yield self._late(f"wait for SB{scoreboard}", control._replace(wait=rest))
        if control.write is not None:
            yield self._late(f"signals SB{control.write} when its results are written", control._replace(write=None))
        if control.read is not None:
            yield self._late(f"signals SB{control.read} when its operands are read", control._replace(read=None))

    def _stall(self, control: Control) -> Explanation:
        there = control.stall or DRAIN_CYCLES
        part = f"stall {there}" if control.stall else "stall 0: waits until nothing of the warp is under way"
        if there == 1:
            return Explanation(part, (), "the next instruction may issue in the next cycle")
        reasons = sorted(self._without(control._replace(stall=1), there - 1), key=lambda r: r.distance - r.needed)
        least = there - min([r.distance - r.needed for r in reasons if r.needed], default=there - 1)
        return Explanation(part, tuple(reasons), self._spare(there, least, bool(reasons)))

    def _spare(self, there: int, least: int, needed: bool) -> str:
        """What of the stall count no dependence explains."""
        if least >= there and needed:
            return ""
        interval = self._interval()
        if interval > least:
            return f"{interval} cycles until its pipe takes the next instruction, which goes to the same one"
        if not needed:
            return "no dependence needs it"
        return f"{least} would be enough for all that depends on it"

    def _interval(self) -> int:
        """Cycles that the next line has to wait for the pipe of this one."""
        after = self.line + 1
        if after >= len(self.function.lines):
            return 0
        this, following = (self.machine.timing(self.function.lines[i].instruction) for i in (self.line, after))
        return this.issue if this.pipe == following.pipe else 0

    def _late(self, part: str, control: Control) -> Explanation:
        reasons = tuple(self._without(control, 0))
        return Explanation(part, reasons, "" if reasons else "nothing needs it")

    def _without(self, control: Control, cycles: int) -> Iterator[Reason]:
        """What breaks with another control code, which lets `cycles` fewer pass."""
        lines = list(self.function.lines)
        instruction, origin = lines[self.line]
        lines[self.line] = Line(instruction._replace(control=control), origin)
        faults, report = find_faults(self.function._replace(lines=tuple(lines)), self.flow, self.machine)
        told: set[tuple[int | None, int, str]] = set()
        for fault in faults:
            if _key(fault) not in self.known:
                reason = self._reason(fault, report, cycles)
                if (reason.first, reason.second, reason.text) not in told:
                    told.add((reason.first, reason.second, reason.text))
                    yield reason

    def _reason(self, fault: Fault, report: Reporter, cycles: int) -> Reason:
        first = report.first(fault)
        text = "needs a stall count by itself"
        if fault.rule is not STALL:
            text = fault.rule.problem.format(subject=report.subject(fault), first=report.place(first))
        distance = fault.distance + cycles if fault.needed else 0
        return Reason(fault.second, first, text, distance, fault.needed, fault.evidence or fault.rule.evidence)


def _key(fault: Fault) -> tuple[str, int | None, int, int]:
    return fault.rule.name, fault.first, fault.second, fault.subject
