"""Check that each register holds the value that is read from it, on every path.

The symbolic checker of regalloc2 (Cranelift): a forward analysis from register to the SSA value in it; where paths
meet, only what they agree on stays. A use that no definition dominates fails here as well.
"""

from __future__ import annotations

from xdsl.ir import Block, Region, SSAValue

from sassir.analysis.cfg import Cfg
from sassir.dialect import internals
from sassir.dialect.instruction import SassBranch
from sassir.dialect.registers import SassRegister
from sassir.dialect.syntax import written
from sassir.errors import TranslationError

Holding = dict[int, SSAValue]
"""Register number to the value in it."""


def check_allocation(region: Region) -> None:
    """Raises TranslationError, naming operation, value and register, if some register holds another value than is read."""
    blocks = list(region.blocks)
    number = {block: i for i, block in enumerate(blocks)}
    exits = [block.last_op for block in blocks]
    successors = [[] if op is None or (isinstance(op, SassBranch) and op.produces) else [number[s] for s in op.successors] for op in exits]
    cfg = Cfg(successors, [0])
    entry: list[Holding | None] = [{} if b in cfg.roots else None for b in range(len(blocks))]
    work = list(reversed(cfg.order))
    waiting = set(work)
    while work:
        b = work.pop()
        waiting.discard(b)
        before = entry[b]
        if before is None:
            continue
        holding = _run(blocks[b], before)
        for s in successors[b]:
            known = entry[s]
            met = holding if known is None else {n: v for n, v in known.items() if holding.get(n) is v}
            if known is None or len(met) != len(known):
                entry[s] = met
                if s not in waiting:
                    waiting.add(s)
                    work.append(s)


def _run(block: Block, before: Holding) -> Holding:
    """What the registers hold after `block`."""
    holding = dict(before)
    for argument in block.args:
        holding[_number(argument)] = argument
    for op in block.ops:
        for value in internals.operands(op):
            if holding.get(_number(value)) is not value:
                raise TranslationError(f"`{written(op)}` reads a value from {value.type}, which holds another one there")
        for result in op.results:
            holding[_number(result)] = result
    return holding


def _number(value: SSAValue) -> int:
    kind = value.type
    if isinstance(kind, SassRegister) and (number := kind.number) is not None:
        return number
    raise TranslationError(f"%{value.name_hint} is a {kind}; allocate registers first")
