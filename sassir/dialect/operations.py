"""The operations: one class per mnemonic of `sassir.isa`, and the few that are no instruction."""

from __future__ import annotations

from typing import ClassVar, Self, cast

from xdsl.dialects.builtin import IntAttr, StringAttr, UnitAttr
from xdsl.ir import Attribute, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    successor_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.hints import isa as has_type

from sassir import isa
from sassir.asm.instruction import OPAQUE
from sassir.dialect import internals, syntax
from sassir.dialect.instruction import SassBranch, SassInstruction, SassTerminator, forwarding_problems
from sassir.dialect.registers import SassRegister

_LEAVING = frozenset({"branch", "call", "exit", "indirect", "return"})
"""The kinds of control in `sassir.isa` that end a block; BSYNC does so too, and resumes where its BSSY says."""
COLLECTIVE = ("WARPSYNC", "COLLECTIVE")
"""The form of WARPSYNC that names a place, where the threads that its mask leaves out continue."""


ALLOCATED = "sass.allocated"
"""The attribute of a kernel that keeps its registers although others were freed: why."""
SHARED = "sass.shared"
"""The attribute of a kernel that needs more static shared memory than it had: bytes. See `added_shared`."""
REGISTERS = "sass.registers"
"""The attribute of a kernel that asks for more registers than its code uses: the count. See `asked_registers`."""


@irdl_op_definition
class KernelOp(IRDLOperation):
    """One code section: a kernel with the device functions behind it. Its blocks lie in memory in the order of the region."""

    name = "sass.kernel"
    function = prop_def(StringAttr)
    section = opt_prop_def(IntAttr)
    """Index of the section in the ELF file; names need not be unique there."""
    fixed = opt_prop_def(StringAttr)
    """Why nothing in this kernel may move, in memory or to other registers; absent for a kernel that is fully understood."""
    body = region_def()
    traits = traits_def(IsolatedFromAbove())

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.function)
        if self.section is not None:
            printer.print_string(f" section {self.section.data}")
        if self.fixed is not None:
            printer.print_string(" fixed ")
            printer.print_string_literal(self.fixed.data)
        printer.print_string(" ")
        printer.print_region(self.body)
        if self.attributes:
            printer.print_op_attributes(self.attributes, print_keyword=True)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        properties: dict[str, Attribute] = {"function": parser.parse_symbol_name()}
        if parser.parse_optional_keyword("section"):
            properties["section"] = IntAttr(parser.parse_integer())
        if parser.parse_optional_keyword("fixed"):
            properties["fixed"] = StringAttr(parser.parse_str_literal())
        region = parser.parse_region()
        attributes = parser.parse_optional_attr_dict_with_keyword()
        return cls.create(properties=properties, regions=[region], attributes=attributes.data if attributes else {})

    @classmethod
    def of(cls, function: str, section: int | None, body: Region, fixed: str | None) -> KernelOp:
        """A kernel from plain values."""
        properties: dict[str, Attribute] = {"function": StringAttr(function)}
        if section is not None:
            properties["section"] = IntAttr(section)
        if fixed is not None:
            properties["fixed"] = StringAttr(fixed)
        return cls.create(properties=properties, regions=[body])


def added_shared(kernel: KernelOp) -> int:
    """How many bytes of static shared memory passes have added to what the kernel had."""
    return _number(kernel, SHARED)


def asked_registers(kernel: KernelOp) -> int:
    """The register count that passes ask for, whatever the code uses; 0 if none does."""
    return _number(kernel, REGISTERS)


def _number(kernel: KernelOp, name: str) -> int:
    found = kernel.attributes.get(name)
    return found.data if has_type(found, IntAttr[int]) else 0


