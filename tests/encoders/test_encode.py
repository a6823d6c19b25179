"""What users of other assemblers stumbled over, and what the encoder refuses."""

import pytest

from sassir.asm.operand import Operand
from sassir.asm.parse import parse_instruction
from sassir.encoders import table
from sassir.errors import EncodingError

STALL_1 = "[B------:R-:W-:-:S01] "


@pytest.mark.parametrize(
    ("arch", "word", "text"),
    [
        # The descriptor in UR4 is encoded, though nvdisasm prints LDG.E R0, [R2.64] (CuAssembler issue 18).
        ("sm_80", 0x000168000C1E19000000000402007981, "LDG.E R0, desc[UR4][R2.64]"),
        # URZ is 63 before sm_100, 255 since (NVBit issue 165).
        ("sm_90", 0x000FE20008000F000000003F00017C02, "MOV R1, URZ"),
        ("sm_100", 0x000FE20008000F00000000FF00017C02, "MOV R1, URZ"),
        # In code of bitsandbytes.
        ("sm_100", 0x000FE8000800010000440004080E783B, "LDSM.16.M88.2 R14, [R8+UR4+0x4400]"),
    ],
)
def test_both_ways(arch: str, word: int, text: str) -> None:
    instruction = table(arch).decode(word)
    assert instruction.text == text
    assert table(arch).encode(parse_instruction(f"{instruction.control} {text}")) == word


@pytest.mark.parametrize(
    ("arch", "text"),
    [
        ("sm_75", "SHF.L.W.U32.HI R11, R4, 0x13, R4"),
        ("sm_75", "@!P0 IADD3.X R2, P1, R2, R15, RZ, P1, !PT"),
        ("sm_90", "F2FP.F16.F32.PACK_AB R8, R8, R11"),
        ("sm_90", "LDC.64 R18, c[0x2][R12]"),
        ("sm_90", "@P3 LDG.E.EL.128 R12, desc[UR8][R16.64]"),
        ("sm_90", "FFMA R1, -|R2|.reuse, 1.5, R3"),
        ("sm_90", "HFMA2.MMA R1, -RZ, RZ, 0, 5.9604644775390625e-08"),
        ("sm_90", "BRA .-0x40"),
        ("sm_90", "IADD3 R2, P1, R3, R4, RZ"),
    ],
)
def test_text_that_was_never_seen_encodes(arch: str, text: str) -> None:
    coder = table(arch)
    word = coder.encode(parse_instruction(STALL_1 + text))
    assert coder.decode(word).text == text


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("FMA R1, R2, R3, R4", "FMA is not a mnemonic of this architecture"),
        ("FFMA.BOLD R1, R2, R3, R4", "no form of FFMA has the modifiers .BOLD"),
        ("FFMA R1, R2, R3, [R4]", r"operand 4, `\[R4\]`, fits no form of FFMA"),
        ("FFMA R1, c[0x0][0x160], c[0x0][0x164], R4", "do not fit together"),
        ("FFMA R300, R2, R3, R4", "operand 1, `R300`"),
        ("LDG.E R0, desc[UR64][R2.64]", "operand 2"),
        ("@UP0 FFMA R1, R2, R3, R4", "guard UP0 should be a P register"),
        ("FFMA R1, R2, R3, R4 {b7=0x1}", "no hidden field b7"),
    ],
)
def test_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(EncodingError, match=reason):
        table("sm_90").encode(parse_instruction(STALL_1 + text))


def test_stall_12_to_15_need_yield() -> None:
    with pytest.raises(EncodingError, match="stall 13 is not encodable without yield"):
        table("sm_90").encode(parse_instruction("[B------:R-:W-:-:S13] NOP"))


def test_reuse_needs_no_yield() -> None:
    with pytest.raises(EncodingError, match="reuse needs a control code without yield"):
        table("sm_90").encode(parse_instruction("[B------:R-:W-:Y:S02] FFMA R1, R2.reuse, R3, R4"))


@pytest.mark.parametrize("word", [0xFFF, 0x20E | 5 << 105, (1 << 128) - 1, 0x000FE2000000000000000000000001FF, 31 << 105 | 0x7223])
def test_an_unknown_word_is_kept(word: int) -> None:
    """Bits, control code and all; renaming and rescheduling can see that they must keep off."""
    instruction = table("sm_90").decode(word)
    assert instruction.mnemonic == "OPAQUE"
    assert table("sm_90").encode(instruction) == word


def test_extra_fields_are_shown_and_encoded() -> None:
    """A bit that no tool shows, set: it survives, visibly."""
    coder = table("sm_90")
    word = coder.encode(parse_instruction(STALL_1 + "FFMA R1, R2, R3, R4")) | 1 << 100
    instruction = coder.decode(word)
    assert instruction.extra
    assert "{b" in instruction.text
    assert coder.encode(instruction) == word
    assert instruction.operands[0] is Operand.of("$", ("R1",))
