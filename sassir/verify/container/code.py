"""What the instructions need, and what the file says that they need."""

from __future__ import annotations

from collections.abc import Iterator

from sassir.asm.instruction import INSTRUCTION_BYTES, OPAQUE
from sassir.asm.operand import ZERO_REGISTERS
from sassir.asm.program import Function
from sassir.cubin.attribute_kinds import MIN_STACK_SIZE
from sassir.cubin.code import CodeSection, Resources
from sassir.cubin.nvinfo import Attribute, SymbolValue, decode, read_attributes
from sassir.cubin.resources import counts, function_values, header_registers
from sassir.errors import TranslationError
from sassir.findings import Finding
from sassir.machine.constant_bank import constant_bank
from sassir.translate.branches import Branches
from sassir.translate.resources import BARRIER_RULE, REGISTER_RULE, RESERVED_REGISTERS, barrier_numbers, highest_register
from sassir.translate.shape import shape
from sassir.verify.container.subject import SEEN, Subject

_WRAP = 1 << 32
_STACK_RULE = "ptxas takes FRAME_SIZE bytes from R1 at the start: docs/container.md"


def resource_findings(subject: Subject) -> Iterator[Finding]:
    """Registers, barriers and stack of each kernel cover what its code uses."""
    for section in subject.cubin.code:
        registers, barriers, stack = counts(subject.cubin, section)
        header = header_registers(subject.elf.sections[section.index])
        if header and registers is not None and header != registers:
            message = f"REGCOUNT is {registers}, but the section header says {header}"
            yield Finding("register-count", section.kernel, None, message, SEEN)
        depth = function_values(subject.cubin, section).get(MIN_STACK_SIZE)
        if stack is not None and depth is not None and depth < stack:
            message = f"MIN_STACK_SIZE is {depth:#x}, less than the frame of the kernel itself, {stack:#x}"
            yield Finding("stack-size", section.kernel, None, message, SEEN)
        function = subject.functions.get(section.index)
        if function is not None:
            yield from _use(section, function, Resources(registers, barriers, stack), subject.cubin.arch)


def _use(section: CodeSection, function: Function, said: Resources, arch: str) -> Iterator[Finding]:
    """What the code uses against what the file says."""
    code = [line.instruction for line in function.lines]
    highest = highest_register([shape(c.mnemonic, c.modifiers, c.operands) for c in code])
    needed = highest + 1 + RESERVED_REGISTERS
    if said.registers is not None and highest >= 0 and said.registers < needed:
        message = f"{said.registers} registers, but the code uses R{highest}: expected at least {needed}"
        yield Finding("register-count", section.kernel, None, message, REGISTER_RULE)
    barrier = max([n for c in code if c.mnemonic == "BAR" for n in barrier_numbers(c) if n is not None], default=-1)
    if said.barriers is not None and said.barriers <= barrier:
        message = f"{said.barriers} barriers, but the code uses barrier {barrier}"
        yield Finding("barrier-count", section.kernel, None, message, BARRIER_RULE)
    taken = _frame(function, section, arch)
    if said.stack is not None and said.stack < taken:
        message = f"FRAME_SIZE is {said.stack:#x}, but the code takes {taken:#x} bytes from R1"
        yield Finding("stack-size", section.kernel, None, message, _STACK_RULE)


def _frame(function: Function, section: CodeSection, arch: str) -> int:
    """Bytes that the kernel takes from its stack pointer; 0 when it has no frame, and when R1 is just a register."""
    pointer = (0, constant_bank(arch).stack)
    end = min([f.offset for f in section.functions if f.offset], default=function.size)
    for instruction, _ in function.lines[: end // INSTRUCTION_BYTES]:
        registers = [r for o in instruction.operands for r in o.registers if r not in ZERO_REGISTERS]
        number = next((o.integer for o in instruction.operands if o.integer), None)
        if registers == ["R1", "R1"] and number is not None and instruction.operands[0].text == "R1":
            return -number if number < 0 else _WRAP - number if number > _WRAP // 2 else 0
        if registers[:1] == ["R1"] and instruction.operands[0].text == "R1" and all(o.constant != pointer for o in instruction.operands):
            return 0
    return 0


def flow_findings(subject: Subject) -> Iterator[Finding]:
    """Every branch, call and return goes to an instruction; return addresses are those behind calls."""
    for section in subject.cubin.code:
        function = subject.functions.get(section.index)
        if function is None:
            continue
        for i, (instruction, _) in enumerate(function.lines):
            if instruction.mnemonic == OPAQUE:
                message = f"no form of the {subject.cubin.arch} table describes the word {instruction.word:#034x}"
                yield Finding("unknown-instruction", section.kernel, INSTRUCTION_BYTES * i, message, "encoding tables", error=False)
        try:
            found = Branches(function, subject.jump_tables.get(section.index, {}))
        except TranslationError as error:
            yield Finding("control-flow", section.kernel, None, str(error), SEEN)
            continue
        for i, problem in found.problems.items():
            # What only stops sassir from changing the code is legal: ptxas writes it, a BSYNC far from the place of its BSSY for one.
            if function.lines[i].instruction.mnemonic not in (OPAQUE, "BSYNC") and not subject.cubin.relocatable:
                yield Finding("control-flow", section.kernel, INSTRUCTION_BYTES * i, problem, SEEN)


def constant_findings(subject: Subject) -> Iterator[Finding]:
    """Constant operands lie inside their banks."""
    sections = subject.elf.sections
    shared = {s.name[12:13]: s.size for s in sections if s.name.startswith(".nv.constant") and not s.info}
    for section in subject.cubin.code:
        function = subject.functions.get(section.index)
        banks = {s.name[12:13]: s.size for s in sections if s.name.startswith(".nv.constant") and s.info == section.index}
        for i, (instruction, _) in enumerate(function.lines if function else ()):
            for operand in instruction.operands:
                if operand.constant is None or operand.registers:
                    continue
                bank, offset = operand.constant
                size = banks.get(str(bank), shared.get(str(bank)))
                if size is not None and not 0 <= offset < size:
                    message = f"`{instruction.text}` reads beyond the {size:#x} bytes of bank {bank}"
                    yield Finding("constant-outside-bank", section.kernel, INSTRUCTION_BYTES * i, message, SEEN)


def other_form_findings(subject: Subject) -> Iterator[Finding]:
    """The form for other SMs of the family (`.nv.merc.nv.info`) has the same counts; where it has not, the code was changed alone."""
    elf, symbols = subject.elf, subject.cubin.symbols
    values = [(a, v) for a, v in _symbol_values(subject.cubin.file_attributes) if v.symbol < len(symbols)]
    counted = {(a.name, symbols[v.symbol].name): v.value for a, v in values}
    for section in elf.named(".nv.merc.nv.info"):
        names = elf.symbols(elf.sections[section.link])
        for attribute, value in _symbol_values(read_attributes(elf.content(section), section.name)):
            name = names[value.symbol].name if value.symbol < len(names) else ""
            here = counted.get((attribute.name, name), value.value)
            if here != value.value:
                message = f"{attribute.name} of {name} is {here}, but {value.value} in the form for other SMs, which is of other code"
                yield Finding("other-form", name, None, message, SEEN, error=False)


def _symbol_values(attributes: tuple[Attribute, ...]) -> Iterator[tuple[Attribute, SymbolValue]]:
    for attribute in attributes:
        value = decode(attribute)
        if isinstance(value, SymbolValue):
            yield attribute, value
