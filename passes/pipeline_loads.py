"""sass-pipeline-loads: software pipelining of loads across the back edge, so that a loop does not wait for what it has just asked for.

In a loop of one block, the loads for the next iteration are made in this one: in front of the loop for the first iteration, and then
where what was loaded before has been used, so that it costs no registers. A load is made only in threads that go on with a further
iteration: none reads what it did not read before. Done where the warps of a multiprocessor do not fill the time of the loads anyway
(the bounds are those of modulo scheduling: Rau, Iterative Modulo Scheduling, 1994).

An option, in no pipeline. By the timing model, dgemv_col in ptxas's order becomes 2.3 times as fast on an H200. Behind sass-unroll and
sass-schedule, which put the loads of many iterations together, nothing is left to gain: 0.91 (dgemv_col), 1.005 (stencil3d7).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass

from sassir.allocation.launch import LaunchBounds, bounds_of, launch_bounds
from sassir.analysis.early_loads import EarlyLoad, SelfLoop, early_loads, self_loop
from sassir.analysis.flow import flow_of
from sassir.analysis.liveness import Liveness
from sassir.analysis.pointers import pointers_of
from sassir.analysis.pressure import pressure
from sassir.analysis.region_loops import region_loops
from sassir.dialect import internals
from sassir.dialect.facts import KernelFacts, facts_of, record_use
from sassir.dialect.operations import KernelOp
from sassir.dialect.registers import R
from sassir.machine import machine
from sassir.machine.hierarchy import SCHEDULERS
from sassir.passes.dce import drop_dead_code
from sassir.rewrite.early_loads import Batch, load_ahead
from sassir.rewrite.flow import tidy
from sassir.rewrite.kernels import free_kernels
from sassir.rewrite.layout import repair_layout
from sassir.schedule.budget import LARGEST, register_budget, running_warps
from sassir.schedule.graph import Graph
from sassir.schedule.order import cycles_of

BATCHES = 4
"""Places of a loop at which loads are made: each batch needs a scoreboard of its own, and there are six."""
LEFT = 16
"""General registers that stay free: loaded values that find no room to come back to the same registers are moved at the back edge, and
that waits for them."""
WORTHWHILE = 0.9
"""What an iteration must take of its time before, by estimate."""


@dataclass(frozen=True)
class PipelineLoads(ModulePass):
    """Makes loads of global memory an iteration ahead in loops of one block, within the register budget.

    It comes last: `sass-schedule` does not know what is waited for in the next iteration.
    """

    name = "sass-pipeline-loads"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        bounds = launch_bounds(op)
        for kernel, arch in free_kernels(op):
            pipeline_loads(kernel, arch, bounds_of(kernel, bounds))


def pipeline_loads(kernel: KernelOp, arch: str, bounds: LaunchBounds) -> int:
    """Returns the number of loads that are now made an iteration ahead."""
    facts = facts_of(kernel)
    plans = _plans(kernel, arch, facts, bounds)
    if any(_needs_noalias(plan, facts) for plan in plans):
        record_use(kernel, ["noalias"])
    for plan in plans:
        load_ahead(kernel, plan.loop, plan.batches)
    if plans:
        drop_dead_code(kernel.body)
        repair_layout(kernel)
        tidy(kernel)
    return sum(len(batch.loads) for plan in plans for batch in plan.batches)


class _Plan(NamedTuple):
    loop: SelfLoop
    batches: Sequence[Batch]


def _plans(kernel: KernelOp, arch: str, facts: KernelFacts, bounds: LaunchBounds) -> list[_Plan]:
    """The loops where it pays, and which loads."""
    loops = [found for loop in region_loops(kernel.body) if (found := self_loop(kernel, loop)) is not None]
    if not loops:
        return []
    pointers = pointers_of(kernel.body, facts)
    loads = [early_loads(loop, facts, pointers) for loop in loops]
    if not any(loads):
        return []
    liveness = Liveness(flow_of(kernel.body))
    used = pressure(liveness).peak.get(R.FILE, 0)
    limit = register_budget(arch, used, facts, bounds) - LEFT
    warps = -(-running_warps(arch, used, facts, bounds) // SCHEDULERS)
    plans: list[_Plan] = []
    for loop, possible in zip(loops, loads, strict=True):
        chosen = _fitting(loop, possible, liveness, limit)
        if chosen and _pays(loop, chosen, warps, Graph(loop.block, facts, pointers, machine(arch))):
            plans.append(_Plan(loop, _batches(chosen)))
    return plans


class _Early(NamedTuple):
    """A load, and the operation of its block behind which it can be made for the next iteration."""

    load: EarlyLoad
    behind: Operation


def _fitting(loop: SelfLoop, loads: Sequence[EarlyLoad], liveness: Liveness, limit: int) -> list[_Early]:
    """The loads for whose results the loop has a register in every iteration and, from some place on, for the next one.

    At most `limit` general registers are in use then. They come in the order of these places.
    """
    ops = list(loop.block.ops)
    position = {op: i for i, op in enumerate(ops)}
    occupied = _occupied(loop.block, liveness)
    chosen: list[tuple[int, EarlyLoad]] = []
    ready: set[Operation] = set()
    for used, load in sorted([(_last_use(load, position), load) for load in loads], key=lambda c: c[0])[:LARGEST]:
        made, words = position[load.op], len(load.op.results)
        new = {*load.address, *[op for op in load.first if position[op] > used]} - ready
        more = sum(isinstance(r.type, R) for op in new for r in op.results)
        place = next((i for i in range(len(ops) - 1, used, -1) if occupied[i] + words + more > limit), used)
        if place == len(ops) - 1 or max(occupied[: made + 1]) + words > limit:
            continue
        occupied = [n + words * (i <= made or i > place) + more * (i > place) for i, n in enumerate(occupied)]
        ready |= new
        chosen.append((place, load))
    return [_Early(load, ops[place]) for place, load in sorted(chosen, key=lambda c: c[0])]


def _last_use(load: EarlyLoad, position: Mapping[Operation, int]) -> int:
    return max([position[use.operation] for r in load.op.results for use in r.uses])


def _occupied(block: Block, liveness: Liveness) -> list[int]:
    """The general registers that hold values in front of each operation of a block."""
    counts: list[int] = []
    for op, live in liveness.backwards(liveness.flow.number[block]):
        needed = live.difference(op.results).union(internals.operands(op))
        counts.append(sum(isinstance(v.type, R) for v in needed))
    return counts[::-1]


def _pays(loop: SelfLoop, chosen: Sequence[_Early], warps: int, graph: Graph) -> bool:
    """Whether an iteration becomes clearly shorter, for `warps` warps that issue in turn.

    They take at least what they keep a pipe or the scheduler busy. One of them takes what its code waits, and, once its loads are an
    iteration ahead, at least as long as a load.
    """
    order = range(len(graph.ops))
    pipes: dict[str, int] = {}
    for timing in graph.timings:
        if timing is not None:
            pipes[timing.pipe] = pipes.get(timing.pipe, 0) + timing.issue
    busy = warps * max(len(graph.ops), *pipes.values())
    before = max(busy, cycles_of(graph, order))
    for early in chosen:
        i = graph.position[early.load.op]
        graph.successors[i] = dict.fromkeys(graph.successors[i], 1)
    latency = max(graph.latencies[graph.position[early.load.op]] for early in chosen)
    return max(busy, latency, cycles_of(graph, order)) <= WORTHWHILE * before


def _batches(chosen: Sequence[_Early]) -> list[Batch]:
    """The loads in batches of equal size, in the order of their places."""
    size = -(-len(chosen) // BATCHES)
    parts = [chosen[i : i + size] for i in range(0, len(chosen), size)]
    return [Batch([early.load for early in part], part[-1].behind) for part in parts]


def _needs_noalias(plan: _Plan, facts: KernelFacts) -> bool:
    without = {load.op for load in early_loads(plan.loop, replace(facts, noalias=False), {})}
    return any(load.op not in without for batch in plan.batches for load in batch.loads)
