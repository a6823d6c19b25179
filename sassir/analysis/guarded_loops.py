"""Loops whose only calls are the slow ways of guarded operations: several iterations can become one run of guards."""

from __future__ import annotations

from typing import NamedTuple

from xdsl.ir import Block, SSAValue

from sassir.analysis.calls import match_calls
from sassir.analysis.flow import flow_of
from sassir.analysis.guarded_runs import GuardedRun, before_last, guarded_runs, may_wait, runs_early
from sassir.analysis.region_loops import RegionLoop, loops_around_calls
from sassir.dialect.facts import KernelFacts, facts_of
from sassir.dialect.operations import KernelOp


class GuardedLoop(NamedTuple):
    """One innermost loop."""

    loop: RegionLoop
    """Without the routines that it calls."""
    cold: frozenset[Block]
    """Its blocks on slow ways."""
    outside: frozenset[Block]
    """The blocks where what is made stays the same in the loop: no routines."""


def guarded_loops(kernel: KernelOp) -> list[GuardedLoop]:
    """The loops all of whose code may run early, or wait, until the guards of several iterations have been tested."""
    runs = guarded_runs(kernel)
    if not runs:
        return []
    flow = flow_of(kernel.body)
    main = frozenset([flow.blocks[b] for b in match_calls(flow).reached(0)])
    found: list[GuardedLoop] = []
    for loop in loops_around_calls(kernel.body):
        inside = [run for run in runs if run.guards[0].start in loop.blocks]
        cold = frozenset([block for run in inside for guard in run.guards for block in guard.cold])
        if loop.innermost and loop.calls and cold.issuperset(loop.calls) and _waits_or_runs_early(loop, inside, cold, facts_of(kernel)):
            found.append(GuardedLoop(loop, cold, main - loop.blocks))
    return found


def _waits_or_runs_early(loop: RegionLoop, runs: list[GuardedRun], cold: frozenset[Block], facts: KernelFacts) -> bool:
    decided = frozenset[SSAValue]().union(*[run.decided for run in runs])
    barriers = {guard.barrier for run in runs for guard in run.guards}
    ops = [op for block in loop.blocks - cold for op in before_last(block) if op not in barriers]
    return all(runs_early(op, decided) or (facts.noalias and may_wait(op)) for op in ops)
