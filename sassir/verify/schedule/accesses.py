"""What one instruction does to registers and scoreboards, as far as its own text tells: the facts that the checker works with."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sassir import isa
from sassir.asm.control import SCOREBOARDS
from sassir.asm.instruction import Instruction
from sassir.asm.operand import ZERO_REGISTERS, Operand
from sassir.dialect.registers import NUMBER, REGISTERS, UP, UR, B, P, R
from sassir.machine import Machine, Timing
from sassir.machine.scoreboards import ORDERED_BY_BARRIER
from sassir.machine.spacing import Spacing, spacing
from sassir.translate.shape import Shape, bits
from sassir.verify.schedule.flight import Drain

MEMORY = 1 << len(REGISTERS)
"""Memory, as one more register: a fence that signals its end writes it late, what accesses memory reads it."""
_FENCES = frozenset({"FENCE", "MEMBAR"})
WARPGROUP = SCOREBOARDS
"""The number of `gsb0`, the counter of warpgroup products, behind those of the scoreboards."""
_GROUP = "warpgroup"
"""The queue of warpgroup products."""
PREDICATES = bits([*range(P.FIRST, P.FIRST + P.COUNT), *range(UP.FIRST, UP.FIRST + UP.COUNT)])
_GENERAL = bits(range(R.FIRST, R.FIRST + R.COUNT))
_UNIFORM = bits(range(UR.FIRST, UR.FIRST + UR.COUNT))
_CONVERGENCE = bits(range(B.FIRST, B.FIRST + B.COUNT))
"""The hardware itself waits for convergence registers (Mesa NAK)."""
_LIST = re.compile(r"\{([0-5,]+)\}")
_SCOREBOARD = re.compile(r"SB([0-5])")
_UNKNOWN_COUNT = 1 << 30


class Guard(NamedTuple):
    """The predicate under which an instruction writes."""

    register: int
    negated: bool


class Accesses(NamedTuple):
    """The registers of an instruction, by number, with the rows and columns of the latency matrices."""

    reads: tuple[tuple[int, int], ...]
    """Register and column; its guard too."""
    writes: tuple[tuple[int, int], ...]
    """Register and row."""
    read_set: int
    write_set: int
    late_reads: int
    """Registers, as bits, that it reads at a time that only a scoreboard tells."""
    late_writes: int
    """Registers that it writes at such a time."""
    queue: str | None
    """The queue that reads operands in order."""
    returns: str | None
    """The queue that writes results in order."""
    guard: Guard | None
    product: bool
    """A warpgroup product: runs on behind the program, in order with the others of its kind."""
    closes: bool
    """A warpgroup product that closes a group."""
    drain: Drain
    """What it waits for by itself."""
    barrier: bool
    """A CTA barrier that the warp passes only when the memory instructions before it have read their operands."""
    fence: bool
    """A fence, which is over when the scoreboard that it signals says so."""
    at_read: int
    """Results, as bits, that are there as soon as its operands are read."""
    minimum_stall: int
    spacing: Spacing
    """Distances without registers."""
    reach: int
    """After so many cycles, no writer can come too close to its reads."""
    problem: str | None
    """Why its registers or its timing are not known."""


class _Kind(NamedTuple):
    """What does not depend on the numbers of registers."""

    timing: Timing
    late_files: int
    closes: bool
    drain: Drain
    barrier: bool
    memory: int
    """`MEMORY` if it accesses memory, or keeps accesses in order."""
    spacing: Spacing
    reach: int


def find_accesses(code: Sequence[Instruction], shapes: Sequence[Shape], machine: Machine) -> Iterator[Accesses]:
    """The facts about each instruction; `shapes` are those of `find_flow`."""
    kinds: dict[object, _Kind] = {}
    for instruction, shape in zip(code, shapes, strict=True):
        guard = instruction.guard
        key = instruction.mnemonic, instruction.modifiers, shape.properties["template"], guard and guard.registers[0][0]
        kind = kinds.get(key)
        if kind is None:
            kind = kinds[key] = _kind(instruction, machine)
        yield _accesses(instruction, shape, kind)


def _kind(instruction: Instruction, machine: Machine) -> _Kind:
    timing = machine.timing(instruction)
    late_files = (_GENERAL if timing.reads_late or timing.group else 0) | (_UNIFORM if timing.uniform_late else 0)
    return _Kind(
        timing,
        late_files,
        timing.group and any(operand.text == "gsb0" for operand in instruction.operands),
        _drain(instruction) if "DEPBAR" in instruction.name else (),
        _passes_operands(instruction),
        _memory(instruction),
        spacing(instruction, machine),
        max([cell.cycles for column in (*timing.readers, timing.guard) for cell in machine.war[column]]),
    )


def _accesses(instruction: Instruction, shape: Shape, kind: _Kind) -> Accesses:
    timing = kind.timing
    problem = shape.problem or timing.problem
    reads, writes = (), ()
    if problem is None:
        reads, writes = tuple(zip(shape.reads, timing.readers, strict=True)), tuple(zip(shape.writes, timing.writers, strict=True))
    guard, read_set = None, shape.read_set | kind.memory
    if instruction.guard is not None and instruction.guard.registers[0] not in ZERO_REGISTERS:
        guard = Guard(NUMBER[instruction.guard.registers[0]], instruction.guard.negated)
        reads += ((guard.register, timing.guard),)
        read_set |= 1 << guard.register
    return Accesses(
        reads,
        writes,
        read_set,
        shape.write_set,
        shape.read_set & kind.late_files,
        shape.write_set & ~_CONVERGENCE if timing.writes_late or timing.group else 0,
        _GROUP if timing.group else timing.queue,
        _GROUP if timing.group else timing.result_queue,
        guard,
        timing.group,
        kind.closes,
        kind.drain,
        kind.barrier,
        instruction.mnemonic in _FENCES,
        shape.write_set & PREDICATES if timing.predicate_at_read else 0,
        timing.minimum_stall,
        kind.spacing,
        kind.reach if reads else 0,
        problem,
    )


def _passes_operands(instruction: Instruction) -> bool:
    """A CTA barrier at which the warp stops: it goes on when the memory instructions before it have read their operands."""
    modifiers = {*instruction.modifiers}
    return instruction.mnemonic in ORDERED_BY_BARRIER and bool(modifiers & {"SYNC", "RED"}) and "DEFER_BLOCKING" not in modifiers


def _memory(instruction: Instruction) -> int:
    """Whether it must come after a fence: it accesses memory, or is ordered, but not because it only waits for scoreboards."""
    if instruction.mnemonic == "DEPBAR":
        return 0
    row = isa.describe(instruction.mnemonic, instruction.modifiers)
    return MEMORY if row is not None and (row.ordered or (row.loads | row.stores) - {"constant"}) else 0


def _drain(instruction: Instruction) -> Drain:
    """`DEPBAR.LE SB0, 0x1, {3,2}` waits for at most one signal on 0 and none on 2 and 3; `WARPGROUP.DEPBAR.LE gsb0, 0x1` likewise."""
    most: dict[int, int] = {}
    count = next((o.integer for o in instruction.operands if o.integer is not None), _UNKNOWN_COUNT)
    for operand in instruction.operands:
        if match := _LIST.fullmatch(operand.text):
            most |= {int(number): 0 for number in match[1].split(",")}
        elif (number := _counter(operand)) is not None:
            most[number] = count
    return tuple(most.items())


def _counter(operand: Operand) -> int | None:
    """The scoreboard that an operand names."""
    match = _SCOREBOARD.fullmatch(operand.text)
    return int(match[1]) if match else WARPGROUP if operand.text == "gsb0" else None
