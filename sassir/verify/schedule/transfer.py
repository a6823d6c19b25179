"""How one instruction changes what is under way, and which rules it breaks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from sassir.asm.control import Control
from sassir.machine import Latency, Machine
from sassir.machine.scoreboards import SIGNAL_DISTANCE
from sassir.machine.spacing import SENSITIVE
from sassir.translate.shape import members
from sassir.verify.schedule.accesses import MEMORY, PREDICATES, WARPGROUP, Accesses
from sassir.verify.schedule.flight import Condition, Flight, Late, Write, excludes
from sassir.verify.schedule.rules import (
    BARRIER,
    DRAIN_CYCLES,
    FENCE,
    GROUP,
    NOT_AWAITED,
    OPERAND,
    OVERWRITTEN,
    RAW,
    STALL,
    UNKNOWN_CODE,
    WAIT,
    WAR,
    WAW,
    Fault,
    Rule,
)


class Transfer:
    """The rules applied to the lines of one function."""

    def __init__(self, facts: Sequence[Accesses], controls: Sequence[Control], machine: Machine) -> None:
        self.facts, self.controls = facts, controls
        self.raw, self.war, self.waw, self.waw_guarded = machine.raw, machine.war, machine.waw, machine.waw_guarded
        self.write_reach = _write_reach(machine)
        self.horizon = max(*self.write_reach, *[f.reach for f in facts], *[cycles for f in facts for _, cycles in f.spacing.after], 1)
        self.most = 1 + max([most for a in facts for _, most in a.drain if most < 64], default=0)
        """Counts of signals that some DEPBAR of the function tells apart."""

    def step(self, flight: Flight, line: int, faults: list[Fault]) -> None:
        """Issue `line`: add what it breaks to `faults`, and move `flight` behind it."""
        facts, control = self.facts[line], self.controls[line]
        guard = facts.guard
        condition = None if guard is None else Condition(*guard, flight.versions.get(guard.register, 0))
        if control.wait or facts.drain:
            self._wait(flight, line, faults)
        if (facts.read_set | facts.write_set) & flight.unwritten or facts.write_set & flight.unread:
            self._check_late(flight, line, condition, faults)
        self._check_fixed(flight, line, condition, faults)
        if flight.spaced:
            self._check_spacing(flight, line, faults)
        stall = control.stall or DRAIN_CYCLES
        if stall < facts.minimum_stall:
            faults.append(Fault(STALL, None, line, 0, stall, facts.minimum_stall))
        if facts.barrier:
            flight.pass_barrier()
        if control.write is not None or control.read is not None or facts.closes:
            self._signal(flight, line)
            if facts.fence:
                flight.start(Late(True, None, condition, tuple([(s, 1) for s in (control.write, control.read) if s is not None])), MEMORY)
        if facts.late_writes or facts.late_reads:
            self._start_late(flight, line, condition)
        self._start_fixed(flight, line, condition, stall)

    def _wait(self, flight: Flight, line: int, faults: list[Fault]) -> None:
        """Late accesses end whose scoreboards the line waits for."""
        waits = self.controls[line].wait
        for scoreboard in waits:
            since = flight.clock - flight.signalled.get(scoreboard, flight.clock - SIGNAL_DISTANCE)
            if since < SIGNAL_DISTANCE:
                faults.append(Fault(WAIT, None, line, scoreboard, since, SIGNAL_DISTANCE))
        flight.end(waits, self.facts[line].drain)

    def _check_late(self, flight: Flight, line: int, condition: Condition | None, faults: list[Fault]) -> None:
        facts = self.facts[line]
        for late, registers in list(flight.late.items()):
            read = registers & facts.read_set if late.writes else 0
            written = registers & facts.write_set
            if late.queue is not None and late.queue == (facts.returns if late.writes else facts.queue):
                written &= ~facts.late_writes  # in order
            if not read | written or excludes(late.condition, condition) or (facts.product and late.queue == facts.queue):
                continue
            flight.late[late] = registers & ~(read | written)  # told once
            _late_faults(FENCE if read == MEMORY else NOT_AWAITED, read, line, late, faults)
            _late_faults(OVERWRITTEN if late.writes else OPERAND, written & ~read, line, late, faults)

    def _check_fixed(self, flight: Flight, line: int, condition: Condition | None, faults: list[Fault]) -> None:
        facts, now, known = self.facts[line], flight.clock, flight.writes
        for register, column in facts.reads:
            if register in known:
                for write in known[register]:
                    _compare(RAW, write, line, register, now, self.raw[write.row][column], condition, faults)
        for register, row in facts.writes:
            if register in known:
                for write in known[register]:
                    matrix = self.waw if write.condition is None else self.waw_guarded
                    _compare(WAW, write, line, register, now, matrix[write.row][row], condition, faults)
        if flight.reads and facts.writes:
            self._check_reads(flight, line, faults)

    def _check_reads(self, flight: Flight, line: int, faults: list[Fault]) -> None:
        facts, now = self.facts[line], flight.clock
        for reader, time in flight.reads.items():
            before = self.facts[reader]
            if before.read_set & ~before.late_reads & facts.write_set:
                rows = dict(facts.writes)
                for register, column in before.reads:
                    late = before.late_reads >> register & 1
                    if not late and register in rows and now - time < (cell := self.war[column][rows[register]]).cycles:
                        faults.append(Fault(WAR, reader, line, register, now - time, cell.cycles, cell.evidence, cell.certain))

    def _check_spacing(self, flight: Flight, line: int, faults: list[Fault]) -> None:
        kinds = self.facts[line].spacing.kinds
        for before, time in flight.spaced.items():
            for kind, needed in self.facts[before].spacing.after:
                if kind in kinds and flight.clock - time < needed:
                    rule = BARRIER if kind == SENSITIVE else GROUP
                    faults.append(Fault(rule, before, line, 0, flight.clock - time, needed))

    def _start_fixed(self, flight: Flight, line: int, condition: Condition | None, stall: int) -> None:
        """The clock goes on; accesses that the next line could not come too close to are not kept."""
        facts, now, known = self.facts[line], flight.clock, flight.writes
        for register, row in facts.writes:
            if self.write_reach[row] > stall:
                write = Write(now, row, line, condition)
                known[register] = (write,) if condition is None else (*known.get(register, ()), write)
            elif condition is None and register in known:
                del known[register]
        if facts.write_set & PREDICATES:
            for register in members(facts.write_set & PREDICATES):
                flight.versions[register] = flight.versions.get(register, 0) + 1
        flight.clock += stall
        if flight.reads:
            flight.reads = {reader: t for reader, t in flight.reads.items() if flight.clock - t < self.facts[reader].reach}
        if facts.reach > stall:
            flight.reads[line] = now
        if flight.spaced:
            flight.spaced = {before: t for before, t in flight.spaced.items() if flight.clock - t < self._spacing_reach(before)}
        if facts.spacing.after and self._spacing_reach(line) > stall:
            flight.spaced[line] = now

    def _spacing_reach(self, line: int) -> int:
        return max([cycles for _, cycles in self.facts[line].spacing.after], default=0)

    def _signal(self, flight: Flight, line: int) -> None:
        """What went into the same queue before ends no later than what signals now."""
        facts, control = self.facts[line], self.controls[line]
        for scoreboard in (control.write, control.read):
            if scoreboard is not None:
                flight.signalled[scoreboard] = flight.clock
        if flight.late and (facts.queue is not None or facts.returns is not None):
            if control.write is not None:
                flight.signal(control.write, facts.queue, facts.returns, self.most)
            if control.read is not None:
                flight.signal(control.read, facts.queue, None, self.most)
            if facts.closes:
                flight.signal(WARPGROUP, facts.queue, facts.returns, self.most)

    def _start_late(self, flight: Flight, line: int, condition: Condition | None) -> None:
        facts, control = self.facts[line], self.controls[line]
        write = (WARPGROUP if facts.closes else None) if facts.product else control.write
        done = ((write, 1),) if write is not None else ()
        read = tuple(sorted({*done, *([(control.read, 1)] if control.read is not None else [])}))
        if facts.late_writes & ~facts.at_read:
            flight.start(Late(True, facts.returns, condition, done), facts.late_writes & ~facts.at_read)
        if facts.at_read:
            flight.start(Late(True, facts.queue, condition, read), facts.at_read)
        if facts.late_reads:
            flight.start(Late(False, facts.queue, condition, read), facts.late_reads)

    def leave(self, flight: Flight, line: int, faults: list[Fault]) -> None:
        """Control goes from `line` to code that is not known, which may touch every register."""
        for late, registers in flight.late.items():
            _late_faults(UNKNOWN_CODE, registers, line, late, faults)

    def starts(self, line: int, fault: Fault) -> bool:
        """Whether `line` can have started what `fault` says is not over: a late access, or the signal of a scoreboard."""
        facts, control = self.facts[line], self.controls[line]
        signals = {s for s in (control.write, control.read) if s is not None}
        if fault.rule is WAIT:
            return fault.subject in signals
        if fault.rule is FENCE:
            return facts.fence and signals == {*fault.told}
        results, operands = facts.late_writes, facts.late_reads
        if fault.rule is OPERAND:
            results = 0
        elif fault.rule is not UNKNOWN_CODE:
            operands, signals = 0, signals if facts.at_read >> fault.subject & 1 else signals - {control.read}
        return bool((results | operands) >> fault.subject & 1) and (facts.product or signals <= {*fault.told})


def _compare(
    rule: Rule, write: Write, line: int, register: int, now: int, cell: Latency, condition: Condition | None, faults: list[Fault]
) -> None:
    if now - write.time < cell.cycles and not excludes(write.condition, condition):
        faults.append(Fault(rule, write.line, line, register, now - write.time, cell.cycles, cell.evidence, cell.certain))


def _late_faults(rule: Rule, registers: int, line: int, late: Late, faults: list[Fault]) -> None:
    told = tuple([scoreboard for scoreboard, _ in late.signals])
    faults += [Fault(rule, None, line, register, told=told) for register in members(registers)]


@cache
def _write_reach(machine: Machine) -> list[int]:
    """By row, the cycles after which nothing is too close to such a write."""
    rows = zip(machine.raw, machine.waw, machine.waw_guarded, strict=True)
    return [max([cell.cycles for cells in matrices for cell in cells]) for matrices in rows]
