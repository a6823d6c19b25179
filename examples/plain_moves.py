"""A pass: IMAD.MOV, the move that ptxas gives to the multiplier, becomes a MOV.

    sassir-opt KERNEL.cubin --load-pass plain_moves.py -p sass-virtualise,plain-moves
"""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from sassir.dialect.instruction import SassInstruction
from sassir.rewrite.build import instruction
from sassir.rewrite.simplify import put_in_place


@dataclass(frozen=True)
class PlainMoves(ModulePass):
    """Replaces every IMAD.MOV of a general register that no guard keeps from executing."""

    name = "plain-moves"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for move in [op for op in op.walk() if isinstance(op, SassInstruction)]:
            if (move.MNEMONIC, move.template.text, move.kept) == ("IMAD", "=R, RZ, RZ, $R", ()):
                put_in_place(move, instruction("MOV =R, $R", move.reads))
