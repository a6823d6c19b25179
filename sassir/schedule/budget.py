"""How many registers a kernel may take: as many as leave the warps on a multiprocessor as they are."""

from __future__ import annotations

from math import prod

from sassir.allocation.launch import LaunchBounds
from sassir.analysis.occupancy import WARP, Occupancy, occupancy
from sassir.dialect.facts import KernelFacts
from sassir.encoders.library import base_architecture

UNKNOWN = LaunchBounds()
LARGEST = 255
"""Registers of a thread."""
BLOCK = 256
"""Threads of a block, where no fact says how many."""
ROUNDS = 4
"""Of a grid that still begin and end together."""
MULTIPROCESSORS = {"sm_75": 72, "sm_80": 108, "sm_86": 84, "sm_89": 144, "sm_90": 132, "sm_100": 148, "sm_120": 188}
"""Streaming multiprocessors of the largest GPU of each architecture that is sold as a card or module (NVIDIA's architecture
white papers); a grid that leaves some of them idle leaves as many on a smaller one."""


def fitting(arch: str, used: int, facts: KernelFacts, bounds: LaunchBounds = UNKNOWN) -> Occupancy:
    """What a multiprocessor has room for if each thread takes `used` general registers."""
    return occupancy(arch, max(used, 1), bounds.shared + (facts.shared or 0), _threads(facts, bounds))


def running_warps(arch: str, used: int, facts: KernelFacts, bounds: LaunchBounds = UNKNOWN) -> int:
    """Warps that run on a multiprocessor at a time if each thread takes `used` general registers.

    `bounds` count where no fact says how large a block is. Where the grid is known and small it is the mean over its rounds: eight blocks
    of which six fit take as long as eight of which four fit (stencil3d7: 17 % slower with 40 registers than with 32 on an H200).
    """
    found = fitting(arch, used, facts, bounds)
    if facts.grid is None or not found.blocks:
        return found.warps
    blocks = -(-prod(facts.grid) // MULTIPROCESSORS[base_architecture(arch)])
    rounds = -(-blocks // found.blocks)
    return found.warps if rounds > ROUNDS else round(blocks * (found.warps // found.blocks) / rounds)


def running_threads(arch: str, facts: KernelFacts) -> int:
    """Threads that run on a multiprocessor at a time, at most, however many registers they take."""
    return WARP * running_warps(arch, 1, facts)


def register_budget(arch: str, used: int, facts: KernelFacts, bounds: LaunchBounds = UNKNOWN) -> int:
    """The most general registers with which as many warps run at a time as with `used` ones; see `running_warps`."""
    wanted = running_warps(arch, used, facts, bounds)
    fitting = [count for count in range(max(used, 1), LARGEST + 1) if running_warps(arch, count, facts, bounds) >= wanted]
    return max(fitting, default=used)


def _threads(facts: KernelFacts, bounds: LaunchBounds) -> int:
    return prod(facts.block) if facts.block is not None else bounds.threads or BLOCK
