"""What the control codes and the machine description say of each instruction of a kernel."""

from __future__ import annotations

from typing import NamedTuple

from sassir.asm.control import Control
from sassir.asm.instruction import Instruction
from sassir.asm.operand import register_file
from sassir.emulator.batch import Batch, Step
from sassir.emulator.decode import is_control, refusal, step_of
from sassir.machine import Machine, Timing
from sassir.machine.accesses import accesses
from sassir.machine.kinds import kind_of

_ORDERING = frozenset({"ARRIVES", "BAR", "FENCE", "LDGDEPBAR", "MEMBAR", "SYNCS"})
"""Goes on, or lets others go on, only when older memory instructions have read their operands."""


class Facts(NamedTuple):
    """One instruction, ready to run when its time has come."""

    text: str
    step: Step
    control: Control
    timing: Timing
    reads: tuple[tuple[int, int], ...]
    """Slot and column of the latency matrix; guard and predicate operands of control instructions too."""
    writes: tuple[tuple[int, int], ...]
    """Slot and row."""
    guard: tuple[int, bool] | None
    """Slot, and whether the guard is complemented; None for control instructions, which look at it themselves."""
    late: bool
    late_reads: frozenset[int]
    """Slots that are read after issue."""
    closes_reads: bool
    """Older memory instructions read their operands first."""
    drain: tuple[tuple[int, int], ...]
    """Scoreboards that DEPBAR waits for, and how many signals may be outstanding."""


def facts_of(batch: Batch, place: int, instruction: Instruction, model: Machine) -> Facts:
    """The facts about the instruction at a place."""
    timing, control = model.timing(instruction), is_control(instruction)
    registers = batch.registers
    found = accesses(instruction, kind_of(model.kinds, instruction.mnemonic, instruction.modifiers))
    reads = [(registers.slot(f"{a.file}{a.number}"), a.line) for a in found.reads if a.file != "B"]
    writes = tuple([(registers.slot(f"{a.file}{a.number}"), a.line) for a in found.writes if a.file != "B"])
    guard = None
    if instruction.guard is not None:
        slot = registers.slot(instruction.guard.registers[0])
        if control:
            reads.append((slot, timing.guard))
        else:
            guard = slot, instruction.guard.negated
    late_files = ("R",) * timing.reads_late + ("UR",) * timing.uniform_late
    late_reads = frozenset([slot for slot, _ in reads if register_file(registers.names[slot]) in late_files])
    late = (timing.reads_late or timing.writes_late) and not control
    closes = instruction.mnemonic in _ORDERING
    step = step_of(batch, place, instruction if control else instruction._replace(guard=None))
    if timing.group:
        step = refusal("products of warpgroups are not emulated together with control codes")
    return Facts(
        instruction.text, step, instruction.control, timing, tuple(reads), writes, guard, late, late_reads, closes, drain_of(instruction)
    )


def drain_of(instruction: Instruction) -> tuple[tuple[int, int], ...]:
    """Scoreboards that DEPBAR waits for, each with the most signals that may be outstanding: `DEPBAR.LE SB0, 0x1, {3,2}`."""
    if instruction.mnemonic != "DEPBAR":
        return ()
    most = next((o.integer for o in instruction.operands if o.integer is not None), 0)
    found: list[tuple[int, int]] = []
    for operand in instruction.operands:
        if operand.text.startswith("SB"):
            found.append((int(operand.text[2:]), most))
        elif operand.text.startswith("{"):
            found += [(int(number), 0) for number in operand.text.strip("{}").split(",")]
    return tuple(found)
