"""sass-merge-guards: one test for several operations with a slow path, so that their fast paths overlap.

Inlined division, square root and reciprocal test their operands and branch, each for itself; nothing moves across the branches.
In a loop that does several of them the fast ways are put into one block. If a test says that one of the operands needs the
slow way, all of them run again as the compiler had them. Exact, and nothing is assumed.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from sassir.analysis.guarded_runs import GuardedRun, guarded_runs
from sassir.dialect.facts import facts_of, record_use
from sassir.passes.dce import drop_dead_code
from sassir.rewrite.call_arguments import pass_only_needed
from sassir.rewrite.kernels import free_kernels
from sassir.rewrite.layout import repair_layout
from sassir.rewrite.merge_guards import merge_guards


@dataclass(frozen=True)
class MergeGuards(ModulePass):
    """Merges the guards of each run of at least two in an innermost loop."""

    name = "sass-merge-guards"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel, _ in free_kernels(op):
            if not any(_worthwhile(run) for run in guarded_runs(kernel)):
                continue
            pass_only_needed(kernel)
            drop_dead_code(kernel.body)
            for run in reversed(guarded_runs(kernel)):  # one may begin where the one before it ends
                if _worthwhile(run) and merge_guards(kernel, run) and run.waiting and facts_of(kernel).noalias:
                    record_use(kernel, ["noalias"])
            repair_layout(kernel)
            drop_dead_code(kernel.body)


def _worthwhile(run: GuardedRun) -> bool:
    """There are several fast ways, which can overlap, and where the run begins is as it was found."""
    return len(run.guards) > 1 and run.guards[0].branch.parent is run.guards[0].start
