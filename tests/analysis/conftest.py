"""Kernels written as MLIR text or as assembly."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin
from xdsl.ir import Region
from xdsl.parser import Parser

from sassir.asm import INSTRUCTION_BYTES, Function, Line
from sassir.asm.parse import parse_instruction
from sassir.dialect import SASS
from sassir.translate.lift import lift_function


@pytest.fixture
def parse() -> Callable[[str], Region]:
    """The region of a kernel that takes %r1 in R1, %q1 in R4 and R5, and %p0 in P0; it ends with an EXIT."""

    def region(body: str) -> Region:
        ctx = Context()
        ctx.load_dialect(Builtin)
        ctx.load_dialect(SASS)
        entry = "^entry(%r1: !sass.r<R1>, %r4: !sass.r<R4>, %r5: !sass.r<R5>, %p0: !sass.p<P0>)"
        module = Parser(ctx, f'sass.kernel @k {{\n{entry}:\n{body}\nsass.exit ""()\n}}').parse_module()
        (kernel,) = module.body.ops
        return kernel.regions[0]

    return region


@pytest.fixture
def lift() -> Callable[[str], Region]:
    """The region of a kernel of one instruction a line, laid out from offset 0."""

    def region(text: str) -> Region:
        code = [parse_instruction(line) for line in text.strip().splitlines()]
        lines = tuple([Line(instruction, INSTRUCTION_BYTES * i) for i, instruction in enumerate(code)])
        kernel = lift_function(Function("k", None, lines, {}), {})
        assert kernel.fixed is None
        return kernel.body

    return region
