"""What an instruction may look like, and what the error says when it does not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sassir.asm import Control, Operand
from sassir.asm.parse import parse_instruction
from sassir.errors import ListingError

INSTRUCTIONS = """\
NOP
EXIT
@!P0 EXIT
@UP1 UMOV UR4, 0x1
@!UPT UIADD3 UR4, UPT, UPT, -UR4, URZ, URZ
S2R R5, SR_TID.X
CS2R R18, SRZ
S2UR UR5, SR_CgaCtaId
P2R R5, PR, RZ, 0x1
UP2UR UR4, UPR, UR8, 0xc
RPCMOV.32 R88, Rpc.HI
BMOV.32 THREAD_STATE_ENUM.0, 0x0
BMOV.32.PQUAD MACTIVE, c[0x19][0x4f24]
HADD2.F32 R21, -RZ, R12.reuse.H0_H0
HADD2 R38, |R35|.F32, -|RZ|.H0_H0
MUFU.LG2.F16 R4, -|R12.H1|
QFMA4.E5M2x4.E2M3x4.E5M2x4 R4, |R8|.N6420, -R12.B3, -|UR247.B2|
IADD3.X R2, PT, PT, RZ, ~R5.reuse, RZ, P0, !PT
IMAD.X R0, R0, RZ, ~c[0x8][-0x5294], !P1
IADD3 R2, R2, -c[0x0][0x18c], RZ
LDC R16, c[0x2][R18+0x18]
LDCU UR8, c[0x2][UR5]
ULDC.U8 UR17, c[0x14][UR34+-0x49af]
LDC.U8 R4, cx[UR8][R16]
LDCU.256 UR76, UR4, cx[UR8][UR224+-0x76a8], 0xdc
VABSDIFF.U32 R94, P1, R89, R48, cx[UR7][0xe480]
HFMA2 R4, R8, |R16|.H1_H1, -|cx[UR12] [0x0].F32|
HADD2.SAT R4, R8, |c[0x5] [-0x54b8].F32|
LDS.U R16, [0x220]
LDS R11, [R8+-0x210]
STS.64 [R13.X8+0x10], R2
STS.128 [R14+UR7+0x2000], R44
ATOMS.POPC.INC.32 RZ, [R7.X4+URZ+0x1000]
LDG.E R12, [R18.64+-0x4]
LDG.E.128.CONSTANT.SYS R8, [R6.64+UR4+-0x20]
LDG.E R8, desc[UR8][R2.64+UR4+-0xc]
STL.NA desc[UR16][R8+0x10], R12
HGMMA.64x64x16.F32 R24, gdesc[UR40].tnspA.tnspB, R24, !UPT, gsb0
UTCHMMA.WS gdesc[UR8].A_KEEP, gdesc[UR12].BUFFER1, tmem[UR16+-0x2c000000], tmem[-0x10], idesc[UR1], UR0, !UPT, 0x1
ALD.P R4, a[R8+-0x400], R12
IPA.PASS R0, P0, a[0x80]
TEX.SCR.LL RZ, R12, R20, R19, UR4, 0x0, ARRAY_2D, 0x1
TEX.EF P0, R0, R0, R0, R0, 0x0, 0x0, 3D, 0x0
SUST.D.BA.2D.STRONG.SM.TRAP [R20], R11, UR4, 0x0
DEPBAR.LE SB0, 0x0, {4,3,1}
DEPBAR {0}
FSWZADD.NDV R3, R25, R125, PNNPNPPP
I2IP.U4.S32.SAT R4, R8, 0xc, R16.24
LDSM.16.MT88.4 R116, [R15+UR28+-0xc060a]
F2FP.RELU.???8.E2M1 R80, R97, R118
SUST.D.1D.EF.U8.TRAP [???255], R118, 0x1e, 0x1cd
OUT.FINAL ???0, R0, ???0
FADD R14, R2, -1
FADD R14, R2, 0.5
FFMA R14, R11, R14, -0.12148627638816833496
HFMA2.MMA R3, -RZ, RZ, 0, 2.384185791015625e-07
FADD.FTZ R4, R5, -2.41795589992585980814e+38
FSETP.NEU.AND P2, PT, |R2|.reuse, +INF, PT
FSEL R13, R10, -INF, P0
FMUL R0, R0, +QNAN(0x7fc12345)
HADD2 R0, -SNAN(0xfc01), R1
F2FP.E5M2.F32.PACK_AB_MERGE_C R211, R189, R110, -6589647.H1
BRA .+0x40
BRA .-0x10
BRA.U !UP0, .+0x30
BSSY.RECONVERGENT B0, .+0x120
RET.REL.NODEC R20, .-0x1e0
BRX R16, -0x4c0
OPAQUE 0xfc0000000000000007918
__HIR0X1F0.WARP 0x2, R57
FFMA R1, R2, R3, R4 {name=0x1} {other=-0x2}
""".splitlines()


@pytest.mark.parametrize("text", INSTRUCTIONS)
def test_prints_as_it_was_written(text: str) -> None:
    assert parse_instruction(text).text == text


def test_parts() -> None:
    instruction = parse_instruction("[B0-----:R-:W2:Y:S04] @!P0 LDG.E.CONSTANT R4, desc[UR6][R2.64+0x10], !P1 {cache=0x3}")
    assert (instruction.mnemonic, instruction.modifiers) == ("LDG", ("E", "CONSTANT"))
    assert instruction.guard == Operand.of("!$", ("P0",))
    assert instruction.operands == (Operand.of("$", ("R4",)), Operand.of("desc[$][$.64+0x10]", ("UR6", "R2")), Operand.of("!$", ("P1",)))
    assert instruction.control == Control(4, True, 2, None, (0,))
    assert instruction.extra == (("cache", 3),)
    assert instruction.word is None


@pytest.mark.parametrize(
    ("nvidia", "ours"),
    [
        ("BRX R16 -0x4c0 ;", "BRX R16, -0x4c0"),
        ("RET.ABS.NODEC R20 0x0 ;", "RET.ABS.NODEC R20, 0x0"),
        ("NOP;", "NOP"),
        ("@PT NOP ;", "NOP"),
        ("FFMA R13, |R10|, R3, +INF  ;", "FFMA R13, |R10|, R3, +INF"),
        ('STL [R1], R0        (*"SpillRefill"*) ;', "STL [R1], R0"),
        ("MOV R1, R2 ; // a comment", "MOV R1, R2"),
    ],
)
def test_spellings_of_nvidia(nvidia: str, ours: str) -> None:
    assert parse_instruction(nvidia).text == ours


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("FFMA R1, R2 R3, R4", 13, "found 'R3,', expected ';' or ','"),
        ("FFMA R1,, R2", 9, "found ',', expected an operand"),
        ("FADD R1, |R2, R3", 10, "found '|R2,', expected an operand"),
        ("LDG R1, [R2 + 4]", 9, "found '[R2', expected an operand"),
        ("LDG R1, [R2.64", 9, "found '[R2.64', expected an operand"),
        ("MOV R1,", 8, "found the end of the text, expected an operand"),
        ("ffma R1, R2", 1, "found 'ffma', expected a mnemonic"),
        ("@P9 NOP", 1, "found '@P9', expected a mnemonic or a guard such as @!P0"),
        ("[B0:R-:W-:Y:S01] NOP", 1, "expected a mnemonic or a guard such as @!P0 or a control code such as [B------:R-:W-:-:S01]"),
        ("MOV R1, 0x1 {x=1}", 13, "found '{x=1}'"),
        ("", 1, "found the end of the text, expected a mnemonic"),
        ("BRA `(.L_1)", 1, "`(.L_1) names a place outside of this instruction; write the displacement, for example .+0x40"),
        ("MOV R1, 32@lo(f$x)", 1, "32@lo(f$x) names a place outside"),
    ],
)
def test_says_where_and_what(text: str, column: int, message: str) -> None:
    with pytest.raises(ListingError) as caught:
        parse_instruction(text, "kernel.sass")
    first, *context = str(caught.value).splitlines()
    assert first.startswith(f"kernel.sass:1:{column}: ")
    assert message in first
    assert context == [f"    {text}", f"    {' ' * (column - 1)}^"]


registers = st.one_of(
    st.integers(0, 254).map("R{}".format),
    st.integers(0, 62).map("UR{}".format),
    st.sampled_from(["RZ", "URZ", "P0", "PT", "UP6", "B3"]),
)
modifiers = st.sampled_from(["", ".reuse", ".H0_H0", ".H1_H1.reuse", ".64", ".X8", ".B3210"])
hexadecimal = st.integers(-(2**31), 2**32 - 1).map(hex)
modified = st.tuples(registers, modifiers).map("".join)
brackets = st.lists(modified | hexadecimal, min_size=1, max_size=3).map(lambda terms: f"[{'+'.join(terms)}]")
memory = st.tuples(st.sampled_from(["", "c", "cx", "desc", "gdesc", "tmem", "a"]), brackets, st.just("") | brackets).map("".join)
decorated = st.builds(str.format, st.sampled_from(["{}", "-{}", "~{}", "!{}", "|{}|", "-|{}|.F32"]), modified | memory)
floats = st.floats(allow_nan=False, allow_infinity=False, width=32).map("{:.20g}".format)
words = st.sampled_from(["+INF", "-QNAN(0xffc00001)", "{5,1}", "SR_TID.X", "2D", "gsb0", "???12"])
operands = decorated | hexadecimal | floats | words
controls = st.builds(
    Control,
    st.integers(0, 15),
    st.booleans(),
    st.none() | st.integers(0, 5),
    st.none() | st.integers(0, 5),
    st.sets(st.integers(0, 5)).map(lambda s: tuple(sorted(s))),
    st.just(0),
)


@given(st.lists(operands, max_size=6), st.sampled_from(["", "@P0 ", "@!UP3 "]), controls)
def test_any_operands_survive(texts: list[str], guard: str, control: Control) -> None:
    text = f"{guard}FFMA.FTZ {', '.join(texts)}".rstrip()
    instruction = parse_instruction(f"{control} {text} ;")
    assert instruction.text == text
    assert instruction.operands == tuple(Operand.parse(t) for t in texts)
    assert instruction.control == control
