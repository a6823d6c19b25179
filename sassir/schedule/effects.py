"""What an instruction means for its neighbours' control codes: registers with latency classes, and the scoreboards it can raise."""

from __future__ import annotations

import re
from typing import NamedTuple

from sassir import isa
from sassir.asm.instruction import Instruction
from sassir.asm.operand import ZERO_REGISTERS
from sassir.dialect.registers import NUMBER, REGISTERS, UR, R
from sassir.errors import SchedulingError
from sassir.machine import Machine, Timing
from sassir.schedule.estimate import latency
from sassir.translate.shape import shape

MEMORY = len(REGISTERS)
"""The number, behind all registers, of memory as fences see it: a fence writes it, what follows in memory reads it."""
_FENCES = {"FENCE": "write", "MEMBAR": "read", "SYNCS": "write"}
"""What orders memory, and the scoreboard field by which it tells its end."""
_GROUP_ENDS = {"LDGDEPBAR": "write", "UTMACMDFLUSH": "read"}
"""What closes a group of asynchronous copies, and the field whose scoreboard DEPBAR counts."""
_SCOREBOARD = re.compile(r"SB([0-5])")


class Effects(NamedTuple):
    """Registers are numbers, sets of them bits; rows and columns are those of the latency matrices."""

    reads: tuple[tuple[int, int], ...]
    """Register and column, the guard included."""
    writes: tuple[tuple[int, int], ...]
    """Register and row."""
    read: int
    written: int
    results: int
    """Registers written at a time that only a scoreboard tells."""
    operands: int
    """Registers read at such a time."""
    latency: int
    """Estimated cycles from issue to late results; decides what is good, never what is safe."""
    timing: Timing
    guard: tuple[int, bool] | None
    """Predicate, and whether it is complemented."""
    result_field: str
    """The scoreboard field that tells the end of the results: `write`, for some fences `read`."""
    group_field: str | None
    """The scoreboard field by which it ends a group of asynchronous copies; None if it does not."""
    counts: int | None
    """The scoreboard that a DEPBAR counts."""

    @property
    def touched(self) -> int:
        """Registers read or written."""
        return self.read | self.written


def effects(instruction: Instruction, machine: Machine) -> Effects:
    """The effects of an instruction. Raises SchedulingError when its registers or its latencies are not known."""
    mnemonic = instruction.mnemonic
    found, timing = shape(mnemonic, instruction.modifiers, instruction.operands), machine.timing(instruction)
    problem = found.problem or timing.problem
    if problem is not None:
        raise SchedulingError(f"`{instruction}` cannot get a control code: {problem}")
    reads = list(zip(found.reads, timing.readers, strict=True))
    read, written = found.read_set | _memory(instruction), found.write_set
    guard = None
    if instruction.guard is not None and instruction.guard.registers[0] not in ZERO_REGISTERS:
        guard = NUMBER[instruction.guard.registers[0]], instruction.guard.negated
        reads.append((guard[0], timing.guard))
        read |= 1 << guard[0]
    fence = 1 << MEMORY if mnemonic in _FENCES else 0
    late_files = (_GENERAL if timing.reads_late else 0) | (_UNIFORM if timing.uniform_late else 0)
    return Effects(
        tuple(dict.fromkeys(reads)),
        tuple(zip(found.writes, timing.writers, strict=True)),
        read,
        written | fence,
        (found.write_set if timing.writes_late else 0) | fence,
        found.read_set & late_files,
        latency(instruction, timing),
        timing,
        guard,
        _FENCES.get(mnemonic, "write"),
        _GROUP_ENDS.get(mnemonic),
        _counted(instruction) if mnemonic == "DEPBAR" else None,
    )


def _bits(file: type[R | UR]) -> int:
    return ((1 << file.COUNT) - 1) << file.FIRST


_GENERAL, _UNIFORM = _bits(R), _bits(UR)


def _memory(instruction: Instruction) -> int:
    """`MEMORY` as bits, if a fence before the instruction must have ended."""
    description = isa.describe(instruction.mnemonic, instruction.modifiers)
    ordered = description is None or description.ordered or bool((description.loads | description.stores) - {"constant"})
    return 1 << MEMORY if ordered else 0


def _counted(instruction: Instruction) -> int | None:
    return next((int(match[1]) for operand in instruction.operands if (match := _SCOREBOARD.fullmatch(operand.text))), None)
