"""Registers read and written, by example: `text | written | read`; a group is first-last, implicit registers are in parentheses."""

from __future__ import annotations

import pytest

from sassir.asm.operand import register_file
from sassir.asm.parse import parse_instruction
from sassir.isa import Access, alignment, roles

EXAMPLES = """
FFMA.FTZ R0, R1, -R2, c[0x0][0x160]                            | R0              | R1 R2
FADD R0, |R1|, cx[UR4][0x8]                                    | R0              | R1 UR4-5
FFMA2 R4, R8.F32x2.HI_LO, R10.F32, R12.F32x2.HI_LO             | R4-5            | R8-9 R10 R12-13
IADD3 R0, P1, P2, R3, R4, R5                                   | R0 P1 P2        | R3 R4 R5
IADD3.X R0, R3, R4, R5, P1, P2                                 | R0              | R3 R4 R5 P1 P2
IMAD.WIDE R2, R4, 0x4, R6                                      | R2-3            | R4 R6-7
IMAD.HI.U32 R2, R4, R5, R6                                     | R2              | R4 R5 R6-7
ISETP.GE.AND P0, PT, R2, UR4, P3                               | P0 PT           | R2 UR4 P3
ISETP.GE.S64.AND P0, PT, R2, UR4, PT                           | P0 PT           | R2-3 UR4-5 PT
LOP3.LUT P0, R2, R3, R4, R5, 0x80, !PT                         | P0 R2           | R3 R4 R5 PT
LOP3.LUT R2, R3, R4, R5, 0x80, !PT                             | R2              | R3 R4 R5 PT
DFMA R0, R2, R4, UR6                                           | R0-1            | R2-3 R4-5 UR6-7
F2F.F32.F64 R0, R2                                             | R0              | R2-3
F2F.F64.F32 R0, R2                                             | R0-1            | R2
F2I.S64.F64.TRUNC R0, R2                                       | R0-1            | R2-3
I2F.F64.S64 R0, R2                                             | R0-1            | R2-3
I2F.U64 R0, R2                                                 | R0              | R2-3
MOV.64 R0, UR4                                                 | R0-1            | UR4-5
LDG.E R0, [R2]                                                 | R0              | R2-3
LDG.E R0, [R2.U32+UR4]                                         | R0              | R2 UR4-5
LDG.E.128 R4, desc[UR6][R2.64+0x10]                            | R4-7            | UR6-7 R2-3
LDG.E.ENL2.256 R12, R8, desc[UR6][R2.64]                       | R12-15 R8-11    | UR6-7 R2-3
LDG.E.ENL2.256 R12, R8, desc[UR6][R2.64], 0x17                 | R12 R8-10       | UR6-7 R2-3
STG.E.64 desc[UR6][R2.64], R4                                  |                 | UR6-7 R2-3 R4-5
LDS.128 R4, [R2.X16+UR5]                                       | R4-7            | R2 UR5
LDSM.16.MT88.4 R4, [R2]                                        | R4-7            | R2
LDGSTS.E.BYPASS.128 [R0], desc[UR4][R2.64], P3                 |                 | R0 UR4-5 R2-3 P3
ATOMG.E.CAS.64.STRONG.GPU PT, R2, desc[UR4][R6.64], R8, R10    | PT R2-3         | UR4-5 R6-7 R8-9 R10-11
ATOMS.ADD R0, [R2], R3                                         | R0              | R2 R3
ATOMS.CAST.SPIN P0, [R2], R4, R5                               | P0              | R2 R4 R5
LDC.64 R2, c[0x0][R4+0x10]                                     | R2-3            | R4
LDCU.128 UR4, c[0x0][0x380]                                    | UR4-7           |
HMMA.16816.F32 R4, R8, R12, R16                                | R4-7            | R8-11 R12-13 R16-19
HMMA.16816.F16 R4, R8, R12, RZ                                 | R4-5            | R8-11 R12-13 RZ*2   
HMMA.1688.F32.TF32 R4, R8, R12, R16                            | R4-7            | R8-11 R12-13 R16-19
HMMA.SP.16832.F32 R4, R8, R12, R16, R20, 0x0                   | R4-7            | R8-11 R12-15 R16-19 R20
IMMA.16832.S8.S8 R4, R8.ROW, R12.COL, R16                      | R4-7            | R8-11 R12-13 R16-19
IMMA.16864.S4.S4 R4, R8.ROW, R12.COL, R16                      | R4-7            | R8-11 R12-13 R16-19
DMMA.8x8x4 R4, R8, R10, R12                                    | R4-7            | R8-9 R10-11 R12-15
HGMMA.64x64x16.F32 R24, gdesc[UR8].tnspB, R24, !UPT            | R24-55          | UR8-11 R24-55 UPT
HGMMA.64x16x16.F32 R24, R4, gdesc[UR8], R24, gsb0              | R24-31          | R4-7 UR8-11 R24-31
UTCHMMA.2CTA gdesc[UR4], gdesc[UR6], tmem[UR8], tmem[UR10], idesc[UR11], UR16, UP0 | | UR4-5 UR6-7 UR8 UR10 UR11 UR16-23 UP0
LDTM.16dp128bit.x4 R4, tmem[UR4]                               | R4-11           | UR4
UTMALDG.2D [UR8], [UR4]                                        |                 | UR8-11 UR4-5
UTMASTG.2D [UR4], [UR8]                                        |                 | UR4-6 UR8-9
UBLKCP.S.G [UR4], [UR6], UR8                                   |                 | UR4-5 UR6-7 UR8
SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R2+UR4], R3                | P0              | R2 UR4 R3
TLD4.B R6, R2, R4, R12, UR4, 0x0, 2D                           | R6-7 R2-3       | R4-5 R12 UR4-5
TLD4.B.B.AOFFI R6, R2, R4, R12, 2D                             | R6-7 R2-3       | R4-5 R12-13
TEX.UAI.LL R6, R2, R4, R11, UR4, UR8, 0x0, ARRAY_2D            | R6-7 R2-3       | R4-5 R11 UR4-5 UR8
SUST.P.2D_ARRAY.UAI [R8], R12, UR4, UR6, URZ                   |                 | R8-9 R12-15 UR4 UR6 URZ
UTCQMMA gdesc[UR4], gdesc[UR6], tmem[UR8], tmem[UR10], idesc[UR11], tmem[UR16], UP0 | | UR4-5 UR6-7 UR8 UR10 UR11 UR16-17 UP0
UTCHMMA.WS gdesc[UR4], gdesc[UR6], tmem[UR8], tmem[UR10], idesc[UR11], UR16, UP0 | | UR4-5 UR6-7 UR8 UR10 UR11 UR16-17 UP0
TEX.LL R6, R2, R4, R11, UR4, 0x0, 3D                           | R6-7 R2-3       | R4-6 R11 UR4-5
TEX.SCR.LL R14, R2, R8, R10, 0x0, 0x58, 3D                     | R14-15 R2-3     | R8-9 R10-11
TLD.LZ RZ, R23, R0, UR4, 0x0, 1D, 0x1                          | RZ R23          | R0 UR4-5
TXQ RZ, R5, R6, TEX_HEADER_DIMENSION, UR4, 0x0, 0x2            | RZ R5           | R6 UR4-5
TXQ.B RZ, R11, R10, TEX_HEADER_DIMENSION, 0x1                  | RZ R11          | R10-11
TEX.SCR.B.LL R14, R12, R14, R12, 2D                            | R14-15 R12-13   | R14-15 R12-13
SUST.D.BA.3D.128.TRAP [R12], R8, UR4, 0x0                      |                 | R12-14 R8-11 UR4
SHFL.IDX PT, R0, R1, R2, 0x1f                                  | PT R0           | R1 R2
VOTE.ANY R0, PT, P1                                            | R0 PT           | P1
VOTE.ALL P0, P1                                                | P0              | P1
MATCH.ALL.U64 P0, R0, R2                                       | P0 R0           | R2-3
R2P PR, R0, 0x5                                                | (P0 P2)         | R0
R2P PR, R0, R1                                                 | (P0 P1 P2 P3 P4 P5 P6) | R0 R1 (P0 P1 P2 P3 P4 P5 P6)
P2R R0, PR, R1, 0x7f                                           | R0              | R1 (P0 P1 P2 P3 P4 P5 P6)
BSSY P1, B0, .+0x40                                            | B0              | P1
BSYNC B0                                                       |                 | B0
BREAK P1, B0                                                   | B0              | P1 B0
BMOV.32.CLEAR R4, B0                                           | R4 B0           | B0
BRX R2 -0x1230                                                 |                 | R2-3
RET.REL.NODEC R20 -0x40                                        |                 | R20-21
BRA.DIV UR4, .+0x40                                            |                 | UR4
"""


