"""That a region is in SSA form."""

from __future__ import annotations

from xdsl.ir import Block, Operation, Region, SSAValue

from sassir.analysis.flow import Flow, flow_of
from sassir.analysis.liveness import home
from sassir.dialect import internals
from sassir.dialect.instruction import SassInstruction, SassTerminator, forwarding_problems
from sassir.dialect.operations import NextOp
from sassir.dialect.syntax import written
from sassir.errors import TranslationError


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
