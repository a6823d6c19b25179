"""The custom text of an instruction: `sass.mnemonic<"MODIFIERS"> "template"(operands) … : types -> types`.

Types are register names (`R4`, or `R` while none is chosen). They are left out when no register is chosen yet, since
the template tells the files. Clauses come in a fixed order; each may be absent:
`if`/`unless` guard, `keep (values)`, `@label`, `^block(values : types)`, types, `link "…"`, `fields<>`, `control<>`, `at offset`.
"""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO
from typing import TYPE_CHECKING, TypeVar

from xdsl.dialects.builtin import StringAttr, UnitAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer

from sassir.dialect import internals
from sassir.dialect.attributes import ControlAttr, FieldsAttr, Origin, OriginAttr
from sassir.dialect.registers import FILES, P, SassRegister, register
from sassir.dialect.template import Template, parse_template

if TYPE_CHECKING:
    from sassir.dialect.instruction import SassInstruction

InstructionT = TypeVar("InstructionT", bound="SassInstruction")


def short(type: Attribute) -> str:
    """A register type as the custom text writes it."""
    return type.register_name or type.FILE if isinstance(type, SassRegister) else str(type)


def written(op: Operation) -> str:
    """The operation as text, for messages; names of values are made up anew."""
    stream = StringIO()
    Printer(stream).print_op(op)
    return stream.getvalue()


def print_instruction(op: SassInstruction, printer: Printer) -> None:
    """Print what follows the name of the operation."""
    template = op.template.data
    operands = internals.operands(op)
    own = operands[: len(template.read_files)]
    if op.modifiers is not None:
        printer.print_string(f'<"{op.modifiers.data}">')
    printer.print_string(f' "{template.text}"')
    printer.print_operands(own)
    guard, kept = op.guard, op.kept
    if guard is not None or op.constant_guard is not None:
        printer.print_string(" unless " if op.unless is not None else " if ")
        if guard is not None:
            printer.print_ssa_value(guard)
            own += (guard,)
        elif op.constant_guard is not None:
            printer.print_string(f'"{op.constant_guard.data}"')
    if kept:
        printer.print_string(" keep ")
        printer.print_operands(kept)
        own += kept
    if op.place is not None:
        printer.print_string(" ")
        printer.print_symbol_name(op.place)
    if op.successors:
        print_successors(op, printer, len(own))
    _print_types(own, op.results, guard, printer)
    if op.link is not None:
        printer.print_string(" link ")
        printer.print_string_literal(op.link.data)
    for name, attribute in (("fields", op.fields), ("control", op.control)):
        if attribute is not None:
            printer.print_string(f" {name}")
            attribute.print_parameter(printer)
    if op.origin is not None:
        printer.print_string(f" at {op.origin.data.offset:#x}")
    if op.attributes:
        printer.print_op_attributes(op.attributes, print_keyword=True)


def _print_types(operands: Sequence[SSAValue], results: Sequence[SSAValue], guard: SSAValue | None, printer: Printer) -> None:
    types = [v.type for v in (*operands, *results)]
    if all(isinstance(t, SassRegister) and not t.is_allocated for t in types) and (guard is None or guard.type == P.free()):
        return
    printer.print_string(" : " + " ".join([short(v.type) for v in operands]))
    if results:
        printer.print_string((" " if operands else "") + "-> " + " ".join([short(v.type) for v in results]))


def print_successors(op: Operation, printer: Printer, first: int) -> None:
    """Print ` ^a(%x, %y : R1 R2), ^b`; the forwarded values are the operands from `first` on."""
    forwarded = internals.operands(op)[first:]
    for i, block in enumerate(op.successors):
        printer.print_string(", " if i else " ")
        printer.print_block_name(block)
        if forwarded and block.args:
            values, forwarded = forwarded[: len(block.args)], forwarded[len(block.args) :]
            printer.print_string("(")
            printer.print_list(values, printer.print_ssa_value)
            printer.print_string(" : " + " ".join([short(v.type) for v in values]) + ")")


