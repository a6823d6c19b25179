"""How long an instruction keeps its pipe, and how long the next one of its warp must wait whatever it is."""

from __future__ import annotations

from sassir.asm.instruction import Instruction

# fmt: off
LANES = """
# pipe    sm_75 sm_80 sm_86 sm_89 sm_90 sm_100 sm_120
alu          16    16    16    16    16     16     16
fma          16    16    32    32    32     32     32
fp16         32    64    32    32    64     64     32
fp64          1     8     1     1    16     16      1
xu            4     4     4     4     4      4      4
lsu           8     8     8     8     8      8      8
tex           4     4     4     4     4      4      4
tensor        8     8     8     8     8      8      8
"""
# fmt: on


def issue_cycles(arch: str, pipe: str, instruction: Instruction) -> int:
    """Cycles that the pipe is busy with one warp instruction."""
    header, *rows = LANES.strip().splitlines()
    column = header.split().index(arch) - 1
    lanes = next((int(row.split()[column]) for row in rows if row.split()[0] == pipe), 32)
    return max(1, 32 // lanes)


MINIMUM_STALL = {"BRA": 5, "BRX": 5, "BRXU": 5, "JMP": 5, "JMX": 5, "CALL": 5, "RET": 5, "EXIT": 5, "BSYNC": 5, "BREAK": 5,
                 "BAR": 5, "MEMBAR": 5, "DEPBAR": 4, "BPT": 4, "RPCMOV": 6, "CCTL": 8}  # fmt: skip


def minimum_stall(arch: str, instruction: Instruction) -> int:
    """Smallest stall count of the instruction itself."""
    if instruction.mnemonic == "CCTL" and "IVALL" in instruction.modifiers:
        return 11
    return MINIMUM_STALL.get(instruction.mnemonic, 1)
