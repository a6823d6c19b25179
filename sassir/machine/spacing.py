"""Distances that instructions keep though they share no register: behind CTA barriers, and between warpgroup products."""

from __future__ import annotations

from typing import NamedTuple

from sassir import isa
from sassir.asm.instruction import Instruction
from sassir.machine.machine import Machine

ANY, SENSITIVE = "any", "sensitive"
PRODUCT, GROUP_WAIT, ARRIVAL, REDUCTION = "product", "group wait", "arrival of copies", "barrier with a result"
"""Kinds of instructions that must not come too soon after some others."""

AFTER = {
    "HGMMA": {PRODUCT: 4, GROUP_WAIT: 3},
    "LDGSTS": {ARRIVAL: 5},
    "WARPGROUP.ARRIVE": {PRODUCT: 6},
    "WARPGROUP.DEPBAR": {ANY: 2},
}
"""The smallest distances in code of ptxas and Triton: of 50 products, 7 arrivals and 9 waits on sm_90a; ptxas puts a NOP between LDGSTS
and ARRIVES to keep that one."""
BEFORE_NEXT_RESULT = {"sm_75": 9, "sm_80": 11, "sm_86": 11, "sm_89": 11}
"""From B2R to a second barrier, which would overwrite the result: the stall that ptxas puts there; from sm_90 on they are in order."""


class Spacing(NamedTuple):
    """What an instruction keeps its distance from."""

    kinds: frozenset[str]
    """The kinds it is of."""
    after: tuple[tuple[str, int], ...]
    """Cycles until an instruction of a kind may issue."""


def spacing(instruction: Instruction, machine: Machine) -> Spacing:
    """The distances that `instruction` keeps."""
    timing = machine.timing(instruction)
    kinds = {ANY}
    row = isa.describe(instruction.mnemonic, instruction.modifiers)
    in_memory = row is None or row.ordered or bool((row.loads | row.stores) - {"constant"})
    if timing.sensitive or in_memory:
        kinds.add(SENSITIVE)
    if timing.group:
        kinds.add(PRODUCT)
    if (instruction.mnemonic, *instruction.modifiers[:1]) == ("WARPGROUP", "DEPBAR"):
        kinds.add(GROUP_WAIT)
    if instruction.mnemonic == "ARRIVES":
        kinds.add(ARRIVAL)
    if instruction.mnemonic == "BAR" and "RED" in instruction.modifiers:
        kinds.add(REDUCTION)
    name = "HGMMA" if timing.group else ".".join((instruction.mnemonic, *instruction.modifiers[:1]))
    after = dict(AFTER.get(name, AFTER.get(instruction.mnemonic, {})))
    if instruction.mnemonic == "B2R" and machine.arch in BEFORE_NEXT_RESULT:
        after[REDUCTION] = BEFORE_NEXT_RESULT[machine.arch]
    if timing.settle > timing.minimum_stall:
        after[SENSITIVE] = timing.settle
    return Spacing(frozenset(kinds), tuple(after.items()))
