"""One of the two kernels, as far as its execution depends on nothing but its code and what is known of its launches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property

import numpy as np

from sassir import isa
from sassir.asm.instruction import Instruction
from sassir.asm.operand import ZERO_REGISTERS, Operand, register_file
from sassir.emulator.address import following
from sassir.emulator.batch import access_width
from sassir.errors import SemanticsError
from sassir.isa.semantics import Constant, Register, semantics
from sassir.isa.semantics.evaluator import Source
from sassir.machine.constant_bank import constant_bank
from sassir.verify.symbolic import terms
from sassir.verify.symbolic.kernels import Kernel
from sassir.verify.symbolic.terms import Term
from sassir.verify.symbolic.values import NO_TERM, Value, term_of

SPACES = {"G": "global", "S": "shared", "L": "local"}
WORD = 4
_MEETINGS = {"BREAK", "BSSY", "BSYNC"}
_NARROW = frozenset({"U8", "S8", "U16", "S16"})

Results = dict[tuple[object, ...], list[Term]]
"""What instructions have computed, by instruction and operands."""


class UnknownError(Exception):
    """An instruction, or a way of control, that is not followed; the message says which."""


def width_of(register: str) -> int:
    """Bits of a register, 0 for a predicate."""
    return 0 if register_file(register) in ("P", "UP") else 32


def undefined(register: str) -> Term:
    """What a register, or a word of the stack, holds that was never written: one value that is not known."""
    return terms.variable("undefined" if width_of(register) else "undefined predicate", width_of(register))


def blanked(instruction: Instruction) -> str:
    """The instruction without its registers and what belongs to its schedule: what has to be the same on both sides."""
    operands = [o.without_reuse().template for o in instruction.operands if o.displacement is None and not o.text.startswith("SB")]
    return f"{instruction.name} {', '.join(operands)} {instruction.extra or ''}"


def registers_read(instruction: Instruction) -> list[str]:
    """Every register that an instruction reads, its guard aside, word by word; also those that are always zero."""
    return _registers(instruction, "read")


def registers_written(instruction: Instruction) -> list[str]:
    """Every register that it writes."""
    return _registers(instruction, "write")


def _registers(instruction: Instruction, what: str) -> list[str]:
    roles = isa.roles(instruction)
    if roles is None:
        raise UnknownError(f"the registers of `{instruction.text}` are not known")
    accesses, implicit = (roles.reads, roles.implicit_reads) if what == "read" else (roles.writes, roles.implicit_writes)
    first = [(instruction.operands[a.operand].registers[a.hole], a.width) for a in accesses]
    return [*[following(name, k) for name, width in first for k in range(width)], *implicit]


class Side:
    """A kernel's code, and what its constants are."""

    def __init__(self, name: str, arch: str, kernel: Kernel, words: Mapping[int, int], results: Results) -> None:
        """`words`: what is known of constant bank 0, by byte offset; `results`: shared by both sides, empty at first."""
        self.name, self.arch, self.code, self.links = name, arch, kernel.code, kernel.links
        self._words = words
        self._results = results

    @cached_property
    def cells(self) -> dict[str, int]:
        """Bytes of the narrowest access to each memory space, at most a word."""
        found = dict.fromkeys(SPACES.values(), WORD)
        for instruction in self.code:
            if (space := simple_space(instruction)) is not None:
                found[space] = min(found[space], access_width(instruction.modifiers))
        return found

    @cached_property
    def reaches_local(self) -> bool:
        """Local memory is accessed through pointers, too."""
        return any(reaches_local(instruction) for instruction in self.code)

    def constant(self, bank: int, offset: int) -> Term:
        """A word of constant memory."""
        if bank == 0 and offset in self._words:
            return terms.constant(self._words[offset], 32)
        return terms.variable(f"c[{bank:#x}][{offset:#x}]", 32)

    @cached_property
    def descriptor(self) -> tuple[Term, ...]:
        """The words of the memory descriptor; none where there is none."""
        offset = constant_bank(self.arch).descriptor
        return () if offset is None else (self.constant(0, offset), self.constant(0, offset + WORD))

    @cached_property
    def without_effect(self) -> frozenset[str]:
        """What may be passed over: waiting for copies where there are none, and lanes that meet where none needs another."""
        found = {"NOP"}
        if not any(instruction.mnemonic == "LDGDEPBAR" for instruction in self.code):
            found.add("DEPBAR")
        if not any(_needs_other_lanes(instruction) for instruction in self.code):
            found |= _MEETINGS
        return frozenset(found)

    def special(self, name: str, word: int) -> Term:
        """A word of a special register."""
        return terms.constant(0, 32) if name == "SRZ" else terms.variable(f"{name} {word}", 32)

    def constants(self, instruction: Instruction, read: Callable[[str], Term], count: int) -> list[Term]:
        """What an instruction loads from constant memory into `count` registers."""
        source = instruction.operands[-1]
        if source.constant is None:
            raise UnknownError(f"`{instruction.text}` is not followed")
        bank, offset = source.constant
        place = terms.constant(offset, 32)
        for name in source.registers:
            place = terms.add(place, read(name))
        if place.value is not None and not _NARROW & {*instruction.modifiers}:
            return [self.constant(bank, place.value + WORD * i) for i in range(count)]
        text = f"{instruction.name.removeprefix('U')} {bank:#x}"
        return [terms.apply(f"{text} #{i}", [place], 32) for i in range(count)]

    def operand_constants(self, instruction: Instruction) -> list[Term]:
        """The words of constant memory among its operands, whose text is the same on both sides where they are."""
        found = [operand.constant for operand in instruction.operands if operand.constant is not None]
        return [self.constant(*place) for place in found]

    def compute(self, instruction: Instruction, read: Mapping[str, Term]) -> list[Term]:
        """The results of an instruction without effects, in the order of the registers it writes.

        `read` has the registers that it reads. What the semantics does not model is a function of which nothing is known.
        """
        inputs = [read[name] for name in registers_read(instruction)]
        key = (instruction.name, instruction.extra, tuple([_shape(operand) for operand in instruction.operands]), *inputs)
        if key not in self._results:
            self._results[key] = self._compute(instruction, read, inputs)
        return self._results[key]

    def _compute(self, instruction: Instruction, read: Mapping[str, Term], inputs: list[Term]) -> list[Term]:
        written = registers_written(instruction)
        try:
            evaluator = semantics(instruction, self.arch)
            found = evaluator.evaluate(*[self._value(source, read) for source in evaluator.sources])
            results = dict(zip(evaluator.results, [term_of(x)[0] for x in found], strict=True))
            return [results[name] if name in results else terms.constant(0, width_of(name)) for name in written]
        except (SemanticsError, *NO_TERM):
            known = [*inputs, *self.operand_constants(instruction)]
            text = blanked(instruction)
            return [terms.apply(f"{text} #{i}", known, width_of(name)) for i, name in enumerate(written)]

    def _value(self, source: Source, read: Mapping[str, Term]) -> Value:
        match source:
            case Register(name):
                term = read[name]
            case Constant(int(bank), offset, None):
                term = self.constant(bank, offset)
            case _:
                raise TypeError(f"{source} has no term")
        return Value(term, np.dtype(np.uint32 if term.width else np.bool_))


def _needs_other_lanes(instruction: Instruction) -> bool:
    """It works on the registers of other lanes of its warp."""
    row = isa.describe(instruction.mnemonic, instruction.modifiers)
    return row is None or (row.warp and row.control is None and instruction.mnemonic not in ("B2R", "BAR", "BMOV", "NANOSLEEP"))


def reaches_local(instruction: Instruction) -> bool:
    """It is no plain access to local memory, and may be one all the same: its address decides."""
    row = isa.describe(instruction.mnemonic, instruction.modifiers)
    return row is None or (simple_space(instruction) is None and not row.pinned and "local" in row.loads | row.stores)


def simple_space(instruction: Instruction) -> str | None:
    """The memory space of a plain load or store; None for everything else, ordered and generic accesses among it."""
    space = SPACES.get(instruction.mnemonic[2:]) if instruction.mnemonic[:2] in ("LD", "ST") else None
    return None if space is None or len(instruction.operands) != 2 or isa.is_ordered(instruction) else space


def _shape(operand: Operand) -> tuple[str, tuple[str, ...]]:
    """The operand but for the numbers of its registers."""
    registers = [name if name in ZERO_REGISTERS else register_file(name) for name in operand.registers]
    return operand.without_reuse().template, tuple(registers)
