"""How far apart two dependent instructions must be: every distance is tried, and the results are compared with those of a long one.

A pair is a first and a second instruction that touch the same register. For RAW the second reads what the first writes (the register
held something else before); for WAW it writes it too, and must win; for WAR the first reads what the second overwrites. The smallest
distance from which on all results are right is what the hardware needs, with nothing else to hide it: one warp a scheduler.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from hopper.kernel import pause, repeat, run, sass, store
from numpy.typing import NDArray

from sassir.asm.instruction import Instruction
from sassir.gpu.worker import Worker

# The register that both touch is R32 … R35, P0, UR8 or UP0. R40 … R43 is what is compared. `@` is the instruction's own scoreboard.
# fmt: off
WRITERS = """
# row       | limit | before                                  | instruction
R.alu       | 12    | MOV R32, R28                            | LOP3.LUT R32, R4, R5, R6, 0x96, !PT
R.alu.b     | 12    | MOV R32, R28                            | SEL R32, R4, R5, PT
R.disp64    | 16    | MOV R32, R28                            | CS2R R32, SRZ
R.fma       | 12    | MOV R32, R28                            | FFMA R32, R4, R5, R6
R.fma       | 12    | MOV R32, R28                            | IMAD R32, R4, R5, R6
R.wide.lo   | 12    | MOV R32, R28                            | IMAD.WIDE.U32 R32, R4, R5, R6
R.wide.hi   | 12    | MOV R33, R28                            | IMAD.WIDE.U32 R32, R4, R5, R6
R.fp16      | 12    | MOV R32, R28                            | HFMA2 R32, R4, R5, R6
R.fp16.alu  | 12    | MOV R32, R28                            | HMNMX2 R32, R4, R5, PT
R.fp16.f32  | 12    | MOV R32, R28                            | HADD2.F32 R32, -RZ, R4.H0_H0
R.hfma2.mma | 16    | MOV R32, R28                            | HFMA2.MMA R32, R4, R5, R6
R.fp64      | 20    | MOV R32, R28                            | DFMA R32, R4, R6, R8
R.hmma.1    | 36    | MOV R32, R28                            | HMMA.1688.F32 R32, R4, R6, R8
R.hmma.2    | 44    | MOV R32, R28                            | HMMA.16816.F32 R32, R4, R8, R12
R.imma.1    | 36    | MOV R32, R28                            | IMMA.16816.S8.S8 R32, R4.ROW, R6.COL, R8
R.imma.2    | 44    | MOV R32, R28                            | IMMA.16832.S8.S8 R32, R4.ROW, R8.COL, R12
P.alu       | 20    | LOP3.LUT P0, RZ, R4, RZ, RZ, 0xc0, !PT  | LOP3.LUT P0, RZ, R4, R4, RZ, 0xc0, !PT
P.alu.b     | 20    | ISETP.GE.AND P0, PT, R4, R5, PT         | ISETP.LT.AND P0, PT, R4, R5, PT
P.fma       | 20    | ISETP.NE.AND P0, PT, R4, R4, PT         | IMAD.WIDE.U32 R44, P0, R46, R46, R46
P.fp16      | 20    | ISETP.NE.AND P0, PT, R4, R4, PT         | HSETP2.GT.AND P0, P1, R4, RZ, PT
P.fp64      | 24    | DSETP.GEU.AND P0, PT, R4, R6, PT        | DSETP.LT.AND P0, PT, R4, R6, PT
UR.udp      | 16    | UMOV UR8, 0xc8                          | UIADD3 UR8, UR12, UR13, URZ
UR.umov     | 12    | UMOV UR8, 0xc8                          | UMOV UR8, 0xc0
UR.uldc     | 16    | UMOV UR8, 0xc8                          | ULDC UR8, c[0x0][0x22c]
UR.r2ur     | 20    | UMOV UR8, 0xc8                          | R2UR UR8, R47
UP.udp      | 20    | UISETP.GE.AND UP0, UPT, UR12, UR13, UPT | UISETP.LT.AND UP0, UPT, UR12, UR13, UPT
"""

READERS = """
# column    | instruction
R.alu       | LOP3.LUT R40, R32, R20, R21, 0x96, !PT
R.alu.b     | SEL R40, R32, RZ, PT
R.fma       | IMAD R40, R32, R20, R21
R.fma       | FFMA R40, R32, R20, R21
R.wide      | IMAD.WIDE.U32 R40, R32, R20, R22
R.wide.hi   | IMAD.WIDE.U32 R40, R20, R21, R32
R.fp16      | HADD2 R40, R32, R20
R.fp16.alu  | HMNMX2 R40, R32, RZ, !PT
R.fp16.f32  | HADD2.F32 R40, -RZ, R32.H0_H0
R.hfma2.mma | HFMA2.MMA R40, R32, R20, R21
R.fp64      | DADD R40, R32, R20
R.mma.1     | HMMA.1688.F32 R40, R32, R20, RZ
R.mma.2     | HMMA.16816.F32 R40, R32, R20, RZ
R.mma.2     | HMMA.16816.F32 R40, R20, R24, R32
R.late      | @BREV R40, R32
R.memory    | @SHFL.IDX PT, R40, R32, RZ, 0x1f
P.alu       | IADD3.X R40, R20, R21, RZ, P0, !PT
P.alu.b     | SEL R40, R20, R21, P0
P.fma       | IMAD.X R40, R20, 0x1, R21, P0
P.guard     | @P0 MOV R40, R20
P.guard     | @P0 FFMA R40, R20, R21, R22
P.guard     | @P0 @LDS R40, [R61]
P.guard     | VOTE.ANY R40, PT, P0
P.guard     | @!P0 BRA .+0x20; MOV R40, R20
UR.vector   | IADD3 R40, R20, UR8, RZ
UR.vector   | IMAD R40, R20, UR8, R21
UR.late     | @LDS R40, [UR8]
UR.late     | @BREV R40, UR8
UR.udp      | UIADD3 UR16, UR8, UR12, URZ; MOV R40, UR16
UR.umov     | UMOV UR16, UR8; MOV R40, UR16
UR.uldc     | ULDC UR16, c[0x0][UR8+0x150]; MOV R40, UR16
UP.udp      | USEL UR16, UR12, UR13, UP0; MOV R40, UR16
UP.guard    | @UP0 UMOV UR16, UR12; MOV R40, UR16
UP.vector   | PLOP3.LUT P0, PT, PT, PT, UP0, 0x80, 0x0; SEL R40, R20, R21, P0
"""

OVERWRITERS = """
# row       | instruction
R.alu       | LOP3.LUT R32, R20, R21, R22, 0x96, !PT
R.alu.b     | SEL R32, R20, R21, PT
R.fma       | FFMA R32, R20, R21, R22
R.fp16      | HFMA2 R32, R20, R21, R22
R.late      | @BREV R32, R20
R.late      | @LDS R32, [R61]
"""

READ_AND_KEEP = """
# column    | limit | instruction
R.alu       | 4     | LOP3.LUT R40, R32, R20, R21, 0x96, !PT
R.fma       | 4     | FFMA R40, R32, R20, R21
R.wide      | 6     | IMAD.WIDE.U32 R40, R32, R20, R22
R.wide.hi   | 6     | IMAD.WIDE.U32 R40, R20, R21, R32
R.fp16      | 4     | HFMA2 R40, R32, R20, R21
R.hfma2.mma | 8     | HFMA2.MMA R40, R32, R20, R21
R.fp64      | 12    | DADD R40, R32, R20
R.mma.1     | 14    | HMMA.1688.F32 R40, R32, R20, R24
R.mma.2     | 20    | HMMA.16816.F32 R40, R32, R20, R24
R.mma.2     | 20    | HMMA.16816.F32 R40, R20, R32, R24
R.mma.2     | 20    | HMMA.16816.F32 R40, R20, R24, R32
R.late      | 20    | @BREV R40, R32
R.memory    | 20    | @SHFL.IDX PT, R40, R32, RZ, 0x1f
"""
# fmt: on

WIDE = ("R.fp64", "R.wide.hi", "R.mma.1", "R.mma.2")
"""Readers of more than one register of the first instruction's result."""
ONE_REGISTER = ("R.alu", "R.alu.b", "R.fma", "R.fp16", "R.fp16.alu", "R.fp16.f32", "R.hfma2.mma")
"""Writers of one register."""
LONG = 60
"""A distance that is enough for everything."""
ROUNDS = 4


