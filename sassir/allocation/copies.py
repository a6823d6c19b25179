"""Copies between registers of one file, as instructions that every architecture has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from xdsl.ir import Block, Operation, SSAValue

from sassir.dialect import internals
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.operations import UndefinedOp
from sassir.dialect.registers import REGISTERS, file_of
from sassir.rewrite.build import instruction

COPY = {
    "R": "MOV =R, $R",
    "UR": "UMOV =UR, $UR",
    "P": "PLOP3.LUT =P, PT, $P, PT, PT, 0x80, 0x0",
    "UP": "UPLOP3.LUT =UP, UPT, $UP, UPT, UPT, 0x80, 0x0",
}
"""A whole register of a file to another one: 0x80 is the truth table of `a and b and c`."""
EXCLUSIVE_OR = {
    "R": "LOP3.LUT =R, $R, $R, RZ, 0x3c, !PT",
    "UR": "ULOP3.LUT =UR, $UR, $UR, URZ, 0x3c, !UPT",
    "P": "PLOP3.LUT =P, PT, $P, $P, PT, 0x28, 0x0",
    "UP": "UPLOP3.LUT =UP, UPT, $UP, $UP, UPT, 0x28, 0x0",
}
"""0x3c is the truth table of `a xor b`, 0x28 that of `(a xor b) and c`. Three of them exchange two registers without a third."""


def copy(value: SSAValue, register: int) -> SassInstruction | UndefinedOp:
    """An instruction that copies `value` to `register`. What is undefined is undefined there too, without one."""
    if isinstance(value.owner, UndefinedOp):
        return UndefinedOp.of(REGISTERS[register])
    return _into(register, COPY, value)


def is_place(value: SSAValue, block: Block) -> bool:
    """Whether it is an address that a call in `block` will return to.

    Code is read again by finding where that is written before the call: there it is not copied, but written anew.
    """
    op = value.owner
    written = isinstance(op, SassInstruction) and op.place is not None and op.MNEMONIC == "MOV" and not internals.operands(op)
    return written and op.parent is block


def place_again(value: SSAValue, register: int) -> SassInstruction:
    """An instruction that writes the address `value` to `register`."""
    op = value.owner
    assert isinstance(op, SassInstruction)
    made = op.clone()
    made.properties.pop("origin", None)
    internals.retype(made.results[0], REGISTERS[register])
    return made


def _into(register: int, table: dict[str, str], *values: SSAValue) -> SassInstruction:
    made = instruction(table[file_of(values[0])], values)
    internals.retype(made.results[0], REGISTERS[register])
    hint = values[0].name_hint
    if hint is not None:
        internals.name(made.results[0], hint)
    return made


def parallel_copy(moves: Sequence[tuple[SSAValue, int, int]]) -> tuple[list[Operation], dict[int, SSAValue]]:
    """Instructions that copy each value from its first register to its second one as if at once; and the copies, by target.

    A target that nothing still has to leave is written first. When only cycles are left, two registers are exchanged.
    """
    ops: list[Operation] = []
    content = {source: value for value, source, _ in moves}
    pending = {target: source for _, source, target in moves if source != target}
    readers = Counter(pending.values())
    copies: dict[int, SSAValue] = {}
    ready = [target for target in pending if not readers[target]]
    while pending:
        if not ready:
            target, source = next(iter(pending.items()))
            both = _into(source, EXCLUSIVE_OR, content[source], content[target])
            copied = _into(target, EXCLUSIVE_OR, both.results[0], content[target])
            displaced = _into(source, EXCLUSIVE_OR, both.results[0], copied.results[0])
            ops += [both, copied, displaced]
            content[source] = displaced.results[0]
            del pending[target]
            copies[target] = copied.results[0]
            reader = next(t for t, s in pending.items() if s == target)
            if reader == source:
                del pending[source]
                copies[source] = displaced.results[0]
            else:
                pending[reader] = source
            continue
        target = ready.pop()
        source = pending.pop(target)
        made = copy(content[source], target)
        ops.append(made)
        copies[target] = made.results[0]
        readers[source] -= 1
        if not readers[source] and source in pending:
            ready.append(source)
    for value, source, target in moves:
        if source == target:
            ops.append(made := copy(value, target))
            copies[target] = made.results[0]
    return ops, copies
