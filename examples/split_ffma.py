"""A pass that is wrong: FFMA rounds once, FMUL and FADD round twice. docs/lesson.md shows how that comes out.

    sassir optimize saxpy.sm_90.cubin -p split_ffma.toml --launch saxpy.toml
"""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from sassir.dialect.instruction import SassInstruction
from sassir.rewrite.build import instruction, name_of
from sassir.rewrite.simplify import put_in_place


@dataclass(frozen=True)
class SplitFfma(ModulePass):
    """Replaces the fused multiply-add of a register, a uniform register and a register by a product and a sum."""

    name = "split-ffma"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for ffma in [op for op in op.walk() if isinstance(op, SassInstruction)]:
            if (name_of(ffma), ffma.template.text, ffma.kept) == ("FFMA", "=R, $R, $UR, $R", ()):
                a, b, c = ffma.reads
                product = instruction("FMUL =R, $R, $UR", (a, b))
                Rewriter.insert_op(product, InsertPoint.before(ffma))
                put_in_place(ffma, instruction("FADD =R, $R, $R", (product.results[0], c)))
