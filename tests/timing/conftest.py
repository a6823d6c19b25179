"""Functions written by hand, with their flow."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sassir.asm import INSTRUCTION_BYTES, Function, Line
from sassir.asm.control import Control
from sassir.asm.instruction import Instruction
from sassir.asm.parse import parse_instruction

Written = Callable[[str], Function]


@pytest.fixture(scope="session")
def written() -> Written:
    """Makes a function of lines that have a control code and an instruction each."""

    def make(text: str) -> Function:
        code: list[Instruction] = []
        for line in text.strip().splitlines():
            control, _, instruction = line.strip().partition("] ")
            code.append(parse_instruction(instruction)._replace(control=Control.parse(f"{control}]")))
        return Function("k", None, tuple([Line(c, INSTRUCTION_BYTES * i) for i, c in enumerate(code)]), {})

    return make