def groups(text: str, accesses: tuple[Access, ...], implicit: tuple[str, ...]) -> str:
    """Accesses as the examples write them."""
    instruction = parse_instruction(text)
    words: list[str] = []
    for access in accesses:
        first = instruction.operands[access.operand].registers[access.hole]
        file, number = register_file(first), first[len(register_file(first)) :]
        if access.width == 1:
            words.append(first)
        elif number.isdigit():
            words.append(f"{first}-{int(number) + access.width - 1}")
        else:
            words.append(f"{file}Z*{access.width}")
    return " ".join([*words, *([f"({' '.join(implicit)})"] if implicit else [])])


@pytest.mark.parametrize("example", EXAMPLES.strip().splitlines(), ids=lambda line: line.partition("|")[0].strip())
def test_roles(example: str):
    text, written, read = (column.strip() for column in example.rsplit("|", 2))
    found = roles(parse_instruction(text))
    assert found is not None
    assert groups(text, found.writes, found.implicit_writes) == written
    assert groups(text, found.reads, found.implicit_reads) == read


def test_roles_do_not_depend_on_register_numbers_reuse_or_guard():
    assert roles(parse_instruction("@P3 IMAD.WIDE R8, R9.reuse, 0x4, RZ")) == roles(parse_instruction("IMAD.WIDE R2, R4, 0x4, R6"))


@pytest.mark.parametrize("text", ["FROB R0, R1", "HMMA R0, R4, R8, R12", "TEX R0, R2, R4, R6"])
def test_an_unknown_instruction_or_form_has_no_roles(text: str):
    assert roles(parse_instruction(text)) is None


def test_groups_start_at_powers_of_two():
    assert [alignment(width) for width in (1, 2, 3, 4, 8, 32)] == [1, 2, 4, 4, 8, 8]
