"""From an instruction to the step that executes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sassir.asm.instruction import OPAQUE, Instruction
from sassir.emulator.access import load_step, space_step, store_step
from sassir.emulator.arithmetic import arithmetic
from sassir.emulator.atomics import atomic_step
from sassir.emulator.batch import Batch, Step
from sassir.emulator.block_barrier import BUILDERS as BARRIERS
from sassir.emulator.constant_steps import constant_step, special_step
from sassir.emulator.control import BUILDERS as BRANCHES
from sassir.emulator.control import conditional
from sassir.emulator.convergence import BUILDERS as CONVERGENCE
from sassir.emulator.copy_steps import close_step, copy_step, wait_step
from sassir.emulator.lanes import LaneError, Lanes
from sassir.emulator.matrices import load_matrices, store_matrices
from sassir.emulator.syncs import arrive_after_copies, bulk_copy, syncs
from sassir.emulator.warpgroup import product_step
from sassir.errors import SemanticsError

_BUILDERS: Mapping[str, Callable[[Batch, Instruction], Step]] = {
    **{name: atomic_step for name in ("ATOM", "ATOMG", "ATOMS", "RED", "REDG")},
    **{name: load_step for name in ("LD", "LDG", "LDL", "LDS")},
    **{name: store_step for name in ("ST", "STG", "STL", "STS")},
    **{name: constant_step for name in ("LDC", "LDCU", "ULDC")},
    "ARRIVES": arrive_after_copies,
    "DEPBAR": wait_step,
    "HGMMA": product_step,
    "LDGDEPBAR": close_step,
    "LDGSTS": copy_step,
    "LDSM": load_matrices,
    "QSPC": space_step,
    "STSM": store_matrices,
    "SYNCS": syncs,
    "UBLKCP": bulk_copy,
    **{name: special_step for name in ("CS2R", "CS2UR", "S2R", "S2UR")},
}
"""Everything else is arithmetic."""
_CONTROL = {**BRANCHES, **CONVERGENCE, **BARRIERS}
_HINTS = frozenset({"ACQBULK", "CCTL", "CCTLL", "NOP", "PMTRIG", "PREEXIT", "UBLKPF", "UTMACMDFLUSH"})
_FENCES = frozenset({"CGAERRBAR", "ENDCOLLECTIVE", "ERRBAR", "FENCE", "MEMBAR", "WARPGROUP"})
"""Both make no difference where everything happens in order."""


def decode(batch: Batch) -> list[Step]:
    """The steps of a kernel. An instruction that cannot be emulated becomes a step that says so when it is executed."""
    return [step_of(batch, place, instruction) for place, instruction in enumerate(batch.kernel.code)]


def is_control(instruction: Instruction) -> bool:
    """Whether it decides where lanes go on; its step then looks at the guard itself."""
    return instruction.mnemonic in _CONTROL


def step_of(batch: Batch, place: int, instruction: Instruction) -> Step:
    """The step of one instruction."""
    try:
        if instruction.mnemonic in _HINTS | _FENCES:
            return lambda lanes: None
        if instruction.mnemonic in _CONTROL:
            return conditional(batch, place, instruction, _CONTROL[instruction.mnemonic](batch, place, instruction))
        if instruction.mnemonic == OPAQUE:
            raise SemanticsError(f"`{instruction.text}`: no table describes this word")
        return guarded(batch, instruction, _BUILDERS.get(instruction.mnemonic, arithmetic)(batch, instruction))
    except SemanticsError as error:
        return refusal(str(error))


def guarded(batch: Batch, instruction: Instruction, step: Step) -> Step:
    """The step for the lanes where the guard holds."""
    guard = instruction.guard
    if guard is None:
        return step
    registers, slot, negated = batch.registers, batch.registers.slot(guard.registers[0]), guard.negated

    def run(lanes: Lanes) -> bool | None:
        registers.check(slot, lanes)
        value = registers.values[slot]
        some = lanes.where(~value if negated else value)
        if some.count == lanes.count:
            return step(lanes)
        return step(some) if some.count else None

    return run


def refusal(reason: str) -> Step:
    """A step that cannot be executed."""

    def run(lanes: Lanes) -> None:
        raise LaneError(reason, int(lanes.numbers[0]))

    return run
