"""Estimates that decide what is good, never what is safe: how long late instructions take."""

from __future__ import annotations

from sassir import isa
from sassir.asm.instruction import Instruction
from sassir.machine import Timing

OPERANDS = 12
"""Cycles until a late instruction has read its operands (Huerta et al., MICRO 2025, table 2: 9 to 20 on Ampere)."""
GLOBAL = 280
"""Cycles to memory beyond the first-level cache: an L2 hit on an H200."""
RESULTS = {"adu": 25, "fp64": 40, "lsu": 30, "tensor": 33, "tex": GLOBAL, "tma": GLOBAL, "uniform": 30, "xu": 24}
"""Cycles to the result, by pipe (same source; S2R and LDCU from chains on sm_90)."""


def latency(instruction: Instruction, timing: Timing) -> int:
    """Cycles from issue to late results."""
    description = isa.describe(instruction.mnemonic, instruction.modifiers)
    far = description is not None and not {"global", "local", "texture"}.isdisjoint(description.loads)
    return GLOBAL if far else RESULTS.get(timing.pipe, GLOBAL)
