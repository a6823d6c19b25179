"""The forms of instructions that are tested on the hardware, and which forms of a cubin are not among them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from sassir.asm.instruction import Instruction
from sassir.asm.operand import HOLE, Operand, register_file
from sassir.asm.parse import parse_instruction
from sassir.isa.semantics.definition import mnemonics
from sassir.translate.cubin import read_program

FORMS = Path(__file__).with_name("semantics_forms.txt")
_BRACE = re.compile(r"\{([^{}]*)\}")
_CONSTANT = re.compile(r"\[.*\]\[.*?\]")

Shape = tuple[str, ...]
"""What a form is beside the numbers of registers, immediates and constants: `("FADD.FTZ", "R", "-R", "number")`."""


def forms() -> list[str]:
    """All instructions to test, from the list beside this file."""
    lines = FORMS.read_text(encoding="utf-8").splitlines()
    return list(dict.fromkeys(text for line in lines if line and line[0] != "#" for text in expand(line)))


def expand(pattern: str) -> Iterator[str]:
    """`FADD{/.FTZ} R1` as `FADD R1` and `FADD.FTZ R1`."""
    brace = _BRACE.search(pattern)
    if brace is None:
        yield pattern
        return
    for choice in brace[1].split("/"):
        yield from expand(pattern[: brace.start()] + choice + pattern[brace.end() :])


def mnemonic(text: str) -> str:
    """The mnemonic of a form."""
    return parse_instruction(text).mnemonic


def shape(instruction: Instruction) -> Shape:
    """The form of an instruction; zero registers are registers like the others."""
    return (instruction.name, *[_kind(operand.without_reuse()) for operand in instruction.operands])


def _kind(operand: Operand) -> str:
    if operand.integer is not None or operand.float is not None:
        return "number"
    kind = operand.template
    for register in operand.registers:
        kind = kind.replace(HOLE, register_file(register), 1)
    return _CONSTANT.sub("[]", kind)


def untested(cubin: bytes) -> dict[Shape, str]:
    """Forms in a cubin that the semantics has and the list has not, each with an instruction."""
    known = mnemonics()
    lines = [line.instruction for function in read_program(cubin).functions for line in function.lines]
    found = {shape(i): i.text for i in lines if i.mnemonic in known}
    return {form: text for form, text in found.items() if form not in tested()}


@cache
def tested() -> frozenset[Shape]:
    """What the list has."""
    return frozenset(shape(parse_instruction(text)) for text in forms())
