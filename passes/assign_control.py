"""sass-assign-control: make every control code anew, from the order of the instructions alone."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.passes import ModulePass

from sassir.dialect.operations import KernelOp
from sassir.errors import SchedulingError
from sassir.machine import machine
from sassir.schedule.control import assign_control
from sassir.translate.lift import ARCH


@dataclass(frozen=True)
class AssignControl(ModulePass):
    """Makes every control code anew: stall counts, yield, scoreboards, waits, operand cache. Fixed kernels keep theirs."""

    name = "sass-assign-control"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        arch = op.attributes.get(ARCH)
        if not isinstance(arch, StringAttr):
            raise SchedulingError(f'the module has no architecture; expected the attribute {ARCH} = "sm_90" (or another one)')
        for kernel in op.body.ops:
            if isinstance(kernel, KernelOp) and kernel.fixed is None:
                try:
                    assign_control(kernel, machine(arch.data))
                except SchedulingError as error:
                    raise error.at(f"kernel {kernel.function.data}") from error
