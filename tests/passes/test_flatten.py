"""sass-flatten: what becomes of the comparisons of a row of branches."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr

from sassir.asm import INSTRUCTION_BYTES, Function, Line
from sassir.asm.parse import parse_instruction
from sassir.optimize import make_pass
from sassir.translate.emit import emit_program
from sassir.translate.lift import ARCH, lift_function

CODE = """
MOV R0, RZ
ISETP.GT.AND P0, PT, R4, R8, PT
@!P0 BRA .+0x50
MOV R0, 0x1
ISETP.GT.AND P1, PT, R5, R8, PT
@!P1 BRA .+0x20
SEL R0, R4, R5, P1
STS [R10], R0
EXIT
"""
"""The second comparison decides a branch and, behind it, a selection."""


def test_a_comparison_that_stays_for_others_is_the_one_with_the_old_place() -> None:
    lines = tuple([Line(parse_instruction(line), INSTRUCTION_BYTES * i) for i, line in enumerate(CODE.split("\n")[1:-1])])
    kernel = lift_function(Function("k", None, lines, {}), {})
    module = ModuleOp([kernel], {ARCH: StringAttr("sm_90")})
    for name in ("sass-virtualise", "sass-flatten", "sass-allocate-registers", "sass-assign-control"):
        make_pass(name).apply(Context(), module)
    (function,) = emit_program(module).functions
    names = [line.instruction.mnemonic for line in function.lines]
    assert "BRA" not in names
    assert names.count("ISETP") == 3
    assert [line.origin for line in function.lines if line.instruction.mnemonic == "ISETP"].count(0x40) == 1
