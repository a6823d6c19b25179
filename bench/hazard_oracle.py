"""Which dependences does a piece of straight-line code violate? Every pair of instructions is looked at, one after the other.

Slow, simple, and careful the other way round than a checker: what is not certain is no violation. Guarded instructions,
warpgroup products, and whatever lies behind a DEPBAR or a CTA barrier are left out. It shares nothing with sassir's checker but the
machine description and the registers of each instruction.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sassir.asm.instruction import Instruction
from sassir.dialect.registers import REGISTER_NAMES
from sassir.machine import Latency, Machine, Timing
from sassir.translate.shape import Shape, shape

DRAIN_CYCLES = 40
"""Counted for stall count 0."""
_ENDS_MANY = frozenset({"BAR", "DEPBAR", "WARPGROUP"})


class Violation(NamedTuple):
    """A dependence that is not kept. Lines of the code."""

    first: int
    second: int
    register: str
    problem: str


class Line(NamedTuple):
    """An instruction with its registers and its timing."""

    instruction: Instruction
    shape: Shape
    timing: Timing


def violations(code: Sequence[Instruction], machine: Machine, changed: int) -> Iterator[Violation]:
    """Each violated dependence between what is up to the line behind `changed` and what is from it on."""
    lines = [Line(i, shape(i.mnemonic, i.modifiers, i.operands), machine.timing(i)) for i in code]
    known = [not _left_out(line) for line in lines]
    for second in range(changed, len(lines)):
        for first in range(min(second, changed + 2)):
            if known[first] and known[second] and _share_a_register(lines[first].shape, lines[second].shape):
                yield from _between(lines, first, second, machine)


def _share_a_register(a: Shape, b: Shape) -> bool:
    """One of the two writes it."""
    return bool(a.write_set & (b.read_set | b.write_set) | a.read_set & b.write_set)


def _between(lines: Sequence[Line], first: int, second: int, machine: Machine) -> Iterator[Violation]:
    a, b = lines[first], lines[second]
    distance = sum([line.instruction.control.stall or DRAIN_CYCLES for line in lines[first:second]])
    for register in {*a.shape.writes} & {*b.shape.reads, *b.shape.writes} | {*a.shape.reads} & {*b.shape.writes}:
        if any(register in line.shape.writes for line in lines[first + 1 : second]):
            continue
        name = REGISTER_NAMES[register]
        for cell in _cells(a, b, register, machine):
            if cell.certain and distance < cell.cycles:
                yield Violation(first, second, name, f"{distance} cycles, {cell.cycles} needed")
        if _late_problem(lines, first, second, register):
            yield Violation(first, second, name, "no wait")


def _left_out(line: Line) -> bool:
    return line.instruction.guard is not None or line.timing.group or line.timing.problem is not None


def _cells(a: Line, b: Line, register: int, machine: Machine) -> Iterator[Latency]:
    """The matrix cells for one register."""
    rows_a = [row for r, row in zip(a.shape.writes, a.timing.writers, strict=True) if r == register]
    rows_b = [row for r, row in zip(b.shape.writes, b.timing.writers, strict=True) if r == register]
    columns_a = [column for r, column in zip(a.shape.reads, a.timing.readers, strict=True) if r == register]
    columns_b = [column for r, column in zip(b.shape.reads, b.timing.readers, strict=True) if r == register]
    yield from [machine.raw[row][column] for row in rows_a for column in columns_b]
    yield from [machine.waw[row][other] for row in rows_a for other in rows_b]
    yield from [machine.war[column][row] for column in columns_a for row in rows_b]


def _late_problem(lines: Sequence[Line], first: int, second: int, register: int) -> bool:
    """A late access of `first` to the register is not awaited before `second` needs it to be over."""
    a, b = lines[first], lines[second]
    if REGISTER_NAMES[register].startswith("B"):
        return False  # the hardware waits for convergence registers
    if any(line.instruction.mnemonic in _ENDS_MANY for line in lines[first + 1 : second + 1]):
        return False
    overwrites = register in b.shape.writes and not (b.timing.writes_late and register not in b.shape.reads)
    overwritten_late = register in b.shape.writes and b.timing.writes_late
    if a.timing.writes_late and register in a.shape.writes:
        in_order = a.timing.result_queue is not None and a.timing.result_queue == b.timing.result_queue
        if register in b.shape.reads or overwrites or (overwritten_late and not in_order):
            return not _told(lines, first, second, result=True)
    if _reads_late(a, register) and register in b.shape.writes and register not in a.shape.writes:
        in_order = a.timing.queue is not None and a.timing.queue == b.timing.queue
        return not (overwritten_late and in_order) and not _told(lines, first, second, result=False)
    return False


def _reads_late(line: Line, register: int) -> bool:
    late = line.timing.uniform_late if REGISTER_NAMES[register].startswith("UR") else line.timing.reads_late
    return late and register in line.shape.reads and REGISTER_NAMES[register].startswith(("R", "UR"))


def _told(lines: Sequence[Line], first: int, second: int, result: bool) -> bool:
    """Some line up to `second` waits for a scoreboard that tells the end: one of `first`, or of a younger one in its queue."""
    told: set[int | None] = set()
    queue = lines[first].timing.result_queue if result else lines[first].timing.queue
    for at in range(first, second + 1):
        control, timing = lines[at].instruction.control, lines[at].timing
        if at > first and told & {*control.wait}:
            return True
        if at == first or (queue is not None and queue == (timing.result_queue if result else timing.queue)):
            told |= {control.write} if result else {control.write, control.read}
    return False
