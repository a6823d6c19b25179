"""What the lifted code and the facts of a launch tell about the timing: how often loops run, which addresses threads access."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block

from sassir.analysis.counted import counted_loop
from sassir.analysis.dry_run import Passes, dry_passes
from sassir.analysis.propagated import propagate
from sassir.analysis.region_loops import RegionLoop, region_loops
from sassir.dialect import internals
from sassir.dialect.facts import facts_of
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.operations import KernelOp
from sassir.rewrite.kernels import arch_of
from sassir.timing.dry import dry_traffic
from sassir.timing.profile import NOWHERE, Traffic, Went


class Known(NamedTuple):
    """What is known of one kernel, by the offsets of instructions."""

    trips: dict[int, float]
    """Iterations of a loop each time it is entered, by its first instruction; of the first block, where they differ."""
    went: Went
    """Where its threads go, by the first instructions of basic blocks."""
    runs: dict[int, tuple[float, float]] | None
    """How often the warps of the first block run basic blocks, by their first instructions, if that is known of all: mean and most."""
    traffic: dict[int, Traffic]
    """What memory instructions move; see `dry_traffic`."""


def known_of(module: ModuleOp, first_level: Mapping[str, int]) -> dict[str, Known]:
    """For each kernel, with the facts that `attach_facts` gave it; `first_level`: bytes of L1 for one block, by kernel."""
    arch = arch_of(module)
    kernels = {op.function.data: op for op in module.body.ops if isinstance(op, KernelOp)}
    return {name: _known(op, arch, first_level[name]) for name, op in kernels.items()}


def _known(kernel: KernelOp, arch: str, first_level: int) -> Known:
    if kernel.fixed is not None:
        return Known({}, NOWHERE, None, {})
    known = propagate(kernel, arch)
    block = facts_of(kernel).block
    passes = dry_passes(kernel, known, block) if block is not None else None
    trips: dict[int, float] = {}
    for loop in region_loops(kernel.body):
        counted = counted_loop(loop, known)
        turns = counted.trips if counted is not None and counted.trips is not None else passes and _turns(loop, passes)
        if turns is not None and (first := _first(loop.header)) is not None:
            trips[first] = turns
    traffic = dry_traffic(kernel, arch, first_level)
    return Known(trips, NOWHERE, None, traffic) if passes is None else Known(trips, _went(passes), _runs(passes), traffic)


def _turns(loop: RegionLoop, passes: Passes) -> float | None:
    """Iterations each time the loop is entered, 0 if it is not; None where it is not known when it ends."""
    for block in loop.blocks & passes.undecided:
        if block.last_op is not None and not loop.blocks.issuperset(internals.successors(block.last_op)):
            return None
    entries = sum([threads for (source, target), threads in passes.edges.items() if target is loop.header and source not in loop.blocks])
    again = sum([threads for (source, target), threads in passes.edges.items() if target is loop.header and source in loop.blocks])
    return (entries + again) / entries if entries else 0.0


def _went(passes: Passes) -> Went:
    edges = {(_first(source), _first(target)): threads for (source, target), threads in passes.edges.items()}
    decided = {first for first, _ in edges} - {_first(block) for block in passes.undecided}
    return {(a, b): threads for (a, b), threads in edges.items() if a in decided and a is not None and b is not None}


def _runs(passes: Passes) -> dict[int, tuple[float, float]] | None:
    if passes.undecided:
        return None
    found = {_first(block): (float(often.mean()), float(often.max())) for block, often in passes.runs.items()}
    return {first: often for first, often in found.items() if first is not None}


def _first(block: Block) -> int | None:
    origins = [op.origin for op in block.ops if isinstance(op, SassInstruction)]
    return origins[0].data.offset if origins and origins[0] is not None else None
