"""Which registers an instruction reads and writes."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from sassir.asm.instruction import Instruction
from sassir.asm.operand import HOLE, Operand, register_file
from sassir.isa.description import Description, Word, kind_of
from sassir.isa.table import describe
from sassir.isa.width import UnknownFormError, Use, rule_of

ALL_LANES = 0xF
"""The lane mask of a MOV that writes all lanes of each quad."""


class Access(NamedTuple):
    """The register in a hole of an operand, and the next `width` - 1 of its file."""

    operand: int
    hole: int
    width: int


class Roles(NamedTuple):
    """All registers that an instruction touches, its guard aside. Zero registers are listed like the others."""

    writes: tuple[Access, ...]
    reads: tuple[Access, ...]
    implicit_writes: tuple[str, ...] = ()
    """Registers that no operand names: those that `PR` or `UPR` stands for."""
    implicit_reads: tuple[str, ...] = ()


def alignment(width: int) -> int:
    """What the number of a group's first register is a multiple of: the next power of two, at most 8.

    nvdisasm does not check it; without exception in 1.2 million instructions of ptxas and Triton, sm_75 to sm_120.
    """
    return min(8, 1 << (width - 1).bit_length())


def roles(instruction: Instruction) -> Roles | None:
    """The registers read and written; None when no table row describes the instruction, or it has an unknown form.

    A guarded instruction writes only where its guard holds: the caller keeps the old value. CALL and RET list their operands;
    what the callee touches is the caller's business.
    """
    operands = tuple([_blank(operand) for operand in instruction.operands])
    return _roles(instruction.mnemonic, instruction.modifiers, operands)


_blanks: dict[Operand, Operand] = {}


def _blank(operand: Operand) -> Operand:
    """The operand with the first register of each file in its holes: roles depend on nothing else."""
    blank = _blanks.get(operand)
    if blank is None:
        first = [f"{register_file(register)}0" for register in operand.registers]
        blank = _blanks[operand] = operand.without_reuse().with_registers(*first)
    return blank


@cache
def _roles(mnemonic: str, modifiers: tuple[str, ...], operands: tuple[Operand, ...]) -> Roles | None:
    description = describe(mnemonic, modifiers)
    if description is None:
        return None
    try:
        return _follow(description, f".{'.'.join(modifiers)}.", operands)
    except UnknownFormError:
        return None


def _follow(description: Description, modifiers: str, operands: tuple[Operand, ...]) -> Roles:
    """The roles that the row gives to the operands."""
    writes: list[Access] = []
    reads: list[Access] = []
    words = _assign(description, operands)
    for index, operand in enumerate(operands):
        word = words.get(index)
        for hole, width in enumerate(_widths(word, Use(modifiers, operands, operand))):
            if word is not None and "w" in word.access:
                writes.append(Access(index, hole, width))
            if word is None or "r" in word.access:
                reads.append(Access(index, hole, width))
    if _writes_some_lanes(description, operands):
        reads += writes
    return Roles(tuple(writes), tuple(reads), *_implicit(description, operands))


def _writes_some_lanes(description: Description, operands: tuple[Operand, ...]) -> bool:
    """`MOV R4, R5, 0x3` writes two lanes of each quad; the other two keep what they have (ptxas makes four such moves for txd)."""
    return description.mnemonic == "MOV" and len(operands) > 2 and operands[2].integer != ALL_LANES


def _assign(description: Description, operands: tuple[Operand, ...]) -> dict[int, Word]:
    """The word of each operand that has one."""
    words: dict[int, Word] = {}
    index = 0
    for word in (*description.writes, *description.reads):
        if index < len(operands) and (not word.optional or word.fits(operands[index])):
            words[index] = word
            index += 1
    return words


_ONE, _DEFAULT_ADDRESS = rule_of("1"), rule_of("address")


def _widths(word: Word | None, use: Use) -> list[int]:
    """Registers that each hole of the operand takes."""
    kind = kind_of(use.operand)
    pieces = use.operand.template.split(HOLE)
    fitting = word if word is not None and word.fits(use.operand) else None
    base = (fitting.width if fitting else _DEFAULT_ADDRESS if kind == "address" else _ONE)(use)
    if kind not in ("address", None):
        return [base] * (len(pieces) - 1)
    return [_address_width("".join(pieces[: i + 1]), pieces[i + 1], base) for i in range(len(pieces) - 1)]


_BRACKET = re.compile(r"(\w*)\[[^][]*$")


def _address_width(before: str, after: str, base: int) -> int:
    """Width of a register between these texts of an address or a constant: `desc[$][$.64+$]`, `cx[$][$]`."""
    bracket = _BRACKET.search(before)
    if bracket is None or bracket[1] in ("desc", "cx"):
        return 2
    if after.startswith(".64"):
        return 2
    if after.startswith((".U32", ".X")):
        return 1
    if bracket[1] == "" and before.startswith("desc["):
        return 2
    return base


def _implicit(description: Description, operands: tuple[Operand, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Predicates that `PR` or `UPR` stands for: a result in R2P, where an immediate mask selects some, else a source."""
    place = next((i for i, operand in enumerate(operands) if operand.template in ("PR", "UPR")), None)
    if place is None:
        return (), ()
    mask = operands[-1].integer
    file = operands[place].template[:-1]
    chosen = tuple(f"{file}{i}" for i in range(7) if mask is None or mask >> i & 1)
    if place < len(description.writes):
        return chosen, () if mask is not None else chosen
    return (), chosen
