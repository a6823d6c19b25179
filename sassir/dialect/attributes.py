"""What an operation carries beside its operands: control code, hidden fields, and the place it came from."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

from xdsl.ir import Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from sassir.asm.control import Control
from sassir.asm.instruction import Instruction

_CONTROL_FIELDS = ("stall", "yield", "write", "read", "wait", "batch")


@irdl_attr_definition
class ControlAttr(Data[Control]):
    """`#sass.control<stall=4, yield, write=0, wait=[0, 2]>`; a field that is absent has its default."""

    name = "sass.control"

    @classmethod
    @cache
    def of(cls, control: Control) -> ControlAttr:
        """The shared attribute for `control`."""
        return cls(control)

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Control:
        def item() -> tuple[str, int | bool | tuple[int, ...]]:
            key = parser.parse_keyword_in(_CONTROL_FIELDS)
            if key == "yield":
                return "yield_", True
            parser.parse_punctuation("=")
            if key == "wait":
                return key, tuple(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer))
            return key, parser.parse_integer()

        fields = dict(parser.parse_comma_separated_list(parser.Delimiter.ANGLE, item))
        return Control()._replace(**fields)

    def print_parameter(self, printer: Printer) -> None:
        stall, yield_, write, read, wait, batch = self.data
        fields = [f"stall={stall}"]
        fields += ["yield"] * yield_
        fields += [f"{key}={value}" for key, value in (("write", write), ("read", read)) if value is not None]
        fields += [f"wait={[*wait]}"] * bool(wait)
        fields += [f"batch={batch}"] * bool(batch)
        printer.print_string(f"<{', '.join(fields)}>")


@irdl_attr_definition
class FieldsAttr(Data[tuple[tuple[str, int], ...]]):
    """`#sass.fields<"name" = 0x3>`: fields of the word that assembly text hides."""

    name = "sass.fields"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[tuple[str, int], ...]:
        def item() -> tuple[str, int]:
            name = parser.parse_str_literal()
            parser.parse_punctuation("=")
            return name, parser.parse_integer()

        return tuple(parser.parse_comma_separated_list(parser.Delimiter.ANGLE, item))

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(", ".join(f'"{name}" = {value:#x}' for name, value in self.data))


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an instruction stood in the original code section, and in memory also what stood there.

    Two origins with the same offset are equal: the instruction is a shortcut that text does not carry.
    """

    offset: int
    instruction: Instruction | None = field(default=None, compare=False)


@irdl_attr_definition
class OriginAttr(Data[Origin]):
    """`#sass.origin<0x40>`."""

    name = "sass.origin"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Origin:
        with parser.in_angle_brackets():
            return Origin(parser.parse_integer())

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<{self.data.offset:#x}>")
