"""Memory accesses of a kernel: which of them may touch the same bytes.

Two accesses are told apart by their spaces, by different displacements from the same registers, by the pointer parameters
that their addresses are made from (where a fact says that buffers do not overlap), and by `.CONSTANT`, which promises
memory that nobody writes while the kernel runs.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from typing import NamedTuple

from xdsl.ir import Operation, SSAValue

from sassir.analysis.arguments import arguments
from sassir.analysis.effects import effects
from sassir.dialect.facts import KernelFacts
from sassir.dialect.instruction import SassInstruction

ATOMIC = frozenset({"ATOM", "ATOMG", "ATOMS", "RED", "REDG"})
"""Read and write their own address, at once; they order no other access (PTX ISA, memory consistency model: relaxed)."""
UNCHANGING = frozenset({"constant", "texture"})
"""What nobody writes while a kernel runs."""
_ADDRESS = re.compile(r"(?P<desc>desc\[[^]]*\])?\[(?P<registers>[^]]*?)(?P<offset>[-+]?0x[0-9a-f]+)?\]")
_WIDTHS = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16, "256": 32}
_PLAIN = frozenset({"LD", "LDG", "LDL", "LDS", "ST", "STG", "STL", "STS"}) | ATOMIC
_NO_WORDS = frozenset({"U8", "S8", "U16", "S16", "256"})
_DIRECTIONS = frozenset({"BRA", "BREAK", "BSSY", "BSYNC"})
"""Decide how control goes on among the blocks of the kernel, and nothing else."""
_GLOBAL = frozenset({"global"})
_OWN = (_GLOBAL, frozenset({"local"}))


class Access(NamedTuple):
    """One memory access of a thread."""

    spaces: frozenset[str]
    writes: bool
    registers: tuple[object, ...]
    """What the address is made from besides the displacement: values, and the rest of the text."""
    begin: int
    """Displacement in bytes."""
    end: int
    pointer: int | None
    """The pointer parameter that the address is made from: its offset in constant bank 0; None if not known."""
    constant: bool
    """Nobody writes this memory while the kernel runs."""

    @property
    def place(self) -> Hashable:
        """Equal for accesses that touch the same bytes."""
        return self.spaces, self.registers, self.begin, self.end

    @property
    def words(self) -> int:
        """Whole words of 32 bits."""
        return (self.end - self.begin) // 4

    def covers(self, other: Access) -> bool:
        """Whether it surely touches all bytes that `other` touches."""
        same = self.spaces == other.spaces and self.registers == other.registers
        return same and self.begin <= other.begin and other.end <= self.end


def access(op: Operation, pointers: Mapping[SSAValue, int]) -> Access | None:
    """The access of a plain load, store or atomic; None for every other operation, also one that touches memory in another way.

    `pointers`: what `pointers_of` knows of the kernel's addresses.
    """
    if not isinstance(op, SassInstruction) or op.MNEMONIC not in _PLAIN:
        return None
    found = effects(op)
    address = next((a for a in arguments(op) if _ADDRESS.fullmatch(a.text)), None)
    if address is None:
        return None
    match = _ADDRESS.fullmatch(address.text)
    assert match is not None
    modifiers = op.modifiers.data.split(".") if op.modifiers is not None else []
    width = next((_WIDTHS[m] for m in modifiers if m in _WIDTHS), 4)
    offset = int(match["offset"] or "0", 16)
    address_values = address.values[match["desc"].count("$") * 2 if match["desc"] else 0 :]
    spaces = found.loads | found.stores
    pointer = pointers.get(address_values[0]) if address_values and "global" in spaces else None
    registers = (match["registers"], *address.values)
    return Access(spaces, bool(found.stores), registers, offset, offset + width, pointer, "CONSTANT" in modifiers)


def is_word_access(op: SassInstruction, this: Access) -> bool:
    """Whether variables of 32 bits can stand for what `op` accesses: a plain load or store of whole words, seen by nobody else.

    Not in shared memory: what is volatile there, because another lane of the warp looks at it, leaves no trace in the code.
    """
    parts = op.modifiers.data.split(".") if op.modifiers is not None else []
    if op.MNEMONIC in ATOMIC or effects(op).ordered or op.constant_guard is not None or not _NO_WORDS.isdisjoint(parts):
        return False
    return this.spaces in _OWN and (this.writes or len(op.results) == this.words)


def orders_memory(op: Operation) -> bool:
    """Whether accesses must not be moved across `op`, or `op` touches memory in a way that `access` does not tell."""
    if not isinstance(op, SassInstruction):
        return False
    found = effects(op)
    known = op.MNEMONIC in _PLAIN or not (found.stores or found.loads - UNCHANGING)
    return found.ordered or found.clock or not known or (found.pinned and op.MNEMONIC not in _DIRECTIONS)


def may_overlap(a: Access, b: Access, facts: KernelFacts) -> bool:
    """Whether two accesses of one thread may touch the same byte."""
    if a.spaces.isdisjoint(b.spaces) or a.constant or b.constant:
        return False
    if a.registers == b.registers:
        return a.begin < b.end and b.begin < a.end
    if a.spaces != _GLOBAL or b.spaces != _GLOBAL:
        return True
    return not (facts.noalias and a.pointer is not None and b.pointer is not None and a.pointer != b.pointer)
