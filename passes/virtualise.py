"""sass-virtualise: free the registers, so that an allocator may choose them anew.

`!sass.r<R4>` becomes `!sass.r`. Control codes and operand-cache marks go too: they hold for the old registers and the old
order. Some values must stay where they are, and with them all that are bound to them (see `pinned_values`). A kernel that uses
registers in a way that no value shows keeps all of its registers, and says why.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cache

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Region, SSAValue
from xdsl.passes import ModulePass

from sassir.analysis.pinned import pinned_values
from sassir.dialect import internals
from sassir.dialect.instruction import SassBranch, SassInstruction
from sassir.dialect.operations import ALLOCATED, KernelOp
from sassir.dialect.registers import FILES, file_of
from sassir.dialect.template import TemplateAttr
from sassir.errors import SassirWarning

_WARPGROUP = frozenset({"BGMMA", "HGMMA", "IGMMA", "QGMMA"})
"""Products of a warpgroup, which run on behind the program. Those whose first factor is in registers gave other results on an
H200 once the registers were chosen anew (triton_attention): their lifetime is not what the values show."""


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
    pinned = pinned_values(kernel.body)
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
