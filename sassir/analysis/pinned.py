"""Which values must stay in the registers of the original code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.ir import Block, Operation, Region, SSAValue

from sassir.analysis.bonds import filled_holes, neighbours, tied
from sassir.analysis.divergence import Divergence
from sassir.analysis.effects import effects
from sassir.analysis.flow import flow_of
from sassir.analysis.liveness import Liveness
from sassir.dialect.instruction import SassBranch, SassInstruction
from sassir.dialect.registers import UP, UR, B, file_of, register

_STACK_POINTER = register("R1")
_LOCAL = frozenset({"local"})
_UNIFORM = (UR.FILE, UP.FILE)


def pinned_values(body: Region) -> set[SSAValue]:
    """The values that must stay in their registers, and all that are bound to them: by one register, or by a group."""
    found = {*_fixed_by_number(body), *_uniform_where_split(body)}
    files = {file_of(value) for value in found}
    bound: dict[SSAValue, list[SSAValue]] = {}
    for block in body.blocks if files else ():
        for op in block.ops:
            for a, b in _bonds(op):
                if file_of(a) in files:
                    bound.setdefault(a, []).append(b)
                    bound.setdefault(b, []).append(a)
    work = list(found)
    while work:
        for value in bound.get(work.pop(), ()):
            if value not in found:
                found.add(value)
                work.append(value)
    return found


def _bonds(op: Operation) -> Iterator[tuple[SSAValue, SSAValue]]:
    yield from tied(op)
    if isinstance(op, SassInstruction):
        yield from neighbours(op)


def _fixed_by_number(body: Region) -> Iterator[SSAValue]:
    """What an instruction reads or writes without naming it, convergence barriers, and the stack pointer where the stack is used."""
    stack: list[SSAValue] = []
    local = False
    for block in body.blocks:
        for value in _made_in(block):
            if file_of(value) == B.FILE:
                yield value
            elif value.type == _STACK_POINTER:
                stack.append(value)
        for op in block.ops:
            if isinstance(op, SassInstruction):
                local = local or effects(op).loads | effects(op).stores == _LOCAL
                yield from _hidden(op)
    if local:
        yield from stack


def _hidden(op: SassInstruction) -> Iterator[SSAValue]:
    template = op.template.data
    if len(template.holes) > template.visible:
        for _, read, written in [*filled_holes(op)][template.visible :]:
            yield from (*read, *written)
    if isinstance(op, SassBranch) and op.produces:
        for block in op.successors:
            yield from block.args


def _uniform_where_split(body: Region) -> Iterator[SSAValue]:
    """Uniform values in use where the warp may be split, if any is written there.

    A uniform register is one for the warp: what some threads write, the others see as well. That a register is free on the
    way that some threads take does not say that the others do not need it. The compiler's choice is right for both.
    """
    if not any(_is_uniform(value) for block in body.blocks for value in _made_in(block)):
        return
    split = Divergence(body).split
    flow = flow_of(body)
    if any(_is_uniform(r) for b in split for op in flow.blocks[b].ops for r in op.results):
        liveness = Liveness(flow, _UNIFORM)
        for b in split:
            yield from filter(_is_uniform, (*_made_in(flow.blocks[b]), *liveness.live_in[b]))


def _is_uniform(value: SSAValue) -> bool:
    return file_of(value) in _UNIFORM


def _made_in(block: Block) -> Sequence[SSAValue]:
    return [*block.args, *[result for op in block.ops for result in op.results]]
