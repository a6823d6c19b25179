"""How many registers a kernel may take: as many as leave the warps on a multiprocessor as they are."""

from __future__ import annotations

from math import prod

from sassir.analysis.occupancy import WARP, occupancy
from sassir.dialect.facts import KernelFacts
from sassir.encoders.library import base_architecture

LARGEST = 255
"""Registers of a thread."""
BLOCK = 256
"""Threads of a block, where no fact says how many."""
MULTIPROCESSORS = {"sm_75": 72, "sm_80": 108, "sm_86": 84, "sm_89": 144, "sm_90": 132, "sm_100": 148, "sm_120": 188}
"""Streaming multiprocessors of the largest GPU of each architecture that is sold as a card or module (NVIDIA's architecture
white papers); a grid that leaves some of them idle leaves as many on a smaller one."""


def running_threads(arch: str, facts: KernelFacts) -> int:
    """Threads that run on a multiprocessor at a time, at most."""
    threads = prod(facts.block) if facts.block is not None else BLOCK
    most = occupancy(arch, 1, 0, threads).warps * WARP
    if facts.grid is None:
        return most
    return min(most, threads * -(-prod(facts.grid) // MULTIPROCESSORS[base_architecture(arch)]))


def running_warps(arch: str, used: int, facts: KernelFacts, made_for: int | None = None) -> int:
    """Warps that run on a multiprocessor at a time, at most, if each thread takes `used` general registers.

    `made_for`: threads of a block, where no fact says how many. A grid that is known may not fill the multiprocessors.
    """
    threads = _threads(facts, made_for)
    warps = occupancy(arch, max(used, 1), 0, threads).warps
    if facts.grid is None:
        return warps
    blocks = -(-prod(facts.grid) // MULTIPROCESSORS[base_architecture(arch)])
    return min(warps, blocks * -(-threads // WARP))


def register_budget(arch: str, used: int, facts: KernelFacts, made_for: int | None = None) -> int:
    """The most general registers with which as many warps run at a time as with `used` ones; see `running_warps`."""
    threads, wanted = _threads(facts, made_for), running_warps(arch, used, facts, made_for)
    fitting = [count for count in range(max(used, 1), LARGEST + 1) if occupancy(arch, count, 0, threads).warps >= wanted]
    return max(fitting, default=used)


def _threads(facts: KernelFacts, made_for: int | None) -> int:
    return prod(facts.block) if facts.block is not None else made_for or BLOCK
