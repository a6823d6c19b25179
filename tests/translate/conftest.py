"""Functions written as assembly text, and modules as MLIR text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from io import StringIO

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.ir import Operation
from xdsl.parser import Parser
from xdsl.printer import Printer

from sassir.asm import INSTRUCTION_BYTES, Function, Line
from sassir.asm.parse import parse_instruction
from sassir.dialect import SASS


@pytest.fixture
def ctx() -> Context:
    context = Context()
    context.load_dialect(Builtin)
    context.load_dialect(SASS)
    return context


@pytest.fixture
def parse(ctx: Context) -> Callable[[str], ModuleOp]:
    """The module of an MLIR text."""
    return lambda text: Parser(ctx, text).parse_module()


@pytest.fixture
def show(ctx: Context) -> Callable[..., str]:
    """The MLIR text of a module or kernel, with resources."""

    def text(op: Operation, generic: bool = False) -> str:
        stream = StringIO()
        printer = Printer(stream, print_generic_format=generic)
        printer.print_op(op)
        printer.print_metadata(ctx.loaded_dialects)
        return stream.getvalue()

    return text


@pytest.fixture
def function() -> Callable[..., Function]:
    """A function of one instruction a line, laid out from offset 0."""

    def build(text: str, labels: Mapping[str, int] | None = None) -> Function:
        code = [parse_instruction(line) for line in text.strip().splitlines()]
        lines = [Line(instruction, INSTRUCTION_BYTES * i) for i, instruction in enumerate(code)]
        return Function("k", 7, tuple(lines), labels or {})

    return build
