"""Text to instructions: what the grammars' tokens and rules mean."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cache
from typing import Any, NamedTuple

from lark import Lark, Transformer, UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from sassir.asm.control import Control
from sassir.asm.instruction import Instruction
from sassir.asm.operand import Operand
from sassir.errors import ListingError
from sassir.grammars import load

_LABEL = re.compile(r"`\(([^()\s]+)\)")
_FIRST = re.compile(r"\S+|.")

EXPECTED = {
    "_END": "';'",
    "_COMMA": "','",
    "NAME": "a mnemonic",
    "GUARD": "a guard such as @!P0",
    "OPERAND": "an operand",
    "OFFSET": "a branch offset",
    "EXTRA": "a field such as {name=0x1}",
    "CONTROL": "a control code such as [B------:R-:W-:-:S01]",
    "ADDRESS": "an offset such as /*0040*/",
    "HALF": "an encoding such as /* 0x0000000000007918 */",
    "LABEL": "a label",
    "SYMBOL": "a name",
    "ARCH": "`.arch sm_90`",
    "TARGET": "an architecture",
    "SECTION": "a section",
    "_FUNCTION": ".function",
    "CONTAINER": ".container",
    "$END": "the end",
}
"""The grammars' terminals as messages name them."""


class Reference(NamedTuple):
    """An operand that only a symbol table can turn into a number."""

    text: str

    @property
    def label(self) -> str | None:
        """The name in `` `(.L_x_1) ``; None for an expression that the linker fills in."""
        match = _LABEL.fullmatch(self.text)
        return match[1] if match else None


Operands = tuple[Operand | Reference, ...]


class Statement(NamedTuple):
    """An instruction as it is written, its references not yet resolved."""

    line: int
    column: int
    mnemonic: str
    modifiers: tuple[str, ...]
    operands: Operands
    guard: Operand | None
    control: Control | None
    extra: tuple[tuple[str, int], ...]

    def instruction(self, operands: tuple[Operand, ...]) -> Instruction:
        """The instruction with `operands`, and with no control code where none was written."""
        return Instruction(self.mnemonic, self.modifiers, operands, self.guard, self.control or Control(), self.extra)


@cache
def _control(text: str) -> Control:
    return Control.parse(text.rstrip())


@cache
def _operand(text: str) -> Operand | Reference:
    return Reference(str(text)) if "`" in text or "@" in text else Operand.parse(str(text))


@cache
def _name(text: str) -> tuple[str, tuple[str, ...]]:
    mnemonic, *modifiers = text.rstrip().split(".")
    return mnemonic, tuple(modifiers)


@cache
def _guard(text: str) -> Operand | None:
    name = text.strip("@ \t")
    return None if name in ("PT", "UPT") else Operand.parse(name)


@cache
def _extra(text: str) -> tuple[str, int]:
    name, _, value = text.strip("{}").partition("=")
    return name, int(value, 16)


class StatementReader(Transformer[Any, Any]):
    """Callbacks of `instruction.lark`."""

    CONTROL = staticmethod(_control)
    GUARD = staticmethod(_guard)
    OPERAND = OFFSET = staticmethod(_operand)
    EXTRA = staticmethod(_extra)

    def operands(self, parts: list[Any]) -> Operands:
        return tuple(parts if parts[-1] is not None else parts[:-1])

    def statement(self, parts: list[Any]) -> Statement:
        guard, name, operands, *extra = parts
        mnemonic, modifiers = _name(name)
        return Statement(name.line, name.column, mnemonic, modifiers, operands or (), guard, None, tuple(extra))

    def instruction(self, parts: list[Any]) -> Statement:
        control, statement = parts
        return statement._replace(control=control)


@cache
def _parser() -> Lark:
    return load("instruction", start="instruction", transformer=StatementReader())


def parse_instruction(text: str, where: str = "<instruction>") -> Instruction:
    """The instruction that `text` writes, in sassir's or in NVIDIA's spelling.

    A control code may stand before it, fields that NVIDIA's tools hide behind it: `[B------:R-:W-:-:S04] FFMA R1, R2, R3, R4
    {name=0x1}`. Branch targets are displacements (`BRA .+0x40`): a label means something only within a listing. Raises
    ListingError, with line, column and what was expected, for everything else.
    """
    statement: Statement = parse(_parser(), text, where)
    references = [o.text for o in statement.operands if isinstance(o, Reference)]
    if references:
        message = f"{references[0]} names a place outside of this instruction; write the displacement, for example .+0x40"
        raise refusal(message, text, where, statement.line, statement.column)
    return statement.instruction(statement.operands)  # type: ignore[arg-type]


def parse(parser: Lark, text: str, where: str) -> Any:
    """What the callbacks of `parser` make of `text`; its errors become ListingError."""
    try:
        return parser.parse(text)  # pyright: ignore[reportUnknownMemberType]
    except UnexpectedInput as error:
        raise _unexpected(error, text, where) from error


def refusal(message: str, text: str, where: str, line: int, column: int) -> ListingError:
    """The error at a place of `text`: `file:line:column: message`, then the line, and a caret under the column."""
    source = text.split("\n")[line - 1].expandtabs(1)
    start = max(0, column - 80)
    return ListingError(f"{where}:{line}:{column}: {message}\n    {source[start : start + 120]}\n    {' ' * (column - 1 - start)}^")


def _unexpected(error: UnexpectedInput, text: str, where: str) -> ListingError:
    expected: Collection[str] = ()
    ended: bool = not text.strip()
    if isinstance(error, UnexpectedCharacters):
        expected = error.allowed or ()
    elif isinstance(error, UnexpectedToken):
        expected = error.accepts or error.expected
        ended = str(error.token) == ""  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
    lines = text.split("\n")
    line, column = (len(lines), len(lines[-1]) + 1) if ended else (error.line, error.column)
    found = "the end of the text" if ended else repr(_FIRST.findall(lines[line - 1][column - 1 :])[0])
    wanted = " or ".join([words for name, words in EXPECTED.items() if name in expected])
    return refusal(f"found {found}, expected {wanted}", text, where, line, column)
