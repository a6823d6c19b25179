"""sass-virtualise: free the registers, so that an allocator may choose them anew.

`!sass.r<R4>` becomes `!sass.r`. Control codes and operand-cache marks go too: they hold for the old registers and the old
order. Some values must stay where they are, and with them all that are bound to them (see `_pinned`). A kernel that uses
registers in a way that no value shows keeps all of its registers, and says why.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from sassir.analysis.bonds import filled_holes, neighbours, tied
from sassir.analysis.divergence import Divergence
from sassir.analysis.effects import effects
from sassir.analysis.flow import flow_of
from sassir.analysis.liveness import Liveness
from sassir.dialect import internals
from sassir.dialect.instruction import SassBranch, SassInstruction
from sassir.dialect.operations import ALLOCATED, KernelOp
from sassir.dialect.registers import FILES, UP, UR, B, file_of, register
from sassir.dialect.template import TemplateAttr
from sassir.errors import SassirWarning

_STACK_POINTER = register("R1")
_LOCAL = frozenset({"local"})
_WARPGROUP = frozenset({"BGMMA", "HGMMA", "IGMMA", "QGMMA"})
"""Products of a warpgroup, which run on behind the program. Those whose first factor is in registers gave other results on an
H200 once the registers were chosen anew (triton_attention): their lifetime is not what the values show."""
_UNIFORM = (UR.FILE, UP.FILE)


@dataclass(frozen=True)
class Virtualise(ModulePass):
    """Frees the registers of every kernel that is fully understood; the others say in the attribute sass.allocated why not."""

    name = "sass-virtualise"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in op.body.ops:
            if isinstance(kernel, KernelOp) and (reason := virtualise(kernel)) is not None:
                warnings.warn(f"kernel {kernel.function.data} keeps its registers: {reason}", SassirWarning, stacklevel=2)


def virtualise(kernel: KernelOp) -> str | None:
    """Free the registers of `kernel`. If they must stay, the result is the reason, and so is its attribute `sass.allocated`."""
    reason = kernel.fixed.data if kernel.fixed is not None else _hidden_use(kernel.body)
    if reason is not None:
        kernel.attributes[ALLOCATED] = StringAttr(reason)
        return reason
    pinned = _pinned(kernel.body)
    for block in kernel.body.blocks:
        _free(block.args, pinned)
        for op in block.ops:
            _free(op.results, pinned)
            if isinstance(op, SassInstruction):
                op.control = None
                op.template = _without_reuse(op.template)
    return None


def _free(values: tuple[SSAValue, ...], pinned: set[SSAValue]) -> None:
    for value in values:
        if value not in pinned:
            internals.retype(value, FILES[file_of(value)].free())


@cache
def _without_reuse(template: TemplateAttr) -> TemplateAttr:
    return TemplateAttr.of(template.text.replace(".reuse", ""))


def _hidden_use(body: Region) -> str | None:
    """The instruction whose use of registers no value shows, if there is one."""
    ops = [op for block in body.blocks for op in block.ops if isinstance(op, SassInstruction)]
    returns = any(op.MNEMONIC == "RET" for op in ops)
    for op in ops:
        reason = None
        if op.MNEMONIC == "RET" and not op.successors:
            reason = "returns to code that is not known"
        elif isinstance(op, SassBranch) and op.produces and op.template.data.visible and returns:
            reason = "calls what its register says, which may be a function of this section"
        elif op.MNEMONIC == "USETMAXREG":
            reason = "changes the number of registers"
        elif op.MNEMONIC in _WARPGROUP and "gdesc" not in op.template.data.arguments[1].template:
            reason = "reads registers until WARPGROUP.DEPBAR"
        elif op.MNEMONIC == "BMOV" and not op.results and not op.template.text.startswith("RZ"):
            reason = "changes which threads run, and so whose registers are written"
        if reason is not None:
            where = f" at {op.origin.data.offset:#x}" if op.origin is not None else ""
            return f"{op.MNEMONIC}{where} {reason}"
    return None


def _pinned(body: Region) -> set[SSAValue]:
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
