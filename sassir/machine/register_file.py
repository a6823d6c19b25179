"""How long an instruction of fixed latency takes to read its operands: register banks and the operand cache.

Each of the two banks of a thread, even and odd registers, gives one register a cycle. Each operand slot keeps a register of each bank
for the next instruction that reads that slot, if the instruction says so (`.reuse`). On an H200, FFMA takes 1 cycle with one
register of a bank, 2 with two, 3 with three, and one less for each that is kept; DADD takes 2, DFMA 3 (docs/hopper-measured.md). The same
banks and slots on Ampere: Huerta et al., MICRO 2025, section 5.3.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

BANKS = 2
"""Register R of a thread is in bank R % BANKS."""


def bank(register: int) -> int:
    """The bank of a general register."""
    return register % BANKS


def bank_cycles(registers: Iterable[int]) -> int:
    """The cycles in which the banks give different `registers`; 1 if there are none."""
    return max([1, *Counter(map(bank, registers)).values()])


class Read(NamedTuple):
    """A register that an instruction reads."""

    slot: int
    """The operand, counted from the first that is read."""
    register: int
    kept: bool
    """It stays in the operand cache."""


class RegisterFile:
    """The register file as one warp sees it while it stays selected."""

    def __init__(self) -> None:
        self.kept: dict[tuple[int, int], int] = {}
        """The register in the operand cache, by slot and bank."""

    def cycles(self, reads: Iterable[Read]) -> int:
        """The cycles in which the banks give what an instruction reads; 1 if it reads nothing there."""
        wanted: set[int] = set()
        for slot, register, kept in reads:
            where = slot, bank(register)
            if self.kept.pop(where, None) != register:
                wanted.add(register)
            if kept:
                self.kept[where] = register
        return bank_cycles(wanted)
