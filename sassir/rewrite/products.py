"""Pointers that go on by products of one factor: a m + (a n + c) is a (m + n) + c, one instruction less where nothing uses a n + c."""

from __future__ import annotations

from xdsl.ir import SSAValue

from sassir.analysis.arguments import Argument, arguments
from sassir.analysis.ranges import LARGEST_SIGNED
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.operations import KernelOp
from sassir.rewrite.build import arguments_of, name_of, rewritten
from sassir.rewrite.simplify import exchange


def collapse_products(kernel: KernelOp, arch: str) -> int:
    """Returns the number of wide products that start from another sum now; what they started from has no use any more.

    Exact modulo 2⁶⁴: both products are of the same factor, extended in the same way, with numbers below 2³¹.
    """
    ops = [op for block in kernel.body.blocks for op in block.ops if isinstance(op, SassInstruction) and op.MNEMONIC == "IMAD"]
    return sum([_collapse(op, arch) for op in ops])


def _collapse(op: SassInstruction, arch: str) -> bool:
    outer = _product(op)
    below = outer[2].values[0].owner if outer is not None and len(outer[2].values) == 2 else None
    inner = _product(below) if isinstance(below, SassInstruction) else None
    if outer is None or inner is None or not isinstance(below, SassInstruction):
        return False
    same = (op.modifiers, outer[0].text, outer[0].values) == (below.modifiers, inner[0].text, inner[0].values)
    if not same or outer[2].text != "$" or outer[2].values != tuple(below.results) or not all(_used_once(v) for v in below.results):
        return False
    number = outer[1] + inner[1]
    if number > LARGEST_SIGNED:
        return False
    shown = [*arguments_of(op)[:2], f"{number:#x}", arguments_of(below)[3]]
    new = rewritten(op, name_of(op), shown, [*outer[0].values, *inner[2].values])
    return exchange(op, new, arch)


def _product(op: SassInstruction) -> tuple[Argument, int, Argument] | None:
    """The factor a, the number m and the summand c of a wide a m + c."""
    if op.MNEMONIC != "IMAD" or op.modifiers is None or op.modifiers.data not in ("WIDE", "WIDE.U32"):
        return None
    if op.guard is not None or op.constant_guard is not None or len(op.results) != 2:
        return None
    operands = arguments(op)
    number = operands[2].integer if len(operands) == 4 else None
    return (operands[1], number, operands[3]) if number is not None and 0 <= number <= LARGEST_SIGNED else None


def _used_once(value: SSAValue) -> bool:
    return len([*value.uses]) == 1