def parse_instruction(cls: type[InstructionT], parser: Parser) -> InstructionT:
    """Parse what `print_instruction` prints. Raises ParseError."""
    properties: dict[str, Attribute] = {}
    if parser.parse_optional_punctuation("<"):
        properties["modifiers"] = StringAttr(parser.parse_str_literal())
        parser.parse_punctuation(">")
    properties["template"] = template = parse_template(parser)
    operands, files = _parse_operands(parser, template.data, properties)
    if (place := parser.parse_optional_symbol_name()) is not None:
        properties["place"] = place
    successors, forwarded = parse_successors(parser)
    writes = template.data.write_files
    types = [FILES[file].free() for file in (*files, *writes)]
    if parser.parse_optional_punctuation(":"):
        types = _parse_registers(parser, len(files))
        if writes:
            parser.parse_punctuation("->")
            types += _parse_registers(parser, len(writes))
    if parser.parse_optional_keyword("link"):
        properties["link"] = StringAttr(parser.parse_str_literal())
    if parser.parse_optional_keyword("fields"):
        properties["fields"] = FieldsAttr(FieldsAttr.parse_parameter(parser))
    if parser.parse_optional_keyword("control"):
        properties["control"] = ControlAttr.of(ControlAttr.parse_parameter(parser))
    if parser.parse_optional_keyword("at"):
        properties["origin"] = OriginAttr(Origin(parser.parse_integer()))
    attributes = parser.parse_optional_attr_dict_with_keyword()
    values = [parser.resolve_operand(o, t) for o, t in zip(operands, types, strict=False)]
    return cls.create(
        operands=[*values, *forwarded],
        result_types=types[len(files) :],
        properties=properties,
        attributes=attributes.data if attributes else {},
        successors=successors,
    )


def _parse_operands(parser: Parser, template: Template, properties: dict[str, Attribute]) -> tuple[list[UnresolvedOperand], list[str]]:
    """The operands with guard and kept values, and the register file of each."""
    operands = _parse_values(parser, len(template.read_files), "the template reads")
    files = [*template.read_files]
    keyword = parser.parse_optional_keyword_in(("if", "unless"))
    if keyword == "unless":
        properties["unless"] = UnitAttr()
    if keyword is not None:
        if (constant := parser.parse_optional_str_literal()) is not None:
            properties["constant_guard"] = StringAttr(constant)
        else:
            operands.append(parser.parse_unresolved_operand())
            files.append(P.FILE)
    if parser.parse_optional_keyword("keep"):
        operands += _parse_values(parser, len(template.write_files), "the template writes")
        files += template.write_files
    return operands, files


def _parse_values(parser: Parser, count: int, what: str) -> list[UnresolvedOperand]:
    at = parser.pos
    values = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_unresolved_operand)
    if len(values) != count:
        parser.raise_error(f"{what} {count} values, got {len(values)}", at, parser.pos)
    return values


def parse_successors(parser: Parser) -> tuple[list[Block], list[SSAValue]]:
    """Parse what `print_successors` prints. A `^` that begins a line is the next block, not a successor."""
    blocks: list[Block] = []
    values: list[SSAValue] = []
    if _begins_line(parser):
        return blocks, values
    while (block := parser.parse_successor() if blocks else parser.parse_optional_successor()) is not None:
        blocks.append(block)
        if parser.parse_optional_punctuation("("):
            names: list[UnresolvedOperand] = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_unresolved_operand)
            parser.parse_punctuation(":")
            values += [parser.resolve_operand(n, t) for n, t in zip(names, _parse_registers(parser, len(names)), strict=True)]
            parser.parse_punctuation(")")
        if not parser.parse_optional_punctuation(","):
            break
    return blocks, values


def _begins_line(parser: Parser) -> bool:
    """Nothing is before the next token in its line."""
    text = parser.lexer.input.content
    return not text[text.rfind("\n", 0, parser.pos) + 1 : parser.pos].strip()


def _parse_registers(parser: Parser, count: int) -> list[SassRegister]:
    return [_parse_register(parser) for _ in range(count)]


def _parse_register(parser: Parser) -> SassRegister:
    at = parser.pos
    name = parser.parse_identifier()
    try:
        return register(name)
    except ValueError as error:
        parser.raise_error(str(error), at, parser.pos)
