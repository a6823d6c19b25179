"""sass-verify-ssa: fail unless every value is made before it is used, on every path."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from sassir.analysis.ssa import verify_ssa
from sassir.dialect.operations import KernelOp
from sassir.errors import TranslationError


@dataclass(frozen=True)
class VerifySsa(ModulePass):
    """Fails unless every value is made before it is used, on every path, and each block gets what it takes. Changes nothing."""

    name = "sass-verify-ssa"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in op.body.ops:
            if isinstance(kernel, KernelOp):
                try:
                    verify_ssa(kernel.body)
                except TranslationError as error:
                    raise error.at(f"kernel {kernel.function.data}") from error
