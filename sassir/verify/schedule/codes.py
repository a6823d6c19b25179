"""Rules about a control code by itself, and about operands that are kept in the operand cache."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

from sassir.asm.control import Control, encode_control
from sassir.asm.instruction import OPAQUE, Instruction
from sassir.dialect.registers import NUMBER
from sassir.verify.schedule.accesses import Accesses
from sassir.verify.schedule.rules import ILLEGAL, REUSE, UNKNOWN, Fault


def check_codes(code: Sequence[Instruction], facts: Sequence[Accesses], block: range) -> Iterator[Fault]:
    """What is wrong with the control codes of a block, whatever came before it."""
    for line in block:
        instruction = code[line]
        if problem := _illegal(instruction):
            yield Fault(ILLEGAL, None, line, 0, evidence=problem)
        elif facts[line].problem is not None:
            yield Fault(UNKNOWN, None, line, 0)
        for operand in instruction.operands:
            if operand.reuse:
                yield from _stale(NUMBER[operand.registers[0]], facts, line, block)


def _illegal(instruction: Instruction) -> str | None:
    """Why the hardware does not know the control code."""
    if instruction.mnemonic == OPAQUE and instruction.extra:
        return "stall count and yield bit together"
    if instruction.control.yield_ and any([operand.reuse for operand in instruction.operands]):
        return ".reuse together with yield"
    return _not_encodable(instruction.control)


@cache
def _not_encodable(control: Control) -> str | None:
    try:
        encode_control(control)
    except ValueError as error:
        return str(error)
    return None


def _stale(register: int, facts: Sequence[Accesses], line: int, block: range) -> Iterator[Fault]:
    """A register in the operand cache must be read again before it is written: the cache does not see the write."""
    for behind in range(line, block.stop):
        if behind > line and facts[behind].read_set >> register & 1:
            return
        if facts[behind].write_set >> register & 1:
            yield Fault(REUSE, line, behind, register)
            return