class Pair(NamedTuple):
    """Two instructions, and what is around them."""

    kind: str
    first: str
    second: str
    """Lines of the latency matrices."""
    limit: int
    """The largest distance to try."""
    before: str
    """Gives the register the value that must not be seen."""
    one: str
    two: str
    result: str
    """The register pair to compare."""


def _rows(table: str) -> Iterator[list[str]]:
    for line in table.strip().splitlines():
        if not line.startswith("#"):
            yield [cell.strip() for cell in line.split("|")]


def pairs(kind: str) -> list[Pair]:
    """All pairs of one kind of dependence."""
    if kind == "raw":
        return [_half(Pair("raw", row, column, int(limit), before, one, two, "R40")) for row, limit, before, one in _rows(WRITERS)
                for column, two in _rows(READERS) if row.partition(".")[0] == column.partition(".")[0]
                and not (row == "R.wide.lo" and column in WIDE)]  # fmt: skip
    if kind == "waw":
        return [_half(Pair("waw", row, second, int(limit), before, one, two, "R32")) for row, limit, before, one in _rows(WRITERS)
                for second, two in _rows(OVERWRITERS) if row.startswith("R.")]  # fmt: skip
    return [Pair("war", column, row, int(limit), "MOV R32, R28", one, two, "R40") for column, limit, one in _rows(READ_AND_KEEP)
            for row, two in _rows(OVERWRITERS)]  # fmt: skip


