"""Types and attributes: what they print, that they parse back, and that equal ones are shared."""

from __future__ import annotations

from io import StringIO

import pytest
from xdsl.context import Context
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import ParseError

from sassir.asm import Control
from sassir.dialect import SASS, ControlAttr, FieldsAttr, OriginAttr, TemplateAttr
from sassir.dialect.attributes import Origin
from sassir.dialect.container import ContainerAttr
from sassir.dialect.registers import NUMBER, REGISTERS, UR, P, R, register
from sassir.dialect.template import Argument, Hole
from sassir.errors import ContainerError


@pytest.fixture
def ctx() -> Context:
    context = Context()
    context.load_dialect(SASS)
    return context


@pytest.mark.parametrize(
    ("attribute", "text"),
    [
        (R.of(4), "!sass.r<R4>"),
        (R.free(), "!sass.r"),
        (UR.of(63), "!sass.ur<UR63>"),
        (R.infinite_register(300), "!sass.r<vR300>"),
        (ControlAttr.of(Control(4)), "#sass.control<stall=4>"),
        (ControlAttr.of(Control(2, True, 0, 5, (1, 3), 1)), "#sass.control<stall=2, yield, write=0, read=5, wait=[1, 3], batch=1>"),
        (FieldsAttr((("b91", 1), ("b40", 0x3FFF))), '#sass.fields<"b91" = 0x1, "b40" = 0x3fff>'),
        (OriginAttr(Origin(0x40)), "#sass.origin<0x40>"),
        (TemplateAttr.of("=R2, -|$R|.reuse, c[0x0][0x160]"), '#sass.template<"=R2, -|$R|.reuse, c[0x0][0x160]">'),
    ],
)
def test_print_and_parse(ctx: Context, attribute: object, text: str) -> None:
    assert str(attribute) == text
    assert Parser(ctx, text).parse_attribute() == attribute


@pytest.mark.parametrize("name", ["R4", "UR62", "P0", "UP6", "B15", "R", "UP", "vR300"])
def test_short_names_of_registers(name: str) -> None:
    found = register(name)
    assert (found.register_name or found.FILE) == name
    assert register(name) is found


@pytest.mark.parametrize("name", ["RZ", "R255", "P7", "X4", "r4"])
def test_names_that_are_no_register_value(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        register(name)


def test_registers_are_numbered_without_gaps() -> None:
    assert [r.number for r in REGISTERS] == list(range(len(REGISTERS)))
    assert (NUMBER["R0"], P.free().number, R.infinite_register(1).number) == (0, None, None)


def test_template_tells_files_and_widths() -> None:
    template = TemplateAttr.of("=R4, =P, desc[$UR2][$R2.64+0x10], $=R, RZ; $P").data
    assert template.holes == (
        Hole("=", "R", 4),
        Hole("=", "P", 1),
        Hole("$", "UR", 2),
        Hole("$", "R", 2),
        Hole("$=", "R", 1),
        Hole("$", "P", 1),
    )
    assert template.visible == 5
    assert template.write_files == ("R", "R", "R", "R", "P", "R")
    assert template.read_files == ("UR", "UR", "R", "R", "R", "P")
    assert template.arguments[2] == Argument("desc[$][$.64+0x10]", (None, None))
    assert template.arguments[4] == Argument("$", ("RZ",))


def test_template_fills_with_names() -> None:
    operands = TemplateAttr.of("=R4, desc[$UR2][$R2.64+0x10], RZ").fill(["R8", "UR4", "R2"], None)
    assert [o.text for o in operands] == ["R8", "desc[UR4][R2.64+0x10]", "RZ"]


@pytest.mark.parametrize("text", ["$X", "=", "$, $R"])
def test_hole_without_a_file_is_refused(ctx: Context, text: str) -> None:
    with pytest.raises(ParseError, match="names no register file"):
        Parser(ctx, f'#sass.template<"{text}">').parse_attribute()


def test_container_is_a_resource_behind_the_module(ctx: Context) -> None:
    attribute = ContainerAttr.of(b"a cubin" * 100)
    stream = StringIO()
    printer = Printer(stream)
    printer.print_attribute(attribute)
    printer.print_metadata(ctx.loaded_dialects)
    text = stream.getvalue()
    assert text.startswith(f"#sass.container<{attribute.data}>")
    assert f'{attribute.data}: "0x01000000' in text
    assert attribute.bytes == b"a cubin" * 100


def test_lost_container_is_named(ctx: Context) -> None:
    attribute = Parser(ctx, "#sass.container<cubin_0>").parse_attribute()
    assert isinstance(attribute, ContainerAttr)
    with pytest.raises(ContainerError, match="the text does not carry it; give the cubin with --onto"):
        _ = attribute.bytes
