"""Editing the text of a module: what follows the edit, and which edits are refused."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import ParseError

from sassir.asm import Function, Program
from sassir.errors import TranslationError
from sassir.translate.emit import emit_program
from sassir.translate.lift import lift_program

Parse = Callable[[str], ModuleOp]
Show = Callable[..., str]

CODE = """
MOV R0, 0x1
FADD R2, R2, R3
MOV R5, 0x2
@!P0 BRA .-0x20
BSSY B0, .+0x50
IADD3 R2, R2, R5, R0
MOV R7, 0x80
BRA .+0x10
BSYNC B0
EXIT
"""


@pytest.fixture
def text(function: Callable[[str], Function], show: Show) -> str:
    return show(lift_program(Program("sm_90", (function(CODE),), None)))


@pytest.fixture
def emit(parse: Parse) -> Callable[[str], list[str]]:
    """The instructions of the only function of a module text."""

    def run(module: str) -> list[str]:
        (found,) = emit_program(parse(module)).functions
        return [line.instruction.text for line in found.lines]

    return run


def test_text_is_the_function(text: str, emit: Callable[[str], list[str]]) -> None:
    assert emit(text) == CODE.strip().splitlines()


def test_generic_text_is_the_function(text: str, parse: Parse, show: Show) -> None:
    module = parse(text)
    again = parse(show(module, generic=True))
    assert emit_program(again) == emit_program(module)
    assert show(again) == text


def test_changed_constant(text: str, emit: Callable[[str], list[str]]) -> None:
    assert emit(text.replace('"=R, 0x2"', '"=R, 0x7"'))[2] == "MOV R5, 0x7"


def insert(text: str, before: str, line: str) -> str:
    """The text with a line put before the one that holds `before`."""
    lines = text.splitlines()
    at = next(i for i, old in enumerate(lines) if before in old)
    return "\n".join([*lines[:at], line, *lines[at:]])


def test_added_instruction_moves_the_targets(text: str, parse: Parse) -> None:
    edited = insert(text, "sass.fadd", '%new = sass.mov "=R, 0x9"() : -> R9 control<stall=4>')
    (function,) = emit_program(parse(edited)).functions
    code = [line.instruction.text for line in function.lines]
    assert code[1:6] == ["MOV R9, 0x9", "FADD R2, R2, R3", "MOV R5, 0x2", "@!P0 BRA .-0x30", "BSSY B0, .+0x50"]
    assert function.lines[1].origin is None
    assert function.moved() == {0x0: 0x0} | {old: old + 0x10 for old in range(0x10, 0xA0, 0x10)}


def test_swapped_instructions(text: str, emit: Callable[[str], list[str]]) -> None:
    lines = text.splitlines()
    at = next(i for i, line in enumerate(lines) if "sass.fadd" in line)
    lines[at], lines[at + 1] = lines[at + 1], lines[at]
    assert emit("\n".join(lines))[1:3] == ["MOV R5, 0x2", "FADD R2, R2, R3"]


def test_removed_instruction(text: str, emit: Callable[[str], list[str]]) -> None:
    lines = [line for line in text.splitlines() if "0x80" not in line or "sass.mov" not in line]
    assert emit("\n".join(lines))[4:7] == ["BSSY B0, .+0x40", "IADD3 R2, R2, R5, R0", "BRA .+0x10"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("%r2_2, %r5", "%r2, %r5", "reads a value from !sass.r<R2>, which holds another one there"),
        ("R2 R3 -> R2", "R3 R3 -> R2", "operand is used with type !sass.r<R3>"),
        (" at 0x10", " at 0x20", "two instructions say `at 0x20`; a new instruction has no `at`"),
        ("private @x90", "private @x91", "names the label @x90, which is not in the kernel"),
        ("sass.fadd", "sass.dadd", 'is an instruction that sass.dadd #sass.template<"=R2, $R2, $R2"> describes'),
        ("sass.bsync \"$B\"(%b0) ^x90", "sass.bsync \"$B\"(%b0) ^x80", "goes on to a block that does not lie behind it"),
        ("-> R7", "-> R", "%r7 is a !sass.r; allocate registers first"),
        (' attributes {sass.arch = "sm_90"}', "", "the module has no architecture"),
    ],
)
def test_wrong_edit_is_refused(text: str, parse: Parse, old: str, new: str, message: str) -> None:
    assert old in text
    with pytest.raises((TranslationError, ParseError), match=re.escape(message)):
        emit_program(parse(text.replace(old, new)))


def test_swapping_an_instruction_with_its_user_is_refused(text: str, parse: Parse) -> None:
    """MLIR does not ask for definitions before uses across blocks, so the text parses; the register holds an older value."""
    lines = text.splitlines()
    at = next(i for i, line in enumerate(lines) if "sass.iadd3" in line)
    lines[at], lines[at + 1] = lines[at + 1].replace("R7", "R5"), lines[at]
    with pytest.raises(TranslationError, match=r"kernel k: .*R5"):
        emit_program(parse("\n".join(lines)))
