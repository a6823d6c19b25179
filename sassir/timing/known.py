"""What the lifted code and the facts of a launch tell about the timing: how often loops run, which addresses threads access."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from xdsl.dialects.builtin import ModuleOp

from sassir.analysis.counted import counted_loop
from sassir.analysis.propagated import propagate
from sassir.analysis.region_loops import RegionLoop, region_loops
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.operations import KernelOp
from sassir.rewrite.kernels import arch_of
from sassir.timing.dry import dry_traffic
from sassir.timing.profile import Traffic


class Known(NamedTuple):
    """What is known of one kernel, by the offsets of instructions."""

    trips: dict[int, int]
    """Iterations of a counted loop each time it is entered, by its first instruction."""
    traffic: dict[int, Traffic]
    """What memory instructions move; see `dry_traffic`."""


def known_of(module: ModuleOp, first_level: Mapping[str, int]) -> dict[str, Known]:
    """For each kernel, with the facts that `attach_facts` gave it; `first_level`: bytes of L1 for one block, by kernel."""
    arch = arch_of(module)
    kernels = {op.function.data: op for op in module.body.ops if isinstance(op, KernelOp)}
    return {name: Known(_trips(op, arch), dry_traffic(op, arch, first_level[name])) for name, op in kernels.items()}


def _trips(kernel: KernelOp, arch: str) -> dict[int, int]:
    if kernel.fixed is not None:
        return {}
    known = propagate(kernel, arch)
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