@irdl_op_definition
class LabelOp(IRDLOperation, metaclass=internals.Concrete):
    """Names the place of the next instruction. A private label is only for operands of this kernel, not part of the file."""

    name = "sass.label"
    label = prop_def(StringAttr)
    private = opt_prop_def(UnitAttr)

    def print(self, printer: Printer) -> None:
        printer.print_string(" private " if self.private is not None else " ")
        printer.print_symbol_name(self.label)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        private = parser.parse_optional_keyword("private") is not None
        return cls.of(parser.parse_symbol_name().data, private)

    @classmethod
    def of(cls, label: str, private: bool) -> Self:
        """A label from plain values."""
        return cls.create(properties={"label": StringAttr(label)} | ({"private": UnitAttr()} if private else {}))


@irdl_op_definition
class UndefinedOp(IRDLOperation, metaclass=internals.Concrete):
    """Whatever a register holds. No instruction: a guarded one keeps this where nobody reads what it leaves alone."""

    name = "sass.undefined"
    value = result_def(SassRegister)
    assembly_format = "attr-dict `:` type($value)"

    @classmethod
    def of(cls, register: SassRegister) -> Self:
        """An undefined value in a register of this kind."""
        return cls.create(result_types=[register])


@irdl_op_definition
class NextOp(SassTerminator):
    """Control goes on to the next block. No instruction: that block must lie directly behind."""

    name = "sass.next"
    arguments = var_operand_def(SassRegister)
    target = successor_def()

    def forwarded(self, i: int) -> tuple[SSAValue, ...]:
        """The values that become the arguments of the next block."""
        return internals.operands(self)

    def verify_(self) -> None:
        for problem in forwarding_problems(self, [internals.operands(self)]):
            raise VerifyException(f"`{syntax.written(self)}`: {problem}")

    def print(self, printer: Printer) -> None:
        syntax.print_successors(self, printer, 0)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        successors, forwarded = syntax.parse_successors(parser)
        return cls.create(operands=forwarded, successors=successors)


@irdl_op_definition
class EndOp(SassTerminator):
    """The code section ends here, behind an instruction that could go on: padding."""

    name = "sass.end"

    def print(self, printer: Printer) -> None:
        pass

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        return cls.create()


@irdl_op_definition
class OpaqueOp(SassInstruction):
    """An instruction whose operands `sassir.isa` does not describe. It has no values; its registers are part of the text.

    `modifiers` is its whole name. A word that no encoder table describes has no name; its text is the word.
    """

    name = "sass.opaque"
    MNEMONIC: ClassVar = OPAQUE


def _define(mnemonic: str, modifiers: tuple[str, ...] = ()) -> type[SassInstruction]:
    """The class for one mnemonic of the instruction set, or for one with these modifiers."""
    description = isa.describe(mnemonic, modifiers)
    assert description is not None
    branch = description.control in _LEAVING or mnemonic == "BSYNC" or (mnemonic, *modifiers) == COLLECTIVE
    members = {
        "__doc__": description.meaning,
        "__module__": __name__,
        "__annotations__": {"MNEMONIC": ClassVar[str], "CALLS": ClassVar[bool]},  # how IRDL tells constants from fields
        "name": "sass." + "_".join([mnemonic, *modifiers]).lower(),
        "MNEMONIC": mnemonic,
        "CALLS": description.control == "call",
    }
    definition = type(f"{mnemonic.title()}Op", (SassBranch if branch else SassInstruction,), members)
    return irdl_op_definition(cast(type[SassInstruction], definition))


INSTRUCTIONS: dict[str, type[SassInstruction]] = {mnemonic: _define(mnemonic) for mnemonic in isa.DESCRIPTIONS}
"""The class of each mnemonic."""
WarpsyncCollectiveOp = _define(*COLLECTIVE[:1], COLLECTIVE[1:])


def operation_class(mnemonic: str, modifiers: tuple[str, ...]) -> type[SassInstruction] | None:
    """The class of an instruction; None if `sassir.isa` does not know its mnemonic."""
    if (mnemonic, *modifiers[:1]) == COLLECTIVE:
        return WarpsyncCollectiveOp
    return INSTRUCTIONS.get(mnemonic)
