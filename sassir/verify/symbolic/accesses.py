"""Plain loads and stores of one side while it is executed with terms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from sassir.asm.instruction import Instruction
from sassir.emulator.address import descriptor_of, following, parse_address
from sassir.emulator.batch import access_width
from sassir.verify.symbolic import terms, words
from sassir.verify.symbolic.memory import Apart, load, store
from sassir.verify.symbolic.side import WORD, UnknownError
from sassir.verify.symbolic.terms import MEMORY, TRUE, Term

LOCAL = "local"


class SlotError(Exception):
    """Local memory is accessed at a place that is not a fixed distance from the stack pointer."""


class Registers(Protocol):
    """What registers hold; words of the stack are kept beside them."""

    state: dict[str, Term]

    def read(self, name: str) -> Term:
        """The value of a register."""
        ...


class Accesses:
    """The memory of one side."""

    def __init__(
        self, memory: Mapping[str, Term], cells: Mapping[str, int], apart: Apart, stack: Term | None, descriptor: tuple[Term, ...]
    ) -> None:
        """`memory` by space, in cells of so many bytes; `descriptor`: the words that global accesses name.

        With `stack`, the initial stack pointer, a word of local memory is a variable like a register: the two sides may spill
        different values to different places.
        """
        self.memory = dict(memory)
        self._cells, self._apart, self._stack, self._descriptor = cells, apart, stack, descriptor

    def forget(self, name: str, local: bool) -> None:
        """Everybody may have written; what is in local memory only the thread itself."""
        for space in self.memory:
            if local or space != LOCAL:
                self.memory[space] = terms.passing(f"{space} {name}", MEMORY)

    def access(self, space: str, instruction: Instruction, registers: Registers, guard: Term) -> list[Term]:
        """Load or store; what is loaded, by register."""
        storing = instruction.mnemonic.startswith("ST")
        operand = 0 if storing else 1
        self._check_descriptor(instruction, operand, registers)
        address = _address(instruction, operand, registers)
        width = access_width(instruction.modifiers)
        first = instruction.operands[1 if storing else 0].registers[0]
        cell = self._cells[space]
        places = [terms.add(address, terms.constant(i, 64)) for i in range(0, width, cell)]
        if not storing:
            loaded = [self._load(space, place, 8 * cell, registers) for place in places]
            return _words(loaded, not {"S8", "S16"}.isdisjoint(instruction.modifiers))
        stored = [registers.read(following(first, i)) for i in range(max(1, width // WORD))]
        for i, place in enumerate(places):
            bit = 8 * cell * i
            self._store(space, place, words.extract(stored[bit // 32], bit % 32, 8 * cell), registers, guard)
        return []

    def _check_descriptor(self, instruction: Instruction, operand: int, registers: Registers) -> None:
        """The memory descriptor of the launch, which both sides have."""
        first = descriptor_of(instruction, operand)
        names = () if first is None else (first, following(first, 1))
        if any(registers.read(name) is not word for name, word in zip(names, self._descriptor, strict=False)):
            raise UnknownError(f"`{instruction.text}` uses another memory descriptor")

    def _load(self, space: str, place: Term, width: int, registers: Registers) -> Term:
        if space == LOCAL and self._stack is not None:
            return registers.read(self._slot(place))
        return load(self.memory[space], place, width, self._apart)

    def _store(self, space: str, place: Term, value: Term, registers: Registers, guard: Term) -> None:
        if guard is not TRUE:
            value = terms.choose(guard, value, self._load(space, place, value.width, registers))
        if space == LOCAL and self._stack is not None:
            registers.state[self._slot(place)] = value
        else:
            self.memory[space] = store(self.memory[space], place, value, self._apart)

    def _slot(self, place: Term) -> str:
        assert self._stack is not None
        distance = terms.distance(words.low(place), self._stack)
        if distance is None or self._cells[LOCAL] != WORD:
            raise SlotError
        return f"[stack {distance - (1 << 32)}]"


def _address(instruction: Instruction, operand: int, registers: Registers) -> Term:
    """In 64 bits; a 32-bit address is zero-extended when its parts have been added."""
    written, offset = parse_address(instruction, operand)
    wide = any(part.high is not None for part in written)
    total: list[tuple[Term, int]] = [(terms.constant(offset, 64 if wide else 32), 1)]
    for low, high, scale in written:
        value = registers.read(low)
        if wide:
            value = words.zero_extend(value, 64) if high is None else words.concat(registers.read(high), value)
        total.append((value, scale))
    address = terms.combine(total, 64 if wide else 32)
    return address if wide else words.zero_extend(address, 64)


def _words(cells: list[Term], signed: bool) -> list[Term]:
    """The registers that some cells, lowest first, fill."""
    found: list[Term] = []
    value: Term | None = None
    for cell in cells:
        value = cell if value is None else words.concat(cell, value)
        if value.width == 32:
            found.append(value)
            value = None
    if value is not None:
        found.append((words.sign_extend if signed else words.zero_extend)(value, 32))
    return found
