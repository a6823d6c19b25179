"""SSA form: that it holds, and which values it binds to each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from xdsl.ir import Block, Operation, Region, SSAValue

from sassir.analysis.flow import Flow, flow_of
from sassir.analysis.liveness import home
from sassir.dialect import internals
from sassir.dialect.instruction import SassBranch, SassInstruction, SassTerminator, forwarding_problems
from sassir.dialect.operations import NextOp
from sassir.dialect.syntax import written
from sassir.dialect.template import Hole
from sassir.errors import TranslationError

_WARPGROUP_PRODUCTS = frozenset({"BGMMA", "HGMMA", "IGMMA", "QGMMA"})


def verify_ssa(region: Region) -> None:
    """Raises TranslationError, naming operation and value, if some use is not dominated by its definition on all paths.

    Also for everything else that makes a region no SSA form: a block without a branch at its end, values forwarded that
    differ from the arguments in number or register file, a kept value of another file than its result. Linear in the size
    of the region (xDSL checks no dominance, and its other checks of a terminator count all blocks each time).
    """
    flow = flow_of(region)
    for b, block in enumerate(flow.blocks):
        _check_end(block, flow)
        made = set[SSAValue](block.args)
        for op in block.ops:
            for value in internals.operands(op):
                above = home(value)
                if above is block:
                    if value not in made:
                        raise TranslationError(f"`{written(op)}` uses {_name(value)} before it is made")
                elif above is None or above not in flow.number or not flow.cfg.dominates(flow.number[above], b):
                    raise TranslationError(f"`{written(op)}` uses {_name(value)}, which is not made on every path to it")
            made.update(op.results)
            _check_operation(op, block)


def _check_end(block: Block, flow: Flow) -> None:
    last = block.last_op
    if not isinstance(last, SassTerminator):
        raise TranslationError(f"block ^{block.name_hint} has no branch, sass.next or sass.end at its end")
    if any(successor not in flow.number for successor in last.successors):
        raise TranslationError(f"`{written(last)}` goes to a block of another kernel")


def _check_operation(op: Operation, block: Block) -> None:
    if isinstance(op, SassInstruction):
        for problem in op.problems():
            raise TranslationError(f"`{written(op)}`: {problem}")
    elif isinstance(op, NextOp):
        for problem in forwarding_problems(op, [op.forwarded(0)]):
            raise TranslationError(f"`{written(op)}`: {problem}")
    if op is not block.last_op and isinstance(op, SassTerminator):
        raise TranslationError(f"`{written(op)}` must be the last operation of a block")


def _name(value: SSAValue) -> str:
    return f"%{value.name_hint}" if value.name_hint is not None else "a value"


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
    operands, results = internals.operands(op), op.results
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
