"""sass-specialize: put what is known of the launch into the code: parameters, sizes, ranges; and what follows from it.

Without facts only what the code itself says is used. A word of the constant bank becomes an immediate, an operation on
known values a MOV, a decided guard or branch goes, and blocks that nothing reaches any more with it. Exact: every value
that is still computed is the same bit for bit.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute
from xdsl.passes import ModulePass

from sassir.analysis.effects import effects
from sassir.analysis.propagated import propagate
from sassir.analysis.propagation import Propagation
from sassir.dialect import internals
from sassir.dialect.edges import decides, forwarded
from sassir.dialect.facts import record_use
from sassir.dialect.instruction import SassBranch, SassInstruction
from sassir.dialect.operations import KernelOp, NextOp
from sassir.dialect.registers import UR, R
from sassir.passes.dce import drop_dead_code
from sassir.rewrite.build import instruction
from sassir.rewrite.flow import drop_unreachable, reachable, tidy
from sassir.rewrite.immediate import with_known
from sassir.rewrite.kernels import free_kernels
from sassir.rewrite.layout import jump
from sassir.rewrite.simplify import copied_values, put_in_place, replace, without_guard
from sassir.rewrite.sparing import sparing_ranges


@dataclass(frozen=True)
class Specialize(ModulePass):
    """Folds facts and constants into every kernel whose registers are free."""

    name = "sass-specialize"

    @sparing_ranges
    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel, arch in free_kernels(op):
            propagation = propagate(kernel, arch)
            if self.name in propagation.settled:
                continue
            before = reachable(kernel)
            if not _Specializer(propagation, arch).run(kernel):
                propagation.settled.add(self.name)
            else:
                record_use(kernel, propagation.used)
                drop_unreachable(kernel, before)
                drop_dead_code(kernel.body)
                tidy(kernel)


class _Specializer:
    def __init__(self, propagation: Propagation, arch: str) -> None:
        self.known = propagation
        self.arch = arch

    def run(self, kernel: KernelOp) -> bool:
        """Returns whether anything changed."""
        changed = False
        for block in list(kernel.body.blocks):
            if block in self.known.reached:
                for op in internals.operations(block):
                    changed |= isinstance(op, SassInstruction) and self._visit(op)
        return changed

    def _visit(self, op: SassInstruction) -> bool:
        guard = self.known.guard(op)
        if isinstance(op, SassBranch):
            return self._branch(op, guard)
        if guard is False:
            replace(op, op.kept)
            return True
        if op.results and (values := self._values(op)) is not None and effects(op).droppable:
            return self._materialise(op, values)
        bare = without_guard(op) if guard and (op.guard is not None or op.constant_guard is not None) else op
        new = with_known(bare, self.known.word, self.known.constant, self.arch)
        if bare not in (op, new):
            bare.erase()
        copied = copied_values(new)
        if copied is not None:
            values = list(copied)
            if new is not op:
                new.erase()
            replace(op, values)
            return True
        if new is not op:
            put_in_place(op, new)
        return new is not op

    def _values(self, op: SassInstruction) -> list[int] | None:
        """The words of all results, if they are known and free general or uniform registers."""
        words: list[int] = []
        for result in op.results:
            word = self.known.word(result)
            if word is None or not isinstance(result.type, R | UR) or result.type.number is not None:
                return None
            words.append(word)
        return words

    def _materialise(self, op: SassInstruction, values: list[int]) -> bool:
        """Replace an operation by moves of its results."""
        if op.MNEMONIC in ("MOV", "UMOV") and not op.reads and op.guard is None:
            return False
        assert op.parent is not None
        names = ["UMOV =UR" if isinstance(r.type, UR) else "MOV =R" for r in op.results]
        moves = [instruction(f"{name}, {value:#x}") for name, value in zip(names, values, strict=True)]
        op.parent.insert_ops_before(moves, op)
        replace(op, [move.results[0] for move in moves])
        return True

    def _branch(self, op: SassBranch, guard: bool | None) -> bool:
        """A decided branch is taken always or never."""
        block, passed = op.parent, forwarded(op)
        assert block is not None
        if decides(op) and guard is not None:
            new = jump(op.successors[0], passed[0]) if guard else NextOp.create(operands=passed[1], successors=[op.successors[1]])
        elif op.MNEMONIC == "EXIT" and op.successors and guard is not None:
            new = type(op).create(properties=_unguarded(op)) if guard else NextOp.create(operands=passed[0], successors=op.successors)
        else:
            return False
        op.detach()
        op.erase()
        block.add_op(new)
        return True


def _unguarded(op: SassBranch) -> dict[str, Attribute]:
    return {k: v for k, v in op.properties.items() if k not in ("unless", "constant_guard", "control")}
