"""sass-unguard, and what it leaves to sass-dce, on code with many guards and with calls."""

from __future__ import annotations

import time

from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, ModuleOp, StringAttr
from xdsl.parser import Parser

from sassir.analysis.ssa import verify_ssa
from sassir.asm import INSTRUCTION_BYTES, Function, Line
from sassir.asm.parse import parse_instruction
from sassir.dialect import SASS
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.operations import KernelOp
from sassir.passes.dce import drop_dead_code
from sassir.passes.unguard import Unguard
from sassir.passes.virtualise import Virtualise
from sassir.translate.lift import ARCH, lift_function


def _guarded(text: list[str]) -> list[bool]:
    """Whether each sum that is left has a guard."""
    lines = tuple([Line(parse_instruction(line), INSTRUCTION_BYTES * i) for i, line in enumerate(text)])
    kernel = lift_function(Function("k", None, lines, {}), {})
    module = ModuleOp([kernel], {ARCH: StringAttr("sm_90")})
    Virtualise().apply(Context(), module)
    Unguard().apply(Context(), module)
    verify_ssa(kernel.body)
    ops = [op for block in kernel.body.blocks for op in block.ops if isinstance(op, SassInstruction)]
    return [op.guard is not None for op in ops if op.MNEMONIC == "IADD3"]


def test_a_register_that_many_guards_change_takes_no_time() -> None:
    """Any of them may be what the store at the end sees; the ways through them are many (kQuantizeBlockwise of bitsandbytes)."""
    begin = time.process_time()
    changes = [f"@{'!' * (i % 2)}P{i % 6} IADD3 R{4 + i % 3}, R{4 + (i + 1) % 3}, R{4 + (i + 2) % 3}, R7" for i in range(600)]
    assert all(_guarded([*changes, "STS [R8], R4", "STS [R8], R5", "STS [R8], R6", "EXIT"]))
    assert time.process_time() - begin < 20


def test_a_long_row_of_readers_is_followed() -> None:
    row = ["@P0 IADD3 R4, R4, 0x1, RZ"] * 150
    assert not any(_guarded([*row, "@P0 STS [R8], R4", "EXIT"]))
    assert all(_guarded([*row, "STS [R8], R4", "EXIT"]))


def test_what_a_block_is_entered_with_from_elsewhere_stays() -> None:
    """Control comes back to ^back from another section as well, so that it keeps its argument, and the branch what it passes."""
    ctx = Context()
    ctx.load_dialect(Builtin)
    ctx.load_dialect(SASS)
    body = """
%p = sass.isetp<"LT.AND"> "=P, PT, $R, 0x5, PT"(%r)
sass.bra "^"() if %p ^loop(%r : R), ^call
^loop(%x: !sass.r):
sass.bra "^"() if %p ^back(%x : R), ^call
^call:
sass.call<"ABS.NOINC"> "@0x0"() ^back link "ABS47_34 f"
^back(%y: !sass.r):
sass.exit ""()"""
    module = Parser(ctx, f"sass.kernel @k {{\n^entry(%r: !sass.r):{body}\n}}").parse_module()
    kernel = module.body.ops.first
    assert isinstance(kernel, KernelOp)
    drop_dead_code(kernel.body)
    verify_ssa(kernel.body)
    assert [len(block.args) for block in kernel.body.blocks] == [1, 1, 0, 1]
