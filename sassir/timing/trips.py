"""How often loops run, as far as the code and the facts of a launch tell."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from sassir.analysis.counted import counted_loop
from sassir.analysis.propagation import Propagation
from sassir.analysis.region_loops import RegionLoop, region_loops
from sassir.dialect.facts import facts_of
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.operations import KernelOp
from sassir.rewrite.kernels import arch_of


def trip_counts(module: ModuleOp) -> dict[str, dict[int, int]]:
    """For each kernel, the iterations of its counted loops, by the offset of the first instruction of the loop.

    Facts of a launch are those that `attach_facts` gave the kernels.
    """
    return {op.function.data: _trips(op, arch_of(module)) for op in module.body.ops if isinstance(op, KernelOp)}


def _trips(kernel: KernelOp, arch: str) -> dict[int, int]:
    if kernel.fixed is not None:
        return {}
    known = Propagation(kernel, facts_of(kernel), arch)
    found: dict[int, int] = {}
    for loop in region_loops(kernel.body):
        counted = counted_loop(loop, known)
        first = _first(loop)
        if counted is not None and counted.trips is not None and first is not None:
            found[first] = counted.trips
    return found


def _first(loop: RegionLoop) -> int | None:
    origins = [op.origin for op in loop.header.ops if isinstance(op, SassInstruction)]
    return origins[0].data.offset if origins and origins[0] is not None else None
