"""The operands of an operation: assembly text with holes for its values, `=R, -$R.reuse, c[0x0][0x160], $R2`.

`$R` reads a register, `=R` writes one, `$=R` does both (the notation of inline assembly); `$R2` is a pair, and so on.
A hole takes as many values as it is wide. `^` stands for the place that a branch or a BSSY names, and `&` for a
number that means a place (a return address, the base of BRX). An operand that begins with `@` gets its value from the
linker or the driver; what follows is only what the file has in its place. Holes behind a semicolon are registers that the
text of the instruction does not show. Everything else, zero registers included, is kept as it is written.
"""

from __future__ import annotations

import re
from functools import cache
from typing import ClassVar, NamedTuple

from xdsl.ir import Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from sassir.asm.operand import HOLE, REGISTER, Operand
from sassir.dialect import internals

PLACE = "^"
ADDRESS = "&"
LINKED = "@"
READ, WRITE, READ_WRITE = "$", "=", "$="

_HOLE = re.compile(r"(\$=|\$|=)(UR|UP|R|P|B)(\d*)")
_STAND_IN = "R9000"  # no register; marks where a hole is while the literal registers are found


class Hole(NamedTuple):
    """A register of the text that values fill."""

    access: str
    file: str
    width: int

    @property
    def reads(self) -> bool:
        """It takes operands."""
        return self.access != WRITE

    @property
    def writes(self) -> bool:
        """It takes results."""
        return self.access != READ

    def __str__(self) -> str:
        return f"{self.access}{self.file}{self.width if self.width > 1 else ''}"


class Argument(NamedTuple):
    """One operand: the template of `Operand`, and for each of its registers a fixed name, or None for a hole."""

    template: str
    registers: tuple[str | None, ...]


class Template(NamedTuple):
    """The text, and what follows from it."""

    text: str
    arguments: tuple[Argument, ...]
    holes: tuple[Hole, ...]
    """From left to right, the hidden ones last."""
    visible: int
    """How many of the holes the text shows."""
    read_files: tuple[str, ...]
    """The register file of each operand value."""
    write_files: tuple[str, ...]
    """The register file of each result value."""
    places: int
    """How many places it names, as displacement or as address."""
    narrow: bool
    """Each hole takes one value, and none both reads and writes."""


@cache
def _argument(text: str) -> Argument:
    marked = _HOLE.sub(_STAND_IN, text)
    names = tuple(None if name == _STAND_IN else name for name in REGISTER.findall(marked))
    return Argument(REGISTER.sub(HOLE, marked), names)


@internals.by_identity
@irdl_attr_definition
class TemplateAttr(Data[Template]):
    """`#sass.template<"=R, $R, 0x1">`; one object for each text: they are the keys of what is known of each form of an instruction."""

    name = "sass.template"

    _made: ClassVar[dict[str, TemplateAttr]] = {}

    def __new__(cls, data: Template) -> TemplateAttr:
        """The one that there is with this text."""
        return cls._made.setdefault(data.text, super().__new__(cls))

    @classmethod
    def new(cls, params: Template) -> TemplateAttr:
        return cls(params)

    @classmethod
    @cache
    def of(cls, text: str) -> TemplateAttr:
        """The template written as `text`. Raises ValueError for a `$` or `=` that names no register file."""
        shown = text.partition("; ")[0]
        arguments = tuple(_argument(a) for a in shown.split(", ") if a)
        for argument in arguments:
            if argument.template.count(HOLE) != len(argument.registers) or "=" in argument.template:
                raise ValueError(f"a hole of {text!r} names no register file; expected $R, =R or $=R (or UR, P, UP, B), then its width")
        holes = tuple(Hole(access, file, int(width or 1)) for access, file, width in _HOLE.findall(text))
        reads = tuple(h.file for h in holes if h.reads for _ in range(h.width))
        writes = tuple(h.file for h in holes if h.writes for _ in range(h.width))
        narrow = all(h.width == 1 and h.access != READ_WRITE for h in holes)
        places = sum(a.template in (PLACE, ADDRESS) for a in arguments)
        return cls(Template(text, arguments, holes, len(_HOLE.findall(shown)), reads, writes, places, narrow))

    @property
    def text(self) -> str:
        """The template as written."""
        return self.data.text

    @property
    def places(self) -> int:
        """How many places it names, as displacement or as address."""
        return self.data.places

    def fill(self, names: list[str], place: Operand | None) -> tuple[Operand, ...]:
        """The operands with register `names` (one a visible hole) and the operand that names the place."""
        filling = iter(names)
        return tuple(
            [
                place
                if place is not None and template in (PLACE, ADDRESS)
                else Operand.of(template, tuple([next(filling) if r is None else r for r in registers]))
                if registers
                else Operand.of(template)
                for template, registers in self.data.arguments
            ]
        )

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Template:
        with parser.in_angle_brackets():
            return parse_template(parser).data

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string_literal(self.text)


def parse_template(parser: AttrParser) -> TemplateAttr:
    """Parse a template in quotes."""
    start = parser.pos
    text = parser.parse_str_literal()
    try:
        return TemplateAttr.of(text)
    except ValueError as error:
        parser.raise_error(str(error), start, parser.pos)
