"""What the instructions need, and what the file says that they need."""

from __future__ import annotations

from collections.abc import Iterator

from sassir.asm.instruction import INSTRUCTION_BYTES, OPAQUE
from sassir.asm.operand import ZERO_REGISTERS
from sassir.asm.program import Function
from sassir.cubin.attribute_kinds import MIN_STACK_SIZE
from sassir.cubin.code import CodeSection
from sassir.cubin.nvinfo import Attribute, SymbolValue, decode, read_attributes
from sassir.cubin.resources import counts, header_registers
from sassir.errors import TranslationError
from sassir.findings import Finding
from sassir.translate.branches import Branches
from sassir.translate.resources import RESERVED_REGISTERS, barrier_numbers, highest_register
from sassir.translate.shape import shape
from sassir.verify.container.subject import SEEN, Subject

_WRAP = 1 << 32
_REGISTERS = "ptxas asks for two more than the highest number in use: held by all 11,963 functions looked at; Mesa NAK"
_BARRIERS = "ptxas counts up to the highest number in use: held by all 12,396 functions looked at"
_STACK = "ptxas takes FRAME_SIZE bytes from R1 at the start: held by all 6,425 functions looked at"


def resource_findings(subject: Subject) -> Iterator[Finding]:
    """Registers, barriers and stack of each kernel cover what its code uses."""
    for section in subject.cubin.code:
        function, kernel = subject.functions.get(section.index), section.kernel
        registers, barriers, stack = counts(subject.cubin, section)
        header = header_registers(subject.elf.sections[section.index])
        if header and registers is not None and header != registers:
            message = f"REGCOUNT is {registers}, but the section header says {header}"
            yield Finding("register-count", kernel, None, message, SEEN)
        if function is None:
            continue
        code = [line.instruction for line in function.lines]
        highest = highest_register([shape(c.mnemonic, c.modifiers, c.operands) for c in code])
        if registers is not None and highest >= 0 and registers < highest + 1 + RESERVED_REGISTERS:
            message = f"{registers} registers, but the code uses R{highest}: expected at least {highest + 1 + RESERVED_REGISTERS}"
            yield Finding("register-count", kernel, None, message, _REGISTERS)
        numbers = [n for c in code if c.mnemonic == "BAR" for n in barrier_numbers(c) if n is not None]
        if barriers is not None and numbers and barriers <= max(numbers):
            yield Finding("barrier-count", kernel, None, f"{barriers} barriers, but the code uses barrier {max(numbers)}", _BARRIERS)
        taken = _frame(function, section)
        if stack is not None and taken > stack:
            yield Finding("stack-size", kernel, None, f"FRAME_SIZE is {stack:#x}, but the code takes {taken:#x} bytes from R1", _STACK)
        yield from _depth(subject, section, stack or 0)


def _frame(function: Function, section: CodeSection) -> int:
    """Bytes that the kernel takes from its stack pointer; 0 when it has no frame."""
    end = min([f.offset for f in section.functions if f.offset], default=function.size)
    for instruction, _ in function.lines[: end // INSTRUCTION_BYTES]:
        registers = [r for o in instruction.operands for r in o.registers if r not in ZERO_REGISTERS]
        number = next((o.integer for o in instruction.operands if o.integer), None)
        if registers == ["R1", "R1"] and number is not None and instruction.operands[0].text == "R1":
            return -number if number < 0 else _WRAP - number if number > _WRAP // 2 else 0
    return 0


def _depth(subject: Subject, section: CodeSection, stack: int) -> Iterator[Finding]:
    for attribute, value in _symbol_values(subject.cubin.file_attributes):
        if attribute.id == MIN_STACK_SIZE and section.head and value.symbol == section.head.symbol and value.value < stack:
            message = f"MIN_STACK_SIZE is {value.value:#x}, less than the frame of the kernel itself, {stack:#x}"
            yield Finding("stack-size", section.kernel, None, message, SEEN)


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
