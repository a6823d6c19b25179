"""Findings in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sassir.analysis.cfg import Cfg
from sassir.asm.instruction import INSTRUCTION_BYTES
from sassir.asm.program import Function
from sassir.dialect.registers import REGISTER_NAMES
from sassir.findings import Finding
from sassir.translate.flow import Flow
from sassir.verify.schedule.rules import FLOW, ILLEGAL, STALL, UNKNOWN, WAIT, Fault
from sassir.verify.schedule.transfer import Transfer

_WITHOUT_FIRST = (ILLEGAL, STALL, UNKNOWN)


class Reporter:
    """Makes the findings about one function."""

    def __init__(self, function: Function, flow: Flow, cfg: Cfg, transfer: Transfer) -> None:
        self.function, self.flow, self.cfg, self.transfer = function, flow, cfg, transfer

    def flow_problem(self) -> Iterator[Finding]:
        """A warning if control can go to unknown places."""
        if self.flow.problem is not None:
            message = f"{self.flow.problem}; what depends on it is not checked"
            yield Finding(FLOW.name, self.function.name, None, message, FLOW.evidence, error=False)

    def findings(self, faults: Iterable[Fault]) -> Iterator[Finding]:
        """One finding for each rule and pair of instructions, the one with the largest gap, in the order of the code."""
        worst: dict[tuple[str, int | None, int], tuple[Fault, int | None]] = {}
        for fault in faults:
            first = self.first(fault)
            key = fault.rule.name, first, fault.second
            if key not in worst or worst[key][0].missing < fault.missing:
                worst[key] = fault, first
        for fault, first in sorted(worst.values(), key=lambda found: found[0].second):
            yield self._finding(fault, first)

    def first(self, fault: Fault) -> int | None:
        """The line of the first instruction of a fault: the nearest one before the second that can be it."""
        if fault.first is not None or fault.rule in _WITHOUT_FIRST:
            return fault.first
        return next((line for line in self._backwards(fault.second) if self.transfer.starts(line, fault)), None)

    def subject(self, fault: Fault) -> str:
        """The name of the register or scoreboard that a fault is about."""
        return f"SB{fault.subject}" if fault.rule is WAIT else (*REGISTER_NAMES, "memory")[fault.subject]

    def place(self, line: int | None) -> str:
        """An instruction and where it is."""
        return f"{self._text(line)} at {INSTRUCTION_BYTES * line:#x}" if line is not None else "an instruction before"

    def _finding(self, fault: Fault, first: int | None) -> Finding:
        rule, second = fault.rule, fault.second
        problem = rule.problem.format(subject=self.subject(fault), first=self.place(first))
        message = f"{self._text(second)} {problem}{self._details(fault, first)}"
        error = fault.certain and rule is not UNKNOWN
        return Finding(rule.name, self.function.name, INSTRUCTION_BYTES * second, message, fault.evidence or rule.evidence, error)

    def _details(self, fault: Fault, first: int | None) -> str:
        """What there is and what is needed."""
        if fault.rule is STALL:
            return f": {fault.distance}, expected at least {fault.needed}"
        if fault.needed:
            return f" {fault.distance} cycles before; expected at least {fault.needed}"
        if first is None or fault.first is not None:
            return ""
        control = self.function.lines[first].instruction.control
        signals = [f"SB{s}" for s in (control.write, control.read) if s is not None]
        return f" (it signals {' and '.join(signals) or 'no scoreboard'})"

    def _text(self, line: int) -> str:
        return f"`{self.function.lines[line].instruction}`"

    def _backwards(self, line: int) -> Iterator[int]:
        """The lines before `line` on any path, those of the nearest blocks first."""
        blocks = self.flow.blocks
        home = next(b for b, block in enumerate(blocks) if line in block)
        yield from reversed(range(blocks[home].start, line))
        seen: set[int] = set()
        work = list(self.cfg.predecessors[home])
        for b in work:
            if b not in seen:
                seen.add(b)
                yield from reversed(blocks[b])
                work += self.cfg.predecessors[b]
