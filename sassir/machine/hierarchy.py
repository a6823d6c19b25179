"""The memory behind the registers: latencies, rates and sizes. No correct result may rest on it."""

from __future__ import annotations

from typing import NamedTuple

SECTOR = 32
"""Bytes that caches and memory move at a time."""
LINE = 128
"""Bytes of a cache line, and of one pass through the first-level cache or shared memory."""
GLOBAL_LOADS = frozenset({"LD", "LDG"})
SCHEDULERS = 4
"""Of a multiprocessor; each has its own pipes and a quarter of the warps."""

# Latencies of the caches: Luo et al., Benchmarking and Dissecting the Nvidia Hopper GPU Architecture, 2024 (A100, RTX 4090, H100 PCIe).
# Clock, memory rate, cache sizes, multiprocessors: NVIDIA's architecture white papers and product pages, for the GPU that is named.
# Numbers with `*` are measured, or estimated by bench/timing_model.py from the suite on an H200 (docs/timing.md); with `?` assumed, as
# the nearest architecture with a number. A load alone waits 668 cycles for memory on the H200 (docs/hopper-measured.md); under load more.
# Second level: 64 bytes a cycle and multiprocessor (A100 white paper: 5,120 a cycle for 108).
# fmt: off
_TABLE = """
# arch  | GPU            | SMs | MHz  | L1 KiB | L2 MiB | latency L2 | DRAM | L2 bytes/cycle/SM | DRAM GB/s
sm_75   | TITAN RTX      | 72  | 1770 | 96     | 6      | 262?       | 466? | 64?               | 672
sm_80   | A100           | 108 | 1410 | 192    | 40     | 262        | 466  | 47                | 1555
sm_86   | RTX A6000      | 84  | 1800 | 128    | 6      | 273?       | 542? | 64?               | 768
sm_89   | RTX 6000 Ada   | 142 | 2505 | 128    | 96     | 273        | 542  | 64?               | 960
sm_90   | H200           | 132 | 1980 | 256    | 50     | 259        | 750* | 64?               | 3960*
sm_100  | B200           | 148 | 1965 | 256    | 126    | 257?       | 750? | 64?               | 8000
sm_120  | RTX PRO 6000   | 188 | 2600 | 128    | 128    | 273?       | 542? | 64?               | 1792
"""
# fmt: on


class Overheads(NamedTuple):
    """What happens between instructions: estimated from the suite on an H200 (docs/timing.md), and taken for every architecture."""

    branch: float = 3.0
    """Cycles from the end of the stall count of a branch until its warp goes on."""
    constant: float = 2.0
    """Cycles of the constant cache of a multiprocessor for each address that a warp loads."""
    block_start: float = 400.0
    """Cycles from the end of a block until the first instruction of the next one in its place, if no other block is started."""
    block_interval: float = 150.0
    """Cycles from one start of a block to the next on a multiprocessor, at least."""
    skew: float = 0.08
    """Standard deviation of the time that the warps of a block take, relative to that time: the block ends with the last one."""
    first_level: float = 0.5
    """Share of the first-level cache that keeps what is used again: it is no perfect one, and blocks that begin fill it with theirs."""
    launch: float = 2.0
    """Microseconds of a launch in which no block runs."""


class Hierarchy(NamedTuple):
    """One GPU of an architecture."""

    gpu: str
    multiprocessors: int
    clock: float
    """MHz, of the multiprocessors under load."""
    first_size: int
    """Bytes of the first-level cache and shared memory together."""
    second_size: int
    second_latency: int
    """Cycles from issue to result of a load that the second level answers."""
    memory_latency: int
    """The same for one that goes to memory, unloaded."""
    second_rate: float
    """Bytes a cycle between the second level and one multiprocessor."""
    memory_rate: float
    """Bytes a cycle between memory and the chip, for each multiprocessor."""
    certain: bool
    """No number of it is assumed."""
    overheads: Overheads = Overheads()

    @property
    def usual_latency(self) -> int:
        """Cycles of a load that misses the first level: half of them are taken to find their data in the second."""
        return (self.second_latency + self.memory_latency) // 2


def _row(line: str) -> tuple[str, Hierarchy]:
    arch, gpu, *cells = (cell.strip() for cell in line.split("|"))
    sms, clock, first, second, second_latency, memory_latency, second_rate, memory_rate = (float(c.rstrip("*?")) for c in cells)
    per_cycle = memory_rate * 1e3 / clock / sms
    sizes = int(first) << 10, int(second) << 20
    latencies = int(second_latency), int(memory_latency)
    return arch, Hierarchy(gpu, int(sms), clock, *sizes, *latencies, second_rate, per_cycle, "?" not in line)


HIERARCHIES = dict(_row(line) for line in _TABLE.strip().splitlines()[1:])
"""By architecture, as `Machine.arch` names it."""
