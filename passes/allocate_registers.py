"""sass-allocate-registers: give every value a register."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from sassir.allocation.allocate import allocate
from sassir.errors import TranslationError
from sassir.rewrite.kernels import free_kernels


@dataclass(frozen=True)
class AllocateRegisters(ModulePass):
    """Gives every value of the kernels that `sass-virtualise` freed a register."""

    name = "sass-allocate-registers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel, arch in free_kernels(op):
            try:
                allocate(kernel, arch)
            except TranslationError as error:
                raise error.at(f"kernel {kernel.function.data}") from error
