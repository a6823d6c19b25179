"""sass-allocate-registers: give every value a register."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from sassir.allocation.allocate import allocate
from sassir.allocation.launch import launch_limits
from sassir.allocation.registers import MOST_REGISTERS
from sassir.errors import TranslationError
from sassir.rewrite.kernels import free_kernels


@dataclass(frozen=True)
class AllocateRegisters(ModulePass):
    """Gives every value of the kernels that `sass-virtualise` freed a register.

    A kernel takes as many registers as it had, more where more values live at once, up to what its launch bounds allow, and never
    more than `max-registers`; what does not fit into them is spilled to local memory.
    """

    name = "sass-allocate-registers"
    max_registers: int | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        most = MOST_REGISTERS if self.max_registers is None else self.max_registers
        limits = launch_limits(op)
        for kernel, arch in free_kernels(op):
            section = kernel.section.data if kernel.section is not None else None
            try:
                allocate(kernel, arch, min(most, limits.get(section, MOST_REGISTERS)))
            except TranslationError as error:
                raise error.at(f"kernel {kernel.function.data}") from error
