"""sass-check-allocation: fail unless every register holds the value that is read from it."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from sassir.analysis.allocation import check_allocation
from sassir.dialect.operations import KernelOp
from sassir.errors import TranslationError


@dataclass(frozen=True)
class CheckAllocation(ModulePass):
    """Fails unless every register holds the value that is read from it, on every path. Changes nothing."""

    name = "sass-check-allocation"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in op.body.ops:
            if isinstance(kernel, KernelOp):
                try:
                    check_allocation(kernel.body)
                except TranslationError as error:
                    raise error.at(f"kernel {kernel.function.data}") from error
