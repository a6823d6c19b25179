"""What an operation means for the control codes around it: registers with latency classes, and the scoreboards it can raise."""

from __future__ import annotations

import re
from typing import NamedTuple

from xdsl.ir import SSAValue

from sassir.analysis.effects import effects as other_effects
from sassir.asm.operand import Operand
from sassir.dialect import internals, syntax
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.registers import REGISTERS, UR, B, R, SassRegister
from sassir.dialect.sample import sample
from sassir.errors import SchedulingError
from sassir.machine import Machine, Timing
from sassir.machine.spacing import Spacing, spacing
from sassir.translate.shape import bits

MEMORY = 1 << len(REGISTERS)
"""Memory as fences see it, as one more register: a fence writes it, what follows in memory reads it."""
_FENCES = {"FENCE": "write", "LDTM": "write", "MEMBAR": "read", "SYNCS.EXCH": "write"}
"""What orders memory, and the scoreboard field by which it tells its end, as ptxas uses it. LDTM is one because the PTX instruction
that waits for it becomes the wait of a NOP, which is not kept: it must be over before threads are told that it is."""
_GROUP_ENDS = {"LDGDEPBAR": "write", "UTMACMDFLUSH": "read"}
"""What closes a group of asynchronous copies, and the field whose scoreboard DEPBAR counts."""
_COUNTING = "DEPBAR"
"""It waits for scoreboards, and for nothing else."""
_SCOREBOARD = re.compile(r"SB([0-5])")
_GENERAL, _UNIFORM, _CONVERGENCE = [bits(range(file.FIRST, file.FIRST + file.COUNT)) for file in (R, UR, B)]
"""The registers of three files. The hardware itself waits for convergence registers (Mesa NAK)."""


class Kind(NamedTuple):
    """What does not depend on the numbers of registers."""

    mnemonic: str
    timing: Timing
    spacing: Spacing
    """Distances without registers."""
    late_files: int
    """The registers that it would read late, as bits."""
    in_memory: int
    """`MEMORY` if a fence before it must be over."""
    fence: int
    """`MEMORY` if it is a fence."""
    latency: int
    """Cycles until its late results, usually; decides what is good, never what is safe."""
    operand_cycles: int
    """Cycles until its late operands are read, likewise."""
    result_field: str
    """The scoreboard field that tells the end of its results."""
    group_field: str | None
    """The scoreboard field by which it ends a group of asynchronous copies; None if it does not."""
    counted: int | None
    """The scoreboard that it counts as a DEPBAR."""


class Effects(NamedTuple):
    """Registers are numbers, sets of them bits; rows and columns are those of the latency matrices."""

    kind: Kind
    reads: tuple[tuple[int, int], ...]
    """Register and column, the guard included."""
    writes: tuple[tuple[int, int], ...]
    """Register and row."""
    read: int
    written: int
    touched: int
    """Registers read or written."""
    results: int
    """Registers written at a time that only a scoreboard tells."""
    operands: int
    """Registers read at such a time."""
    guard: tuple[int, bool] | None
    """Predicate, and whether it is complemented."""


_kinds: dict[tuple[Machine, type[SassInstruction], str, int, str | None], tuple[object, Kind]] = {}
"""By machine, class, modifiers, identity of the template (kept with it: equal templates are one object), and file of the guard."""


def effects(op: SassInstruction, machine: Machine) -> Effects:
    """The effects of an allocated operation. Raises SchedulingError when its registers or its latencies are not known."""
    operands, predicate = internals.operands(op), op.guard
    kind = _kind_of(op, predicate, machine)
    timing = kind.timing
    if timing.problem is not None:
        raise SchedulingError(f"`{syntax.written(op)}` cannot get a control code: {timing.problem}")
    reads = tuple([(_number(op, value), column) for value, column in zip(operands, timing.readers, strict=False)])
    read_set = bits([register for register, _ in reads])
    late = read_set & kind.late_files
    guard = None
    if predicate is not None:
        guard = _number(op, predicate), "unless" in op.properties
        reads = (*reads, (guard[0], timing.guard))
        read_set |= 1 << guard[0]
    writes = tuple([(_number(op, value), row) for value, row in zip(op.results, timing.writers, strict=True)])
    written = bits([register for register, _ in writes])
    read, results = read_set | kind.in_memory, (written & ~_CONVERGENCE if timing.writes_late else 0) | kind.fence
    return Effects(kind, reads, writes, read, written | kind.fence, read | written | kind.fence, results, late, guard)


def _kind_of(op: SassInstruction, guard: SSAValue | None, machine: Machine) -> Kind:
    template, modifiers = op.properties["template"], op.modifiers
    file = guard.type.FILE if guard is not None and isinstance(guard.type, SassRegister) else None
    key = machine, type(op), "" if modifiers is None else modifiers.data, id(template), file
    found = _kinds.get(key)
    if found is None:
        found = _kinds[key] = template, _kind(op, file, machine)
    return found[1]


def _kind(op: SassInstruction, guard: str | None, machine: Machine) -> Kind:
    mnemonic = op.MNEMONIC
    instruction = sample(mnemonic, op.modifiers.data if op.modifiers is not None else "", op.template)
    if guard is not None:
        instruction = instruction._replace(guard=Operand.parse(f"{guard}0"))
    timing, other = machine.timing(instruction), other_effects(op)
    fence = next((field for name, field in _FENCES.items() if f"{instruction.name}.".startswith(f"{name}.")), None)
    in_memory = mnemonic != _COUNTING and (other.ordered or bool((other.loads | other.stores) - {"constant"}))
    counts = [int(match[1]) for operand in instruction.operands if (match := _SCOREBOARD.fullmatch(operand.text))]
    return Kind(
        mnemonic,
        timing,
        spacing(instruction, machine),
        (_GENERAL if timing.reads_late else 0) | (_UNIFORM if timing.uniform_late else 0),
        MEMORY if in_memory else 0,
        0 if fence is None else MEMORY,
        machine.usual_latency(instruction),
        machine.cost(instruction).read,
        fence or ("read" if timing.predicate_at_read and {*op.template.data.write_files} == {"P"} else "write"),
        _GROUP_ENDS.get(mnemonic),
        counts[0] if counts and mnemonic == _COUNTING else None,
    )


def _number(op: SassInstruction, value: SSAValue) -> int:
    kind = value.type
    if isinstance(kind, SassRegister) and (number := kind.number) is not None:
        return number
    raise SchedulingError(f"`{syntax.written(op)}` has a value of type {kind}; allocate registers first")
