"""Pointers that go on step by step: one step in place of several where nothing uses what lies between.

Unrolling leaves such chains behind once all accesses share one address. Exact modulo 2⁶⁴: the steps are numbers, or products of
one factor with numbers, and their sum is one again.
"""

from __future__ import annotations

from typing import NamedTuple

from xdsl.ir import Attribute, SSAValue

from sassir.analysis.arguments import Argument, arguments
from sassir.analysis.ranges import LARGEST_SIGNED
from sassir.dialect import internals
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.operations import KernelOp
from sassir.rewrite.build import arguments_of, encodable, name_of, rewritten
from sassir.rewrite.simplify import replace


class _Step(NamedTuple):
    """A 64-bit sum of a pair of registers and a number below 2³¹, by two instructions."""

    low: SassInstruction
    high: SassInstruction
    base: tuple[SSAValue, SSAValue]
    number: int


def shorten_chains(kernel: KernelOp, arch: str) -> int:
    """Returns the number of steps that were put together with the one before; that one has no use any more."""
    shortened = 0
    for block in kernel.body.blocks:
        for op in list(block.ops):
            if isinstance(op, SassInstruction) and op.modifiers is not None and op.guard is None and op.constant_guard is None:
                shortened += _shorten_product(op, arch) or _shorten_sum(op, arch)
    return shortened


def _shorten_product(op: SassInstruction, arch: str) -> bool:
    """a m + (a n + c) = a (m + n) + c."""
    outer = _product(op)
    inner_op = outer[2].values[0].owner if outer is not None and len(outer[2].values) == 2 else None
    inner = _product(inner_op) if isinstance(inner_op, SassInstruction) else None
    if outer is None or inner is None or not isinstance(inner_op, SassInstruction):
        return False
    same = (op.modifiers, outer[0].text, outer[0].values) == (inner_op.modifiers, inner[0].text, inner[0].values)
    if not same or outer[2].text != "$" or outer[2].values != tuple(inner_op.results) or not all(_used_once(v) for v in inner_op.results):
        return False
    factor = outer[1] + inner[1]
    if factor > LARGEST_SIGNED:
        return False
    shown = [*arguments_of(op)[:2], f"{factor:#x}", arguments_of(inner_op)[3]]
    return _exchange(op, rewritten(op, name_of(op), shown, [*outer[0].values, *inner[2].values]), arch)


def _product(op: SassInstruction) -> tuple[Argument, int, Argument] | None:
    """The terms of a wide a m + c, m a number below 2³¹."""
    if op.MNEMONIC != "IMAD" or op.modifiers is None or op.modifiers.data not in ("WIDE", "WIDE.U32"):
        return None
    if op.guard is not None or op.constant_guard is not None or len(op.results) != 2:
        return None
    operands = arguments(op)
    number = operands[2].integer if len(operands) == 4 else None
    return (operands[1], number, operands[3]) if number is not None and 0 <= number <= LARGEST_SIGNED else None


def _shorten_sum(op: SassInstruction, arch: str) -> bool:
    """(b + m) + n = b + (m + n), for sums with a carry between two words."""
    outer = _step(op)
    inner_op = outer.base[1].owner if outer is not None else None
    inner = _step(inner_op) if isinstance(inner_op, SassInstruction) else None
    if outer is None or inner is None or outer.base != (inner.low.results[0], inner.high.results[0]):
        return False
    number = outer.number + inner.number
    same_files = [v.type for v in outer.base] == [v.type for v in inner.base]
    if number > LARGEST_SIGNED or not same_files or not all(_used_once(v) for v in outer.base):
        return False
    shown = [f"{number:#x}" if a.integer == outer.number else text for a, text in _paired(outer.low)]
    low = rewritten(outer.low, name_of(outer.low), shown, _exchanged(outer.low, outer.base[0], inner.base[0]))
    if not _exchange(outer.low, low, arch):
        return False
    outer.high.operands = _exchanged(outer.high, outer.base[1], inner.base[1])
    return True


def _paired(op: SassInstruction) -> list[tuple[Argument, str]]:
    return list(zip(arguments(op), arguments_of(op), strict=True))


def _exchanged(op: SassInstruction, old: SSAValue, new: SSAValue) -> list[SSAValue[Attribute]]:
    return [new if value is old else value for value in internals.operands(op)]


def _step(high: SassInstruction) -> _Step | None:
    """The sum whose upper word `high` makes."""
    name = high.MNEMONIC.removeprefix("U")
    if name not in ("IADD3", "IMAD") or high.modifiers is None or high.modifiers.data != "X" or high.guard is not None:
        return None
    sources = [a for a in arguments(high) if not a.written]
    terms = [a for a in sources[:3] if a.integer != 0]
    if name == "IMAD" and [a.integer for a in sources[1:3]] == [1, 0]:  # a 1 + 0
        terms = sources[:1]
    elif name == "IMAD" and [a.integer for a in sources[:2]] != [0, 0]:  # 0 0 + c
        return None
    carries = [a for a in sources[3:] if a.values]
    if len(terms) != 1 or terms[0].text != "$" or len(carries) != 1 or carries[0].operand.negated or sources[3] is not carries[0]:
        return None
    low = carries[0].values[0].owner
    if not isinstance(low, SassInstruction) or not _is_low(low) or not _used_once(carries[0].values[0]):
        return None
    summands = [a for a in arguments(low) if not a.written]
    values = [a for a in summands if a.text == "$"]
    numbers = [a.integer for a in summands if a.integer]
    if len(high.results) != 1 or len(values) != 1 or len(numbers) != 1 or len(summands) != 3 or not 0 < numbers[0] <= LARGEST_SIGNED:
        return None
    return _Step(low, high, (values[0].values[0], terms[0].values[0]), numbers[0])


def _is_low(op: SassInstruction) -> bool:
    """A sum of words with one carry."""
    plain = op.MNEMONIC in ("IADD3", "UIADD3") and op.modifiers is None and op.guard is None and op.constant_guard is None
    return plain and len(op.results) == 2


def _used_once(value: SSAValue) -> bool:
    return len([*value.uses]) == 1


def _exchange(op: SassInstruction, new: SassInstruction, arch: str) -> bool:
    """Put `new` in place of `op` if `arch` has it."""
    if not encodable(new, arch):
        new.erase()
        return False
    assert op.parent is not None
    op.parent.insert_op_before(new, op)
    replace(op, new.results)
    return True
