"""The operation class behind every instruction.

    %r4_1 = sass.ffma<"FTZ"> "=R, $R, c[0x0][0x160], $R"(%r2, %r4) if %p0 keep (%r4) : R2 R4 P0 R4 -> R4 control<stall=4>

Operands are, in this order, the values of the reading holes, the guard, and for a guarded instruction one kept value
per result: what the result is in threads whose guard fails. A kept value and its result share a register. A branch
then has the arguments of its successors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, Self

from xdsl.dialects.builtin import StringAttr, UnitAttr
from xdsl.ir import Attribute, ErasedSSAValue, Operation, SSAValue
from xdsl.irdl import IRDLOperation, opt_prop_def, prop_def, traits_def, var_operand_def, var_result_def, var_successor_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsTerminator
from xdsl.utils.exceptions import VerifyException

from sassir import isa
from sassir.dialect import internals, syntax
from sassir.dialect.attributes import ControlAttr, FieldsAttr, OriginAttr
from sassir.dialect.registers import REGISTERS, UP, P, SassRegister
from sassir.dialect.template import TemplateAttr


class SassInstruction(IRDLOperation, metaclass=internals.Concrete):
    """One machine instruction. Each opcode is a subclass that sets MNEMONIC."""

    ins = var_operand_def(SassRegister)
    outs = var_result_def(SassRegister)
    template = prop_def(TemplateAttr)
    modifiers = opt_prop_def(StringAttr)
    """What follows the mnemonic, dots between: `FTZ.SAT`."""
    unless = opt_prop_def(UnitAttr)
    """The guard is complemented: `@!P0`."""
    constant_guard = opt_prop_def(StringAttr)
    """The guard when it is no value: `!PT`, `!UPT`."""
    place = opt_prop_def(StringAttr)
    """The label that `^` or `&` of the template stands for; without it, `^` is the first successor."""
    link = opt_prop_def(StringAttr)
    """What the linker or the driver does to the operand with `@`, or to the whole word: `ABS32_LO_32 vprintf`."""
    fields = opt_prop_def(FieldsAttr)
    control = opt_prop_def(ControlAttr)
    origin = opt_prop_def(OriginAttr)
    """Where the instruction was in the original file; absent for a new one."""

    MNEMONIC: ClassVar[str]

    @property
    def reads(self) -> tuple[SSAValue, ...]:
        """The values of the reading holes, from left to right."""
        operands, count = tuple(internals.operands(self)), len(self.template.data.read_files)
        return operands if len(operands) == count else operands[:count]

    @property
    def guard(self) -> SSAValue | None:
        """The predicate under which it executes; `unless` complements it."""
        if len(internals.operands(self)) == len(self.template.data.read_files):
            return None
        rest = self._rest()
        return rest[0] if len(rest) > len(self.results) else None

    @property
    def kept(self) -> tuple[SSAValue, ...]:
        """For each result, its value where the guard fails; empty for an instruction without guard."""
        if len(internals.operands(self)) == len(self.template.data.read_files):
            return ()
        rest = self._rest()
        return rest[len(rest) - len(self.results) :] if rest else ()

    def _rest(self) -> tuple[SSAValue, ...]:
        operands, first = internals.operands(self), len(self.template.data.read_files)
        return tuple(operands)[first:] if len(operands) > first else ()

    def verify_(self) -> None:
        """Arity, register files, tied and adjacent registers, places."""
        for problem in self.problems():
            raise VerifyException(f"`{syntax.written(self)}`: {problem}")

    def problems(self) -> Iterator[str]:
        """What is wrong with the operation, the simplest first; nothing in one that verifies."""
        template, operands, rest = self.template.data, internals.operands(self), self._rest()
        if len(self.results) != len(template.write_files):
            yield f"the template writes {len(template.write_files)} values, but there are {len(self.results)} results"
            return
        guards = int(bool(rest) and self.constant_guard is None)
        guarded = bool(rest) or self.constant_guard is not None
        if len(operands) < len(template.read_files) or (guarded and len(rest) != guards + len(self.results)):
            yield f"the template reads {len(template.read_files)} values; behind them come a guard and what each result keeps"
            return
        values = (*operands[: len(template.read_files)], *self.results)
        for file, value in zip((*template.read_files, *template.write_files), values, strict=True):
            if not isinstance(value.type, SassRegister) or file != value.type.FILE:
                yield f"the template has a hole for {file}, which {value.type} cannot fill"
        if guards and not isinstance(rest[0].type, P | UP):
            yield f"the guard is {rest[0].type}, expected a predicate"
        for result, old in zip(self.results, self.kept, strict=False):
            if result.type != old.type:
                yield f"a result in {result.type} keeps a value in {old.type}; they are one register"
        if self.template.places != (self.place is not None) + self._places_by_successor():
            yield f"the template names {self.template.places} places; each ^ and & needs a label or a successor"
        if not template.narrow:
            yield from self.misplaced()

    def _places_by_successor(self) -> int:
        return 0

    def misplaced(self) -> Iterator[str]:
        """What is wrong with the chosen registers: a group not adjacent or not aligned, a read and written hole in two places."""
        reads, writes = iter(internals.operands(self)), iter(self.results)
        for hole in self.template.data.holes:
            groups = [[next(values).type for _ in range(hole.width)] for values in [reads] * hole.reads + [writes] * hole.writes]
            if len(groups) == 2 and groups[0] != groups[1]:
                yield f"{hole} reads {_names(groups[0])} and writes {_names(groups[1])}; expected the same registers"
            chosen = [t.number for t in groups[-1] if isinstance(t, SassRegister)]
            if any(n != chosen[0] + k if chosen[0] is not None else n is not None for k, n in enumerate(chosen)):
                yield f"{hole} is filled by {_names(groups[-1])}; expected {hole.width} registers in a row"
            elif chosen[0] is not None and (chosen[0] - REGISTERS[chosen[0]].FIRST) % isa.alignment(hole.width):
                yield f"{hole} is filled by {_names(groups[-1])}; expected the first to be a multiple of {isa.alignment(hole.width)}"

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        return syntax.parse_instruction(cls, parser)

    def print(self, printer: Printer) -> None:
        syntax.print_instruction(self, printer)


class SassTerminator(IRDLOperation, metaclass=internals.Concrete):
    """An operation that ends its block.

    It has a `verify` of its own because xDSL's counts the blocks of the region at every terminator, which makes
    checking a kernel quadratic in its blocks.
    """

    traits = traits_def(IsTerminator())

    def verify(self, verify_nested_ops: bool = True) -> None:
        block = self.parent
        if block is None or block.last_op is not self:
            raise VerifyException(f"`{syntax.written(self)}` must be the last operation of a block")
        if any(successor.parent is not block.parent for successor in self.successors):
            raise VerifyException(f"`{syntax.written(self)}` goes to a block of another kernel")
        if any(isinstance(value, ErasedSSAValue) for value in internals.operands(self)):
            raise VerifyException(f"`{syntax.written(self)}` uses an erased value")
        self.verify_()


class SassBranch(SassTerminator, SassInstruction):
    """An instruction that ends its block, and where control goes from it.

    The first successor is the place that `^` names (unless a label stands for it), the last one the next instruction
    if control can reach it; the targets of an indirect branch are between them. Without successors, nothing is known
    about where control goes (RET) or it goes nowhere (EXIT).
    """

    targets = var_successor_def()

    CALLS: ClassVar[bool] = False

    @property
    def produces(self) -> bool:
        """The arguments of the successors are not forwarded: code of another section runs before, and leaves them there."""
        return self.CALLS and (self.place is not None or not self.template.places)

    def forwarded(self, i: int) -> tuple[SSAValue, ...]:
        """The values that become the arguments of successor `i`."""
        if self.produces:
            return ()
        behind = sum([len(block.args) for block in internals.successors(self)[i:]])
        operands = tuple(internals.operands(self))
        return operands[len(operands) - behind :][: len(internals.successors(self)[i].args)]

    def _rest(self) -> tuple[SSAValue, ...]:
        forwarded = 0 if self.produces else sum([len(block.args) for block in internals.successors(self)])
        operands = tuple(internals.operands(self))
        return operands[len(self.template.data.read_files) : len(operands) - forwarded]

    def _places_by_successor(self) -> int:
        return int(self.place is None and self.template.places > 0 and len(self.successors) > 0)

    def problems(self) -> Iterator[str]:
        yield from super().problems()
        if not self.produces:
            yield from forwarding_problems(self, [self.forwarded(i) for i in range(len(self.successors))])


def forwarding_problems(op: Operation, forwarded: list[tuple[SSAValue, ...]]) -> Iterator[str]:
    """Each successor must get as many values as it has arguments, in the same registers."""
    for block, values in zip(op.successors, forwarded, strict=False):
        given, expected = [v.type for v in values], [a.type for a in block.args]
        if given != expected:
            yield f"passes {_names(given)} to a block that takes {_names(expected)}"


def _names(types: Sequence[Attribute]) -> str:
    return ", ".join([syntax.short(t) for t in types]) or "nothing"
