"""What the linker fills in is no constant, stays with its instruction, and cannot get lost."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from sassir.analysis.arguments import arguments
from sassir.asm import Function, Program
from sassir.asm.parse import parse_instruction
from sassir.cubin.cubin import Cubin
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.operations import KernelOp
from sassir.errors import ContainerError, TranslationError
from sassir.passes.gvn import GlobalValueNumbering
from sassir.passes.virtualise import Virtualise
from sassir.translate.cubin import read_module, read_program, write_cubin
from sassir.translate.emit import emit_program
from sassir.translate.lift import lift_function, lift_program
from sassir.translate.links import marked, unmarked

HOP = (Path(__file__).parents[1] / "cubins" / "hop.sm_90.cubin").read_bytes()

Parse = Callable[[str], ModuleOp]
Show = Callable[..., str]


def links(module: ModuleOp) -> list[str]:
    return [op.link.data for op in linked(module) if op.link is not None]


def linked(module: ModuleOp) -> list[SassInstruction]:
    return [op for op in module.walk() if isinstance(op, SassInstruction) and op.link is not None]


@pytest.mark.parametrize(
    ("text", "link", "expected"),
    [
        ("MOV R20, 0x0", "ABS32_LO_32 vprintf", "MOV R20, @0x0"),
        ("CALL.ABS.NOINC 0x0", "ABS55_16_34 f", "CALL.ABS.NOINC @0x0"),
        ("LDS R4, [R5+0x10]", "ABS24_40 smem", "LDS R4, @[R5+0x10]"),
        ("IMAD.WIDE R60, R3, R61, c[0x0][0x0]", "CONST_FIELD19_40 k", "IMAD.WIDE R60, R3, R61, @c[0x0][0x0]"),
        ("CALL.ABS.NOINC R6", "ABS56_16_34 __UFT_OFFSET", "CALL.ABS.NOINC R6"),
        ("YIELD", "YIELD_OPCODE9_0 , YIELD_CLEAR_PRED4_87 ", "YIELD"),
    ],
)
def test_the_operand_that_is_filled_in(text: str, link: str, expected: str) -> None:
    instruction = parse_instruction(text)
    found = marked(instruction, link)
    assert found is not None
    assert found.text == expected
    assert tuple([unmarked(o) for o in found.operands]) == instruction.operands


def test_a_filled_in_operand_is_no_number() -> None:
    found = marked(parse_instruction("MOV R20, 0x0"), "ABS32_LO_32 f")
    assert found is not None
    assert found.operands[1].integer is None


@pytest.mark.parametrize(("text", "link"), [("MOV R20, 0x0", "8_8 f"), ("ISETP.GE.AND P0, PT, R4, 0x0, 0x1", "ABS32_32 f")])
def test_what_is_not_known_is_not_guessed(text: str, link: str) -> None:
    assert marked(parse_instruction(text), link) is None


def test_a_patch_that_is_not_known_keeps_the_code_in_place(function: Callable[..., Function]) -> None:
    kernel = lift_function(function("MOV R20, 0x0\nEXIT")._replace(links={0: "8_8 f"}), {})
    assert kernel.fixed is not None
    assert kernel.fixed.data == "MOV R20, 0x0 at 0x0 is patched by 8_8 f, in a way that is not known"


def test_relocations_of_a_cubin_become_links() -> None:
    assert links(read_module(HOP))[:6] == [
        "ABS32_LO_32 table", "ABS32_HI_32 table", "ABS16_32 scale",
        "ABS32_LO_32 return_1a0", "ABS32_HI_32 return_1a0", "ABS56_16_34 __UFT_OFFSET",
    ]  # fmt: skip


def test_no_analysis_sees_the_placeholder() -> None:
    for op in linked(read_module(HOP)):
        if op.MNEMONIC in ("MOV", "UMOV"):
            (_, source) = arguments(op)
            assert source.text == "@0x0"
            assert source.integer is None


@pytest.mark.parametrize(("other", "left"), [("b", 2), ("a", 1)])
def test_different_links_are_different_values(function: Callable[..., Function], other: str, left: int) -> None:
    """Two loads with the same text and the same link are one value; with different links they are two."""
    code = function("LDC R4, c[0x0][0x0]\nLDC R5, c[0x0][0x0]\nSTS [R4], R5\nEXIT")
    names = {0x0: "CONST_FIELD21_38 a", 0x10: f"CONST_FIELD21_38 {other}"}
    module = lift_program(Program("sm_90", (code._replace(links=names),), None))
    Virtualise().apply(Context(), module)
    GlobalValueNumbering().apply(Context(), module)
    assert len(linked(module)) == left


def test_a_call_of_other_code_comes_back_to_its_label() -> None:
    """The address is filled in, and the code may move all the same."""
    assert [op.fixed for op in read_module(HOP).body.ops if isinstance(op, KernelOp)] == [None, None]


def test_text_keeps_links(show: Show, parse: Parse) -> None:
    text = show(read_module(HOP))
    assert 'link "ABS32_LO_32 table"' in text
    assert write_cubin(emit_program(parse(text))) == HOP


def test_links_go_with_their_instructions(show: Show, parse: Parse) -> None:
    """With a NOP before everything, each relocation patches the place 16 bytes on, and return addresses are 16 more."""
    text = re.sub(r"^(.* at 0x0)$", r'\1\n    sass.nop ""() control<stall=1>', show(read_module(HOP)), flags=re.MULTILINE)
    new = write_cubin(emit_program(parse(text)))
    old_section, new_section = (next(s for s in Cubin.read(data).code if s.kernel == "hop") for data in (HOP, new))
    old, moved = old_section.relocations, new_section.relocations
    assert [r.offset for r in moved] == [r.offset + 16 for r in old]
    assert [r.addend for r in moved] == [r.addend + 16 if r.symbol_name == "hop" and r.addend else r.addend for r in old]
    assert links(read_module(new)) == [
        re.sub(r"return_(\w+)", lambda m: f"return_{int(m[1], 16) + 16:x}", link) for link in links(read_module(HOP))
    ]


def test_a_copy_of_a_linked_instruction_is_refused(show: Show, parse: Parse) -> None:
    """The file has one relocation, so there can be one instruction."""
    text = show(read_module(HOP))
    line = next(line for line in text.splitlines() if 'link "ABS32_LO_32 table"' in line)
    copy = re.sub(r"%\w+ =", "%copy =", line).rpartition(" at ")[0].replace("UR4 ", "UR9 ")
    with pytest.raises(TranslationError, match="is a new instruction; the linker fills only into those that were in the file"):
        emit_program(parse(text.replace(line, f"{copy}\n{line}")))


def test_a_lost_link_is_refused(show: Show, parse: Parse) -> None:
    text = show(read_module(HOP)).replace(' link "ABS32_LO_32 table"', "", 1)
    with pytest.raises(TranslationError, match="does not say what the linker fills in"):
        emit_program(parse(text))
    text = text.replace('"=UR, @0x0"', '"=UR, 0x1"', 1)
    message = "stands for the instruction at 0x70; into that the linker fills ABS32_LO_32 table, but into this one nothing"
    with pytest.raises(ContainerError, match=message):
        write_cubin(emit_program(parse(text)))


def test_other_registers_are_no_obstacle(show: Show, parse: Parse) -> None:
    text = show(read_module(HOP))
    for name in ("%ur4_1", "%ur5_1"):
        line = next(line for line in text.splitlines() if line.strip().startswith(f"{name} ="))
        text = text.replace(line, line.replace("-> UR", "-> UR1"))
    text = text.replace('"=UR, =UP, $UR, $UR, URZ"(%ur4_1, %ur5) : UR4', '"=UR, =UP, $UR, $UR, URZ"(%ur4_1, %ur5) : UR14')
    text = text.replace("(%ur5_1, %up0) : UR5", "(%ur5_1, %up0) : UR15")
    new = write_cubin(emit_program(parse(text)))
    (kernel,) = [f for f in read_program(new).functions if f.name == "hop"]
    assert kernel.lines[7].instruction.text == "UMOV UR14, 0x0"
    assert kernel.links == next(f for f in read_program(HOP).functions if f.name == "hop").links
