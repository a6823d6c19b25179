"""Values that are bound to each other: by one register, or by registers in a row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from xdsl.ir import Operation, SSAValue

from sassir.dialect import internals
from sassir.dialect.instruction import SassBranch, SassInstruction
from sassir.dialect.operations import NextOp
from sassir.dialect.template import Hole

_WARPGROUP_PRODUCTS = frozenset({"BGMMA", "HGMMA", "IGMMA", "QGMMA"})


def tied(op: Operation) -> Iterator[tuple[SSAValue, SSAValue]]:
    """Pairs of values that must be in one register: kept value and result, operand read and written, value and block argument."""
    if isinstance(op, SassInstruction):
        yield from zip(op.kept, op.results, strict=True) if op.kept else ()
        if not op.template.data.narrow:
            in_place = accumulator(op)
            for i, (_, read, written) in enumerate(filled_holes(op)):
                if read and (written or i == in_place):
                    yield from zip(read, written or op.results, strict=True)
    if isinstance(op, SassBranch | NextOp):
        for i, block in enumerate(op.successors):
            yield from zip(op.forwarded(i), block.args, strict=False)


def bound(op: Operation) -> set[SSAValue]:
    """What an operation binds to another value."""
    wide = groups(op) if isinstance(op, SassInstruction) else ()
    return {value for values in (*tied(op), *wide) for value in values}


def accumulator(op: SassInstruction) -> int | None:
    """The hole of the sum that a warpgroup product adds to in place, while later instructions run; None for other instructions.

    It is the operand behind the descriptor. Where it is not RZ it is the destination, without exception in Triton's and CUTLASS's code.
    """
    if op.MNEMONIC not in _WARPGROUP_PRODUCTS:
        return None
    arguments = op.template.data.arguments
    place = 1 + max([i for i, argument in enumerate(arguments) if argument.template.startswith("gdesc")])
    holes = [register is None for argument in arguments[:place] for register in argument.registers]
    return sum(holes) if arguments[place].registers == (None,) else None


def groups(op: SassInstruction) -> Iterator[Sequence[SSAValue]]:
    """The values of each wide operand: they must be in registers in a row, the first one aligned."""
    if not op.template.data.narrow:
        for hole, read, written in filled_holes(op):
            if hole.width > 1:
                yield from [values for values in (read, written) if values]


def filled_holes(op: SassInstruction) -> Iterator[tuple[Hole, Sequence[SSAValue], Sequence[SSAValue]]]:
    """Each hole of the template with the operands that it reads and the results that it writes."""
    operands, results = tuple(internals.operands(op)), tuple(op.results)
    at = to = 0
    for hole in op.template.data.holes:
        read = operands[at : at + hole.width * hole.reads]
        written = results[to : to + hole.width * hole.writes]
        at, to = at + len(read), to + len(written)
        yield hole, read, written


def neighbours(op: SassInstruction) -> Iterator[tuple[SSAValue, SSAValue]]:
    """Values in adjacent registers."""
    for group in groups(op):
        yield from pairwise(group)
