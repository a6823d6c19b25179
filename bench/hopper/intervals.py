"""Cycles by the clock: how often a pipe takes an instruction, and how long results take that have no fixed latency."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from hopper.kernel import MOST_THREADS, THREADS, pause, repeat, run, sass, store
from numpy.typing import NDArray

from sassir.asm.instruction import Instruction
from sassir.gpu.worker import Worker

# fmt: off
ISSUE = """
# what                        | instruction, independent of the one before
FFMA                          | FFMA R40, R4, R5, R6
FADD                          | FADD R40, R4, R5
IMAD                          | IMAD R40, R4, R5, R6
IMAD.WIDE                     | IMAD.WIDE.U32 R40, R4, R5, R6
IADD3                         | IADD3 R40, R4, R5, R6
LOP3                          | LOP3.LUT R40, R4, R5, R6, 0x96, !PT
SHF                           | SHF.L.U32.HI R40, R4, R5, R6
PRMT                          | PRMT R40, R4, R5, R6
SEL                           | SEL R40, R4, R5, PT
FSETP                         | FSETP.GT.AND P1, PT, R4, R5, PT
MOV                           | MOV R40, R4
HFMA2                         | HFMA2 R40, R4, R5, R6
HFMA2.MMA                     | HFMA2.MMA R40, R4, R5, R6
HADD2.F32                     | HADD2.F32 R40, -RZ, R4.H0_H0
HMNMX2                        | HMNMX2 R40, R4, R5, PT
F2FP                          | F2FP.F16.F32.PACK_AB R40, R4, R5
DFMA                          | DFMA R40, R4, R6, R8
DADD                          | DADD R40, R4, R6
HMMA.1688.F32                 | HMMA.1688.F32 R40, R4, R6, R8
HMMA.16816.F32                | HMMA.16816.F32 R40, R4, R8, R12
IMMA.16816                    | IMMA.16816.S8.S8 R40, R4.ROW, R6.COL, R8
IMMA.16832                    | IMMA.16832.S8.S8 R40, R4.ROW, R8.COL, R12
MUFU                          | MUFU.RCP R40, R4
POPC                          | POPC R40, R4
F2I                           | F2I.TRUNC.NTZ R40, R4
I2F                           | I2F.S64 R40, R4
SHFL                          | SHFL.IDX PT, R40, R4, RZ, 0x1f
LDS                           | LDS R40, [R61]
LDS.64                        | LDS.64 R40, [R51]
LDS.128                       | LDS.128 R40, [R53]
STS                           | STS [R61], R4
LDSM.4                        | LDSM.16.M88.4 R40, [R53]
LDG, L1                       | LDG.E R40, desc[UR4][R54.64]
LDC                           | LDC R40, c[0x0][0x228]
VOTE                          | VOTE.ANY R40, PT, P1
R2UR                          | R2UR UR8, R4
UIADD3                        | UIADD3 UR8, UR12, UR13, URZ
ULDC                          | ULDC UR8, c[0x0][0x228]
NOP                           | NOP
BRA, taken                    | BRA .+0x10
DEPBAR                        | DEPBAR.LE SB0, 0x0
BSSY and BSYNC                | BSSY B0, .+0x10; BSYNC B0
"""

OPERANDS = """
# what                        | instruction
two banks                     | FFMA R40, R4, R5, R6
three registers of one bank   | FFMA R40, R4, R6, R8
the other bank                | FFMA R40, R5, R7, R9
one register three times      | FFMA R40, R4, R4, R4
one bank, first reused        | FFMA R40, R4.reuse, R6, R8
one bank, two reused          | FFMA R40, R4.reuse, R6.reuse, R8
one bank, third reused        | FFMA R40, R4, R6, R8.reuse
"""

LATENCY = """
# what                        | instruction, which waits for the one before
MUFU.RCP                      | MUFU.RCP R32, R32
MUFU.EX2                      | MUFU.EX2 R32, R32
POPC                          | POPC R32, R32
FLO                           | FLO.U32 R32, R32
BREV                          | BREV R32, R32
F2I                           | F2I.TRUNC.NTZ R32, R32
I2F.S64                       | I2F.S64 R32, R32
F2F.F64.F32                   | F2F.F64.F32 R32, R32
SHFL                          | SHFL.IDX PT, R32, R32, RZ, 0x1f
LDS                           | LDS R32, [R32+0x3000]
LDS.64                        | LDS.64 R32, [R32+0x3000]
LDS.128                       | LDS.128 R32, [R32+0x3000]
LDS, 32 addresses of one bank | LDS R33, [R52]
LDSM.4                        | LDSM.16.M88.4 R32, [R53]
ATOMS.ADD                     | ATOMS.ADD R32, [R32+0x3000], RZ
STS and LDS                   | STS [R61], R32; LDS R32, [R61]
LDC                           | LDC R32, c[0x0][R32+0x228]
LDG, L1                       | LDG.E.64 R32, desc[UR4][R32.64]
LDG, L2                       | LDG.E.64.STRONG.GPU R32, desc[UR4][R32.64]
ATOMG.ADD                     | ATOMG.E.ADD.STRONG.GPU PT, R33, desc[UR4][R56.64], RZ
S2R                           | S2R R32, SR_TID.X
S2UR                          | S2UR UR8, SR_CTAID.X
REDUX                         | REDUX.SUM UR8, R32
MATCH                         | MATCH.ANY R33, R32
DMMA                          | DMMA.8x8x4 R32, R4, R6, R32
MEMBAR.SC.GPU                 | MEMBAR.SC.GPU
BAR, 4 warps                  | BAR.SYNC 0x0
"""
# fmt: on

SETUP = [
    *["MOV R32, RZ", "MOV R33, RZ", "MOV R41, RZ", "MOV R54, R56", "MOV R55, R57"],
    *["IMAD.SHL.U32 R51, R0, 0x8, RZ", "IMAD.SHL.U32 R52, R0, 0x80, RZ", "LOP3.LUT R52, R52, 0xfff, RZ, 0xc0, !PT"],
    *["IMAD.SHL.U32 R53, R0, 0x10, RZ", "UMOV UR8, 0x80300", "UMOV UR9, 0x8", "UMOV UR10, 0x80300", "UMOV UR11, 0x8"],
]
"""Addresses 8, 128 and 16 bytes apart; descriptors of two matrices at 0x3000 in shared memory."""
COPIES = 32
ROUNDS = 3
SCHEDULERS, LANES = 4, 32
POINTER = ("LDG, L1", "LDG, L2")
"""What follows a pointer in memory that points to itself."""


class Interval(NamedTuple):
    """One measurement."""

    group: str
    what: str
    instruction: str
    one: float
    """Cycles from one to the next, one warp a scheduler."""
    four: float | None
    """The same divided by four, with four warps a scheduler: cycles the pipe is busy. None where that is not asked."""


def _rows(table: str) -> Iterator[tuple[str, str]]:
    for line in table.strip().splitlines():
        if not line.startswith("#"):
            what, instruction = line.split("|", 1)
            yield what.strip(), instruction.strip()


def measure(worker: Worker, group: str) -> list[Interval]:
    """All measurements of a group: issue, operands, latency, drain, groups, memory. Raises LaunchError."""
    rows, make = GROUPS[group]
    body: list[Instruction] = []
    together = [sass("BAR.SYNC 0x0", 6), *pause(30)]
    for slot, (what, text) in enumerate([("nothing", ""), *rows]):
        body += [*_setup(what), *repeat(ROUNDS, [*together, *_timed(make(text) if text else []), *pause(30)]), *store(slot, "R44")]
    memory = COLD_BYTES if group == "memory" else 4096
    alone = run(worker, body, len(rows) + 1, THREADS, memory)
    nothing, *one = [_cycles(slot) for slot in alone]
    four: list[float | None] = [None] * len(rows)
    if group in ("issue", "operands"):
        four = [round((_cycles(slot) - nothing) / COPIES / 4, 2) for slot in run(worker, body, len(rows) + 1, MOST_THREADS, memory)[1:]]
    return [Interval(group, what, text, round((one[i] - nothing) / COPIES, 2), four[i]) for i, (what, text) in enumerate(rows)]


def _cycles(slot: NDArray[Any]) -> float:
    """Cycles from when the first warp of a scheduler looks at the clock to when its last one looks again: the median of the schedulers."""
    start, end = (slot - slot[0, 0]).astype(np.int32).T.reshape(2, -1, SCHEDULERS, LANES)
    return float(np.median(end.max(axis=(0, 2)) - start.min(axis=(0, 2))))


def _setup(what: str) -> list[Instruction]:
    """Registers that only these measurements need."""
    lines = [sass(text, 12) for text in SETUP]
    if what in POINTER:
        lines += [sass("STG.E.64 desc[UR4][R56.64], R56", 2, read=0), sass("MEMBAR.SC.GPU", 6, wait=[0])]
        lines += [sass("MOV R32, R56", 5), sass("MOV R33, R57", 5)]
    return lines


def _timed(lines: list[Instruction]) -> list[Instruction]:
    """The lines between two looks at the clock, R44 and R45."""
    return [sass("CS2R.32 R44, SR_CLOCKLO", 15), *lines, sass("CS2R.32 R45, SR_CLOCKLO", 15, wait=[0])]


def _issue(text: str) -> list[Instruction]:
    """Copies that are issued as fast as the pipe takes them. Loads share a scoreboard; only the last is waited for."""
    lines: list[Instruction] = []
    for _ in range(COPIES):
        for part in text.split("; "):
            lines.append(sass(part, _stall(part), write=0 if _is_late(part) else None, read=0 if part.startswith("STS") else None))
    return lines


def _latency(text: str) -> list[Instruction]:
    """Copies of which each waits for the one before."""
    lines: list[Instruction] = []
    for _ in range(COPIES):
        for part in text.split("; "):
            quiet = part.startswith(("STS", "BAR", "MEMBAR"))
            lines.append(sass(part, max(2, _stall(part)), write=None if quiet else 0, read=0 if part.startswith("STS") else None, wait=[0]))
    return lines


def _drain(text: str) -> list[Instruction]:
    """Copies with stall 0, which waits until the warp has nothing under way."""
    return [sass(text, 0, write=0 if _is_late(text) else None) for _ in range(COPIES)]


def _groups(text: str) -> list[Instruction]:
    """Matrix products of a warpgroup: text is how many go together, and the product."""
    count, product = text.split(" ", 1)
    products = [*[sass(product, 2)] * (int(count) - 1), sass(f"{product}, gsb0", 2)]
    return [sass("WARPGROUP.ARRIVE", 6), *products, sass("WARPGROUP.DEPBAR.LE gsb0, 0x0", 2)] * COPIES


def _cold(text: str) -> list[Instruction]:
    """Loads from memory that was never touched, each at an address that depends on the one before."""
    step = [sass("IADD3 R54, P0, R54, 0x10080, R32", 6, wait=[0]), sass("IADD3.X R55, R55, RZ, RZ, P0, !PT", 6)]
    return [line for _ in range(COPIES) for line in [sass(text, 2, write=0), *step]]


def _is_late(text: str) -> bool:
    return text.split(".")[0].split(" ")[0] in ("MUFU", "POPC", "F2I", "I2F", "SHFL", "LDS", "LDSM", "LDG", "LDC")


def _stall(text: str) -> int:
    """The smallest stall count of the instruction itself."""
    name = text.split(".")[0].split(" ")[0]
    return {"BRA": 5, "BSYNC": 5, "DEPBAR": 4, "BAR": 6, "MEMBAR": 6}.get(name, 1)


COLD_BYTES = 192 << 20
"""Zeroed memory whose beginning has left the L2 cache when its end has been written."""
DRAIN = [("NOP", "NOP"), ("FFMA", "FFMA R40, R4, R5, R6"), ("MUFU", "MUFU.RCP R40, R4"), ("LDS", "LDS R40, [R61]")]
PRODUCTS = [
    (f"64x{n}x16, {count} in a group", f"{count} HGMMA.64x{n}x16.F32 R64, gdesc[UR8], R64") for n in (8, 64, 128) for count in (1, 4)
]
GROUPS = {
    "issue": (list(_rows(ISSUE)), _issue),
    "operands": (list(_rows(OPERANDS)), _issue),
    "latency": (list(_rows(LATENCY)), _latency),
    "drain": (DRAIN, _drain),
    "groups": (PRODUCTS, _groups),
    "memory": ([("LDG, DRAM", "LDG.E R32, desc[UR4][R54.64]")], _cold),
}
