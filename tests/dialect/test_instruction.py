"""Operations of the dialect: custom and generic text, and what the verifier refuses."""

from __future__ import annotations

import re
from io import StringIO

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import ParseError, VerifyException

from sassir import isa
from sassir.dialect import SASS
from sassir.dialect.instruction import SassBranch, SassInstruction
from sassir.dialect.operations import INSTRUCTIONS

TEXT = """\
builtin.module {
  sass.kernel @saxpy section 11 {
  ^entry(%r2: !sass.r<R2>, %r3: !sass.r<R3>, %r4: !sass.r<R4>, %p0: !sass.p<P0>):
    %r8, %r9 = sass.ldg<"E.64"> "=R2, [$R2.64+0x10]"(%r2, %r3) : R2 R3 -> R8 R9 control<stall=4> at 0x0
    %r4_1 = sass.ffma<"FTZ"> "=R, -$R.reuse, c[0x0][0x160], $R"(%r8, %r4) unless %p0 keep (%r4) : R8 R4 P0 R4 -> R4 control<stall=4>
    sass.lds "RZ, [RZ]"() if "!PT" fields<"b40" = 0x3> at 0x20
    %b0 = sass.bssy "=B, ^"() @x50 : -> B0
    sass.bra "^"() if %p0 ^then(%r4_1 : R4), ^x50 : P0
  ^then(%r4_2: !sass.r<R4>):
    %r5 = sass.mov "=R, $R"(%r4_2) : R4 -> R5 {note = "kept"}
    sass.next ^x50
  ^x50:
    sass.label private @x50
    sass.opaque<"FROB.U8"> "R1, R2"()
    sass.exit ""()
  }
  sass.kernel @"odd name" fixed "a reason" {
    sass.label @k$f
    sass.nop ""()
    sass.end
  }
}
""".replace("R5 {note", "R5 attributes {note")

FREE = """\
builtin.module {
  sass.kernel @k {
  ^entry(%a: !sass.r, %b: !sass.r, %p: !sass.p):
    %c = sass.fadd "=R, $R, $R"(%a, %b) if %p keep (%a)
    %d = sass.fadd "=R, $R, $R"(%c, %b) : R R -> vR7
    sass.exit ""()
  }
}
"""


@pytest.fixture
def ctx() -> Context:
    context = Context()
    context.load_dialect(Builtin)
    context.load_dialect(SASS)
    return context


def parse(ctx: Context, text: str) -> ModuleOp:
    module = Parser(ctx, text).parse_module()
    module.verify()
    return module


def show(module: ModuleOp, generic: bool = False) -> str:
    stream = StringIO()
    Printer(stream, print_generic_format=generic).print_op(module)
    return stream.getvalue() + "\n"


@pytest.mark.parametrize("text", [TEXT, FREE])
def test_custom_text_is_stable(ctx: Context, text: str) -> None:
    assert show(parse(ctx, text)).splitlines() == text.splitlines()


@pytest.mark.parametrize("text", [TEXT, FREE])
def test_generic_text_means_the_same(ctx: Context, text: str) -> None:
    generic = show(parse(ctx, text), generic=True)
    assert '"sass.fadd"' in generic or '"sass.ffma"' in generic
    assert show(parse(ctx, generic)) == text


def test_views_of_an_instruction(ctx: Context) -> None:
    ops = [op for op in parse(ctx, TEXT).walk() if isinstance(op, SassInstruction)]
    ldg, ffma, lds, _, bra = ops[:5]
    assert ffma.reads == (ldg.results[0], ffma.kept[0])
    assert ffma.guard is not None
    assert ffma.guard.name_hint == "p0"
    assert (lds.guard, lds.kept) == (None, ())
    assert isinstance(bra, SassBranch)
    assert (bra.forwarded(0), bra.forwarded(1)) == ((ffma.results[0],), ())


def test_each_mnemonic_is_an_operation() -> None:
    assert INSTRUCTIONS.keys() == isa.DESCRIPTIONS.keys()
    assert {"sass.ffma", "sass.ldg", "sass.bra"} <= {op.name for op in SASS.operations}
    assert {m for m, op in INSTRUCTIONS.items() if issubclass(op, SassBranch)} == {
        "BRA", "BRX", "BRXU", "BSYNC", "CALL", "EXIT", "JMP", "JMX", "JMXU", "KILL", "RET",
    }  # fmt: skip


BODY = """
sass.kernel @k {{
^entry(%r2: !sass.r<R2>, %r3: !sass.r<R3>, %r8: !sass.r<R8>, %p0: !sass.p<P0>, %u4: !sass.ur<UR4>):
  {}
  sass.exit ""()
}}"""


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('%a = sass.mov "=R, $R"(%u4) : UR4 -> R1', "the template has a hole for R, which !sass.ur<UR4> cannot fill"),
        ('%a = sass.mov "=R, $R"(%r2) if %r3 keep (%r8) : R2 R3 R8 -> R8', "the guard is !sass.r<R3>, expected a predicate"),
        ('%a = sass.mov "=R, $R"(%r2) if %p0 keep (%r3) : R2 P0 R3 -> R8', "a result in !sass.r<R8> keeps a value in !sass.r<R3>"),
        ('%a = sass.mov "=R, $R"(%r2) if %p0 : R2 P0 -> R8', "behind them come a guard and what each result keeps"),
        ('%a, %b = sass.ldc<"64"> "=R2, c[0x0][0x0]"() : -> R4 R6', "=R2 is filled by R4, R6; expected 2 registers in a row"),
        ('%a = sass.r2ur "$=R"(%r2) : R2 -> R3', "$=R reads R2 and writes R3; expected the same registers"),
        ('%a = sass.bssy "=B, ^"() : -> B0', "the template names 1 places; each ^ and & needs a label or a successor"),
        ("sass.next ^entry\n^then:", "passes nothing to a block that takes R2, R3, R8, P0, UR4"),
        ('sass.exit ""()', "must be the last operation of a block"),
    ],
)
def test_verifier_refuses(ctx: Context, line: str, message: str) -> None:
    with pytest.raises(VerifyException, match=re.escape(message)):
        parse(ctx, BODY.format(line))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('%a = sass.mov "=R, $R"(%r2, %r3) : R2 R3 -> R1', "the template reads 1 values, got 2"),
        ('%a = sass.mov "=R, $R"(%r2) : R2 -> X1', "X1 is not a register"),
        ('%a = sass.mov "=R, $Q"(%r2) : R2 -> R1', "names no register file"),
        ('%a = sass.frob "=R, $R"(%r2) : R2 -> R1', "Operation sass.frob is not registered"),
        ('%a = sass.mov "=R, $R"(%zz) : R2 -> R1', "zz"),
    ],
)
def test_parser_points_at_the_place(ctx: Context, line: str, message: str) -> None:
    with pytest.raises(ParseError, match=message) as caught:
        parse(ctx, BODY.format(line))
    assert "^" in str(caught.value)
