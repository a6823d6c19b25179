"""Check that each register holds the value that is read from it, on every path.

The symbolic checker of regalloc2 (Cranelift): a forward analysis from register to the SSA value in it; where paths
meet, only what they agree on stays. A use that no definition dominates fails here as well. Beside that, every operation
must have its values where its machine word can name them.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Block, Operation, Region, SSAValue

from sassir.analysis.flow import flow_of
from sassir.dialect import internals
from sassir.dialect.edges import forwarded
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.registers import SassRegister
from sassir.dialect.syntax import short, written
from sassir.errors import TranslationError

Holding = dict[int, SSAValue]
"""Register number to the value in it."""


def check_allocation(region: Region) -> None:
    """Raises TranslationError, naming operation, value and register, if some register holds another value than is read.

    Also if a group is not adjacent or not aligned, or values that must be in one register (a result and what it keeps, an
    operand that is read and written, what a branch passes and what the block takes) are in two.
    """
    flow = flow_of(region)
    entry: list[Holding | None] = [{} if b in flow.cfg.roots else None for b in range(len(flow.blocks))]
    for block in flow.blocks:
        _check_places(block)
    numbers = _Numbers()
    work = list(reversed(flow.cfg.order))
    waiting = set(work)
    while work:
        b = work.pop()
        waiting.discard(b)
        before = entry[b]
        if before is None:
            continue
        holding = _run(flow.blocks[b], before, numbers)
        for s in flow.cfg.successors[b]:
            known = entry[s]
            met = holding if known is None else {n: v for n, v in known.items() if holding.get(n) is v}
            if known is None or len(met) != len(known):
                entry[s] = met
                if s not in waiting:
                    waiting.add(s)
                    work.append(s)


class _Numbers(dict[SSAValue, int]):
    """The number of the register of each value, found when it is first asked for."""

    def __missing__(self, value: SSAValue) -> int:
        kind = value.type
        if isinstance(kind, SassRegister) and (number := kind.number) is not None:
            self[value] = number
            return number
        raise TranslationError(f"%{value.name_hint} is a {kind}; allocate registers first")


def _run(block: Block, before: Holding, numbers: _Numbers) -> Holding:
    """What the registers hold after `block`."""
    holding = dict(before)
    for argument in block.args:
        holding[numbers[argument]] = argument
    for op in internals.operations(block):
        for value in internals.operands(op):
            if holding.get(numbers[value]) is not value:
                raise TranslationError(f"`{written(op)}` reads a value from {value.type}, which holds another one there")
        for result in op.results:
            holding[numbers[result]] = result
    return holding


def _check_places(block: Block) -> None:
    for op in internals.operations(block):
        for problem in _misplaced(op):
            raise TranslationError(f"`{written(op)}`: {problem}")


def _misplaced(op: Operation) -> Iterator[str]:
    """What is wrong with the registers of one operation among each other."""
    if isinstance(op, SassInstruction):
        for result, old in zip(op.results, op.kept, strict=False):
            if result.type != old.type:
                yield f"a result in {short(result.type)} keeps a value in {short(old.type)}"
        if not op.template.data.narrow:
            yield from op.misplaced()
    if len(op.results) > 1 and len({r.type for r in op.results}) < len(op.results):
        yield "writes two values into one register"
    successors = internals.successors(op)
    for block, values in zip(successors, forwarded(op), strict=False) if successors else ():
        for argument, value in zip(block.args, values, strict=False):
            if argument.type != value.type:
                yield f"passes a value in {short(value.type)} as an argument in {short(argument.type)}"
