"""Rules of scoreboards and queues: sequences that rely on a rule, compared with the same instructions far apart."""

from __future__ import annotations

from typing import NamedTuple

from hopper.kernel import pause, repeat, run, sass, store

from sassir.asm.instruction import Instruction
from sassir.asm.parse import parse_instruction
from sassir.gpu.worker import Worker

# R52 makes 32 conflicts of a bank, so that a load is slow.
# fmt: off
SEQUENCES = {
    "a waiter one cycle after the signal": """
        [B------:R-:W0:-:S01] LDS R40, [R52]
        [B0-----:R-:W-:-:S05] IADD3 R40, R40, R4, RZ""",
    "a waiter two cycles after the signal": """
        [B------:R-:W0:-:S02] LDS R40, [R52]
        [B0-----:R-:W-:-:S05] IADD3 R40, R40, R4, RZ""",
    "a result of MUFU one cycle after the signal": """
        [B------:R-:W0:-:S01] MUFU.RCP R40, R4
        [B0-----:R-:W-:-:S05] IADD3 R40, R40, R4, RZ""",
    "LDS returns before a younger LDS": """
        [B------:R-:W-:-:S02] LDS R40, [R52]
        [B------:R-:W0:-:S02] LDS R41, [R61]
        [B0-----:R-:W-:-:S05] IADD3 R40, R40, R41, RZ""",
    "LDS returns before a younger SHFL": """
        [B------:R-:W-:-:S02] LDS R40, [R52]
        [B------:R-:W0:-:S02] SHFL.IDX PT, R41, R4, RZ, 0x1f
        [B0-----:R-:W-:-:S05] IADD3 R40, R40, R41, RZ""",
    "SHFL returns before a younger LDS": """
        [B------:R-:W-:-:S02] SHFL.IDX PT, R41, R4, RZ, 0x1f
        [B------:R-:W0:-:S02] LDS R40, [R61]
        [B0-----:R-:W-:-:S05] IADD3 R40, R40, R41, RZ""",
    "LDS returns before a younger LDSM": """
        [B------:R-:W-:-:S02] LDS R40, [R52]
        [B------:R-:W0:-:S02] LDSM.16.M88 R41, [R53]
        [B0-----:R-:W-:-:S05] IADD3 R40, R40, R41, RZ""",
    "ATOMS returns before a younger LDS": """
        [B------:R-:W-:-:S02] ATOMS.OR R40, [R52], RZ
        [B------:R-:W0:-:S02] LDS R41, [R61]
        [B0-----:R-:W-:-:S05] IADD3 R40, R40, R41, RZ""",
    "MUFU returns before a younger POPC": """
        [B------:R-:W-:-:S02] MUFU.RCP R40, R4
        [B------:R-:W0:-:S02] POPC R41, R5
        [B0-----:R-:W-:-:S05] IADD3 R40, R40, R41, RZ""",
    "F2F.F64 returns before a younger MUFU": """
        [B------:R-:W-:-:S02] F2F.F64.F32 R40, R4
        [B------:R-:W0:-:S02] MUFU.RCP R42, R5
        [B0-----:R-:W-:-:S05] IADD3 R40, R40, R41, R42""",
    "STS has read before a younger LDS returns": """
        [B------:R-:W-:-:S02] STS [R52], R32
        [B------:R-:W0:-:S02] LDS R41, [R61]
        [B0-----:R-:W-:-:S05] MOV R32, R4
        [B------:R-:W0:-:S02] LDS R40, [R52]
        [B0-----:R-:W-:-:S05] IADD3 R40, R40, R41, RZ""",
    "STS has read before a younger LDS overwrites": """
        [B------:R-:W-:-:S02] STS [R52], R32
        [B------:R-:W0:-:S02] LDS R32, [R61]
        [B0-----:R-:W0:-:S02] LDS R40, [R52]
        [B0-----:R-:W-:-:S05] IADD3 R40, R40, R32, RZ""",
    "STG has read before a younger LDS returns": """
        [B------:R-:W-:-:S02] STG.E desc[UR4][R54.64], R32
        [B------:R-:W0:-:S02] LDS R41, [R61]
        [B0-----:R-:W-:-:S05] MOV R32, R4
        [B------:R-:W0:-:S02] LDG.E R40, desc[UR4][R54.64]
        [B0-----:R-:W-:-:S05] IADD3 R40, R40, R41, RZ""",
    "STS has read after BAR": """
        [B------:R-:W-:-:S02] STS [R52], R32
        [B------:R-:W-:-:S06] BAR.SYNC 0x0
        [B------:R-:W-:-:S05] MOV R32, R4
        [B------:R-:W0:-:S02] LDS R40, [R52]
        [B0-----:R-:W-:-:S05] MOV R41, RZ""",
    "a register that was kept for reuse and then rewritten has its new value": """
        [B------:R-:W-:-:S05] FFMA R40, R32.reuse, R5, R6
        [B------:R-:W-:-:S05] MOV R32, R4
        [B------:R-:W-:-:S05] FFMA R41, R32, R5, R6""",
    "branch with stall 1": """
        [B------:R-:W-:-:S05] MOV R40, R4
        [B------:R-:W-:-:S01] BRA .+0x20
        [B------:R-:W-:-:S05] MOV R40, R5
        [B------:R-:W-:-:S05] MOV R41, RZ""",
}
# fmt: on

PATIENCE = 200


class Rule(NamedTuple):
    """One sequence."""

    what: str
    holds: bool
    """The results are those of the same instructions far apart; where the text of the rule says so, the rule holds."""


def measure(worker: Worker) -> list[Rule]:
    """Every sequence, tight and patient. Raises LaunchError."""
    body: list[Instruction] = []
    for slot, text in enumerate(SEQUENCES.values()):
        tight = [parse_instruction(line.strip(), line) for line in text.strip().splitlines()]
        for patient in (False, True):
            lines = [i for line in tight for i in ([line, *pause(PATIENCE)] if patient and line.mnemonic != "BRA" else [line])]
            body += [*repeat(4, [*_setup(), *lines, *pause(PATIENCE), sass("NOP", 2, wait=[0])]), *store(2 * slot + patient)]
    results = run(worker, body, 2 * len(SEQUENCES))
    return [Rule(what, bool((results[2 * i] == results[2 * i + 1]).all())) for i, what in enumerate(SEQUENCES)]


def _setup() -> list[Instruction]:
    fresh = [f"MOV R{40 + k}, RZ" for k in range(4)]
    addresses = ["IMAD.SHL.U32 R52, R0, 0x80, RZ", "LOP3.LUT R52, R52, 0xfff, RZ, 0xc0, !PT", "IMAD.SHL.U32 R53, R0, 0x10, RZ"]
    return [*[sass(text, 12) for text in [*fresh, *addresses, "MOV R32, R28", "MOV R54, R56", "MOV R55, R57"]], *pause(60)]
