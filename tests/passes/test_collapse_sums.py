"""sass-collapse-sums: what is added up in several steps is added at once."""

from __future__ import annotations

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr

from sassir.asm import INSTRUCTION_BYTES, Function, Line
from sassir.asm.parse import parse_instruction
from sassir.dialect.instruction import SassInstruction
from sassir.passes.collapse_sums import CollapseSums
from sassir.passes.virtualise import Virtualise
from sassir.translate.lift import ARCH, lift_function

START = "S2R R0, SR_TID.X\nLDC.64 R2, c[0x0][0x210]"


def collapsed(body: str) -> list[str]:
    """The operands of the sums that are left, without results."""
    text = [*START.splitlines(), *body.strip().splitlines(), "EXIT"]
    lines = tuple([Line(parse_instruction(line), INSTRUCTION_BYTES * i) for i, line in enumerate(text)])
    made = lift_function(Function("k", None, lines, {}), {})
    module = ModuleOp([made], {ARCH: StringAttr("sm_90")})
    Virtualise().apply(Context(), module)
    CollapseSums().apply(Context(), module)
    module.verify()
    ops = [op for block in made.body.blocks for op in block.ops if isinstance(op, SassInstruction)]
    return [f"{op.MNEMONIC} {op.template.text.split(', ', 1)[1]}" for op in ops if op.MNEMONIC in ("IADD3", "UIADD3", "VIADD")]


def test_words() -> None:
    body = "VIADD R4, R0, 0x1\nIADD3 R4, R4, 0x2, RZ\nVIADD R4, R4, 0x4\nSTG.E desc[UR4][R2.64], R4"
    assert collapsed(body) == ["VIADD $R, 0x7"]


def test_negative_numbers_are_written_as_before() -> None:
    body = "VIADD R4, R0, 0xffffffff\nVIADD R4, R4, 0xffffffff\nSTG.E desc[UR4][R2.64], R4"
    assert collapsed(body) == ["VIADD $R, 0xfffffffe"]


@pytest.mark.parametrize("upper", ["IADD3.X R3, RZ, R3, RZ, P0, !PT", "IADD3.X R3, R3, RZ, RZ, P0, !PT", "IMAD.X R3, RZ, RZ, R3, P0"])
def test_addresses_of_two_words(upper: str) -> None:
    body = f"IADD3 R2, P0, R2, 0x4, RZ\n{upper}\n" * 3 + "STG.E desc[UR4][R2.64], R0"
    found = [text for text in collapsed(body) if "X" not in text and "$P" not in text]
    assert found == ["IADD3 =P, $R, 0xc, RZ"]


def test_what_the_stack_pointer_was_is_not_kept() -> None:
    body = "LDC R1, c[0x0][0x28]\nVIADD R1, R1, 0xfffffff0\nVIADD R4, R1, 0x4\nSTL [R4], R0"
    assert collapsed(body) == ["VIADD $R, 0xfffffff0", "VIADD $R, 0x4"]


def test_what_is_needed_in_between_stays() -> None:
    body = "VIADD R4, R0, 0x1\nSTG.E desc[UR4][R2.64], R4\nVIADD R4, R4, 0x2\nSTG.E desc[UR4][R2.64+0x4], R4"
    assert collapsed(body) == ["VIADD $R, 0x1", "VIADD $R, 0x3"]


TRAPS = {
    "a carry that goes elsewhere": [
        "IADD3 R4, P0, R2, 0x4, RZ",
        "IADD3.X R5, R3, RZ, RZ, P0, !PT",
        "IADD3 R4, P0, R4, 0x4, RZ",
        "IADD3.X R5, R5, RZ, RZ, P0, !PT",
        "SEL R6, R2, R3, P0",
        "STG.E desc[UR4][R4.64], R6",
    ],
    "a value that is subtracted": ["IADD3 R4, -R0, 0x1, RZ", "IADD3 R4, -R4, 0x1, RZ", "STG.E desc[UR4][R2.64], R4"],
    "a guarded step": [
        "ISETP.NE.AND P0, PT, R2, R3, PT",
        "VIADD R4, R0, 0x1",
        "@P0 VIADD R4, R4, 0x1",
        "VIADD R4, R4, 0x1",
        "STG.E desc[UR4][R2.64], R4",
    ],
}


@pytest.mark.parametrize("body", TRAPS.values(), ids=TRAPS)
def test_it_stays(body: list[str]) -> None:
    before = [line.removeprefix("@P0 ").split(" ")[0].removesuffix(".X") for line in body if "ADD" in line]
    assert [text.split(" ")[0] for text in collapsed("\n".join(body))] == before
