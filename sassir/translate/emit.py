"""Emit: allocated SSA to instructions, laid out one behind the other, with displacements for that layout."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Block, Operation, SSAValue

from sassir.analysis.allocation import check_allocation
from sassir.asm.control import Control
from sassir.asm.instruction import INSTRUCTION_BYTES, Instruction
from sassir.asm.operand import HOLE, Operand, target
from sassir.asm.program import Function, Line, Program
from sassir.dialect import internals
from sassir.dialect.container import ContainerAttr
from sassir.dialect.instruction import SassBranch, SassInstruction
from sassir.dialect.operations import EndOp, KernelOp, LabelOp, NextOp, OpaqueOp, UndefinedOp, added_shared, asked_registers
from sassir.dialect.registers import REGISTER_NAMES, REGISTERS, SassRegister
from sassir.dialect.syntax import written
from sassir.dialect.template import ADDRESS, LINKED, PLACE, READ, WRITE
from sassir.errors import TranslationError
from sassir.translate.branches import RELATIVE, may_continue
from sassir.translate.held import may_hold
from sassir.translate.lift import ARCH, CONTAINER
from sassir.translate.links import unmarked
from sassir.translate.shape import shape, with_held

_NO_CONTROL = Control()


def emit_program(module: ModuleOp) -> Program:
    """The program that `module` describes.

    Raises TranslationError, naming the kernel and the operation, for a value without a register, a register that holds
    another value when it is read, a template that does not fit the instruction, control that goes on to a block that is
    not behind, an unknown or doubled label, and for a kernel with the attribute `fixed` in which an instruction moved.
    """
    arch = module.attributes.get(ARCH)
    if not isinstance(arch, StringAttr):
        raise TranslationError(f'the module has no architecture; expected the attribute {ARCH} = "sm_90" (or another one)')
    container = module.attributes.get(CONTAINER)
    functions = tuple([emit_function(op) for op in module.body.ops if isinstance(op, KernelOp)])
    return Program(arch.data, functions, container.bytes if isinstance(container, ContainerAttr) else None)


def emit_function(kernel: KernelOp) -> Function:
    """The code section that `kernel` describes; raises as `emit_program`."""
    try:
        check_allocation(kernel.body)
        function = _Layout(kernel).function()
    except TranslationError as error:
        raise error.at(f"kernel {kernel.function.data}") from error
    _check_origins(kernel, function)
    return function


def _check_origins(kernel: KernelOp, function: Function) -> None:
    where = f"kernel {kernel.function.data}"
    moved: dict[int, int] = {}
    for i, line in enumerate(function.lines):
        if line.origin is not None:
            if line.origin in moved:
                raise TranslationError(f"{where}: two instructions say `at {line.origin:#x}`; a new instruction has no `at`")
            moved[line.origin] = INSTRUCTION_BYTES * i
        if kernel.fixed is not None and line.origin != INSTRUCTION_BYTES * i:
            raise TranslationError(
                f"{where}: `{line.instruction}` moved to {INSTRUCTION_BYTES * i:#x}, but the code of this kernel must stay in place: "
                f"{kernel.fixed.data}"
            )


class _Place(NamedTuple):
    """An operation that becomes an instruction, and the offset it gets."""

    op: SassInstruction
    offset: int


class _Layout:
    def __init__(self, kernel: KernelOp) -> None:
        self.section = None if kernel.section is None else kernel.section.data
        self.name = kernel.function.data
        self.shared, self.registers = added_shared(kernel), asked_registers(kernel)
        self.places: list[_Place] = []
        self.starts: dict[Block, int] = {}
        self.labels: dict[str, int] = {}
        self.exported: dict[str, int] = {}
        offset = 0
        for block in kernel.body.blocks:
            self.starts[block] = offset
            for op in block.ops:
                if isinstance(op, SassInstruction):
                    self.places.append(_Place(op, offset))
                    offset += INSTRUCTION_BYTES
                elif isinstance(op, LabelOp):
                    if offset != self.starts[block]:
                        raise TranslationError(f"`{written(op)}` is inside of a block; control can only come to the start of one")
                    self._name(op, offset)
                elif not isinstance(op, NextOp | EndOp | UndefinedOp):
                    raise TranslationError(f"`{written(op)}` is no machine instruction; lower it first")
            self._check_end(block)

    def _name(self, label: LabelOp, offset: int) -> None:
        name = label.label.data
        if name in self.labels:
            raise TranslationError(f"label @{name} is there twice")
        self.labels[name] = offset
        if label.private is None:
            self.exported[name] = offset

    def _check_end(self, block: Block) -> None:
        last = block.last_op
        if isinstance(last, NextOp):
            self._check_order(last, last.target)
        elif not isinstance(last, EndOp | SassBranch):
            raise TranslationError("a block has no branch, sass.next or sass.end at its end")

    def _check_order(self, op: Operation, following: Block | None) -> None:
        """Control that only goes on must find its block behind."""
        assert op.parent is not None
        if following is not op.parent.next_block:
            raise TranslationError(f"`{written(op)}` goes on to a block that does not lie behind it; add a branch or move the block")

    def function(self) -> Function:
        """Every operation as an instruction."""
        lines = tuple([self._line(op, offset) for op, offset in self.places])
        links = dict([link for op, _ in self.places if (link := _link(op)) is not None])
        return Function(self.name, self.section, lines, self.exported, links, self.shared, self.registers)

    def _line(self, op: SassInstruction, offset: int) -> Line:
        place = self._named_place(op, offset)
        mnemonic, modifiers = _name_of(op)
        template = op.template
        fields, control, origin = op.fields, op.control, op.origin
        made = Instruction(
            mnemonic,
            modifiers,
            template.fill(_registers(op), place),
            _guard(op),
            control.data if control is not None else _NO_CONTROL,
            fields.data if fields is not None else (),
        )
        if isinstance(op, SassBranch) and may_continue(made):
            self._check_order(op, op.successors[-1] if op.successors else None)
        plain = made if op.link is None else made._replace(operands=tuple([unmarked(o) for o in made.operands]))
        if origin is not None and (before := origin.data.instruction) is not None and before[:-1] == plain[:-1]:
            return Line(before, origin.data.offset)
        _check_values(op, made)
        return Line(plain, origin.data.offset if origin is not None else None)

    def _named_place(self, op: SassInstruction, offset: int) -> Operand | None:
        if not op.template.places:
            return None
        if op.place is None:
            return target(self.starts[op.successors[0]] - offset)
        to = self.labels.get(op.place.data)
        if to is None:
            raise TranslationError(f"`{written(op)}` names the label @{op.place.data}, which is not in the kernel")
        if any(a.template == ADDRESS for a in op.template.data.arguments):
            base = offset + INSTRUCTION_BYTES if op.MNEMONIC in RELATIVE else 0
            return Operand.of(f"{to - base:#x}")
        return target(to - offset)


def _link(op: SassInstruction) -> tuple[int, str] | None:
    """Where the instruction was that the linker or the driver fills something into, and what."""
    if op.link is None:
        template = op.template
        if LINKED in template.text and any(a.template.startswith(LINKED) for a in template.data.arguments):
            raise TranslationError(f"`{written(op)}` does not say what the linker fills in; expected `link \"…\"`")
        return None
    if op.origin is None:
        raise TranslationError(f"`{written(op)}` is a new instruction; the linker fills only into those that were in the file")
    return op.origin.data.offset, op.link.data


def _name_of(op: SassInstruction) -> tuple[str, tuple[str, ...]]:
    """Mnemonic and modifiers."""
    modifiers = _split(op.modifiers.data) if op.modifiers is not None else ()
    if isinstance(op, OpaqueOp) and modifiers:
        return modifiers[0], modifiers[1:]
    return op.MNEMONIC, modifiers


@cache
def _split(modifiers: str) -> tuple[str, ...]:
    return tuple(modifiers.split("."))


def _check_values(op: SassInstruction, made: Instruction) -> None:
    """The template must say what the instruction reads and writes, or the checks on values prove nothing."""
    marks = {a.template for a in op.template.data.arguments}
    expected = shape(made.mnemonic, made.modifiers, made.operands, next((m for m in (PLACE, ADDRESS) if m in marks), ""))
    own, held = op.reads[: len(expected.reads)], op.reads[len(expected.reads) :] if may_hold(made) else ()
    template = with_held(expected.template, op.template.data.read_files[len(own) :]) if held else expected.template
    if op.template != template or type(op) is not expected.op:
        raise TranslationError(f"`{written(op)}` is an instruction that {expected.op.name} {template} describes")
    for numbers, values in ((expected.reads, own), (expected.writes, op.results)):
        if [REGISTERS[n] for n in numbers] != [v.type for v in values]:
            raise TranslationError(f"`{written(op)}` touches {', '.join([REGISTER_NAMES[n] for n in numbers])}, in this order")


def _guard(op: SassInstruction) -> Operand | None:
    if op.constant_guard is not None:
        return Operand.parse(op.constant_guard.data)
    guard = op.guard
    return None if guard is None else Operand.of(HOLE if op.unless is None else f"!{HOLE}", (_register_name(op, guard),))


def _registers(op: SassInstruction) -> list[str]:
    """The name of the register in each visible hole."""
    template = op.template.data
    if not template.narrow:
        for problem in op.misplaced():
            raise TranslationError(f"`{written(op)}`: {problem}")
    operands, results = tuple(internals.operands(op)), tuple(op.results)
    names: list[str] = []
    at = to = 0
    for access, _, width in template.holes[: template.visible]:
        names.append(_register_name(op, operands[at] if access != WRITE else results[to]))
        at += width if access != WRITE else 0
        to += width if access != READ else 0
    return names


def _register_name(op: SassInstruction, value: SSAValue) -> str:
    kind = value.type
    if isinstance(kind, SassRegister) and (number := kind.number) is not None:
        return REGISTER_NAMES[number]
    raise TranslationError(f"`{written(op)}` has a value of type {kind}; allocate registers first")