def _half(pair: Pair) -> Pair:
    """The high half: of the result of IMAD.WIDE, unless the reader takes both anyway; of its addend, unless the writer gives both."""
    if pair.first == "R.wide.hi" and pair.second not in WIDE:
        return pair._replace(two=pair.two.replace("R32", "R33"))
    if pair.second == "R.wide.hi" and pair.first in ONE_REGISTER:
        return pair._replace(before=pair.before.replace("R32", "R33"), one=pair.one.replace("R32", "R33"))
    return pair


def measure(worker: Worker, chosen: Sequence[Pair]) -> list[dict[str, Any]]:
    """The pairs, and the `distance` that each needs: the smallest from which on all results are right; None if even the wrong
    value gives the right result. Raises LaunchError."""
    body: list[Instruction] = []
    slots = 0
    for pair in chosen:
        for distance in [*range(1, pair.limit + 1), LONG, None]:
            body += [*repeat(ROUNDS, _trial(pair, distance)), *store(slots, pair.result)]
            slots += 1
    results = run(worker, body, slots)
    found: list[dict[str, Any]] = []
    start = 0
    for pair in chosen:
        found.append(pair._asdict() | {"distance": _smallest(results[start : start + pair.limit + 2])})
        start += pair.limit + 2
    return found


def _smallest(results: NDArray[Any]) -> int | None:
    """The smallest distance of one pair; the last two results are with a long one, and with the wrong value."""
    *tried, right, wrong = list(results)
    if (right == wrong).all():
        return None
    good = [bool((trial == right).all()) for trial in tried]
    return max([distance for distance, ok in enumerate(good, 1) if not ok], default=0) + 1


def _trial(pair: Pair, distance: int | None) -> list[Instruction]:
    """The pair at a distance, or with the effect of the dependence violated (None)."""
    fresh = [sass(f"MOV R{40 + k}, RZ", 2) for k in range(4)]
    state = [sass(f"MOV R{32 + k}, R{24 + k}", 2) for k in range(4)] if pair.first.startswith("R.") else []
    small = [sass("MOV R46, 0xfffffff0", 2), sass("MOV R47, 0xc0", 2), sass("UMOV UR16, 0x77", 2)]
    setup = [*fresh, *state, *small, sass(pair.before, 2), *pause(LONG)]
    if distance is None:
        order = {"raw": [pair.two], "waw": [pair.one], "war": [pair.two, pair.one]}[pair.kind]
        return [*setup, *[i for text in order for i in [*_code(text, 13, 15), *pause(LONG)]], *_settle()]
    return [*setup, *_code(pair.one, min(distance, 11), 15), *pause(distance - min(distance, 11)), *_code(pair.two, 13, 15), *_settle()]


def _code(text: str, stall: int, between: int) -> list[Instruction]:
    """The instructions of a table cell; `@` before one asks for its scoreboard, the last has the stall count."""
    parts = [part.strip() for part in text.split(";")]
    lines: list[Instruction] = []
    for i, part in enumerate(parts):
        guard, rest = part.split(" ", 1) if part.startswith(("@P", "@!P", "@UP")) else ["", part]
        write = 0 if rest.startswith("@") else None
        wait = [0] if lines and lines[-1].control.write is not None else []
        lines.append(sass(f"{guard} {rest.lstrip('@')}".strip(), stall if i == len(parts) - 1 else between, write=write, wait=wait))
    return lines


def _settle() -> list[Instruction]:
    return [*pause(LONG), sass("NOP", 2, wait=[0]), sass("NOP", 15)]


def all_pairs() -> Iterator[tuple[str, list[Pair]]]:
    """Every pair, in groups that fit into one kernel."""
    for kind in ("raw", "waw", "war"):
        every = pairs(kind)
        for start in range(0, len(every), 40):
            yield kind, every[start : start + 40]
