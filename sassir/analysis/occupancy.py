"""How many warps of a kernel fit on a streaming multiprocessor, and what the limit is.

Sources: CUDA Programming Guide 13.0, table Technical Specifications per Compute Capability; how registers, shared memory and
barriers are handed out: `cuda_occupancy.h` of CUDA 13.0, the occupancy calculator of the toolkit. Registers go to whole
warps in units of 256, one quarter of them to each of the four partitions. From sm_80 on, the system takes 1 KiB of shared
memory for each block.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from sassir.errors import SassirError

WARP = 32
REGISTERS = 65536
"""Registers of a multiprocessor, and the most for one block."""
_PARTITIONS = 4
_REGISTER_UNIT = 256
_KIB = 1024
_TURING_PARTITIONS = (32, 64)
_PARTITION_SIZES = (0, 8, 16, 32, 64, 100, 132, 164, 196, 228)
"""KiB; each architecture has those that are no larger than its most (CUDA Programming Guide 13.0, compute capabilities)."""

# fmt: off
_TABLE = """
# architecture | warps | blocks | barriers | shared memory per multiprocessor, KiB | its unit, bytes | taken for each block, bytes
sm_75          | 32    | 16     | 0        | 64                                    | 256             | 0
sm_80          | 64    | 32     | 0        | 164                                   | 128             | 1024
sm_86          | 48    | 16     | 0        | 100                                   | 128             | 1024
sm_87          | 48    | 16     | 0        | 164                                   | 128             | 1024
sm_89          | 48    | 24     | 0        | 100                                   | 128             | 1024
sm_90          | 64    | 32     | 64       | 228                                   | 128             | 1024
sm_100         | 64    | 32     | 64       | 228                                   | 128             | 1024
sm_101         | 48    | 24     | 24       | 228                                   | 128             | 1024
sm_103         | 64    | 32     | 64       | 228                                   | 128             | 1024
sm_110         | 48    | 24     | 24       | 228                                   | 128             | 1024
sm_120         | 48    | 24     | 24       | 100                                   | 128             | 1024
sm_121         | 48    | 24     | 24       | 100                                   | 128             | 1024
"""
# fmt: on


class Multiprocessor(NamedTuple):
    """What one multiprocessor holds."""

    warps: int
    blocks: int
    barriers: int
    """Named barriers, of all blocks together; 0 where each block has 16 of its own."""
    shared: int
    """Bytes of shared memory, with the largest share of the L1 cache."""
    shared_unit: int
    """Bytes."""
    reserved: int
    """Bytes of shared memory that the system takes for each block."""


def _row(line: str) -> tuple[str, Multiprocessor]:
    name, *numbers = (column.strip() for column in line.split("|"))
    warps, blocks, barriers, shared, unit, reserved = (int(number) for number in numbers)
    return name, Multiprocessor(warps, blocks, barriers, shared * _KIB, unit, reserved)


MULTIPROCESSORS = dict(_row(line) for line in _TABLE.strip().splitlines()[1:])
"""By architecture."""


class Occupancy(NamedTuple):
    """The warps that run on one multiprocessor at a time."""

    blocks: int
    warps: int
    share: float
    """Of the warps that the multiprocessor has room for, 0 to 1."""
    limits: tuple[str, ...]
    """What keeps one more block out: `warps`, `blocks`, `registers`, `shared memory`, `barriers`."""
    shared: int
    """Bytes of shared memory that these blocks take together, with what the system takes for each."""


def occupancy(arch: str, registers: int, shared_bytes: int, threads_per_block: int, barriers: int = 0) -> Occupancy:
    """The occupancy of a kernel on `arch` (`sm_90`, `sm_90a`).

    `registers` per thread as the cubin counts them, `shared_bytes` per block, static and dynamic, `barriers` per block. No
    block fits if one alone needs too much: then `blocks` is 0. Raises SassirError for an architecture not in the table, or
    a block without threads.
    """
    sm = MULTIPROCESSORS.get(re.sub("[af]$", "", arch))
    if sm is None:
        raise SassirError(f"the occupancy of {arch} is not known; expected one of {', '.join(MULTIPROCESSORS)}")
    if threads_per_block < 1:
        raise SassirError(f"a block of {threads_per_block} threads; expected at least 1")
    warps = -(-threads_per_block // WARP)
    shared = _rounded(shared_bytes + sm.reserved, sm.shared_unit)
    room = {
        "warps": sm.warps // warps if threads_per_block <= WARP * WARP else 0,
        "blocks": sm.blocks,
        "registers": _by_registers(registers, warps),
    }
    if shared:
        room["shared memory"] = sm.shared // shared
    if barriers and sm.barriers:
        room["barriers"] = sm.barriers // barriers
    blocks = min(room.values())
    limits = tuple([what for what, fit in room.items() if fit == blocks])
    return Occupancy(blocks, blocks * warps, blocks * warps / sm.warps, limits, blocks * shared)


def shared_partition(arch: str, taken: int) -> int:
    """Bytes that shared memory gets of what it and the first-level cache share, where blocks take `taken` of it in all.

    The driver takes the smallest partition that holds them (measured on an H200: bench/first_level.py).
    """
    sizes = [size * _KIB for size in (_TURING_PARTITIONS if arch == "sm_75" else _PARTITION_SIZES)]
    return next(size for size in sizes if size >= taken)


def _by_registers(registers: int, warps: int) -> int:
    """The blocks of `warps` warps for which there are registers: each partition hands out its own."""
    per_warp = _rounded(registers * WARP, _REGISTER_UNIT)
    if per_warp * _rounded(warps, _PARTITIONS) > REGISTERS or registers > _REGISTER_UNIT:
        return 0
    if not per_warp:
        return REGISTERS
    return REGISTERS // _PARTITIONS // per_warp * _PARTITIONS // warps


def _rounded(value: int, unit: int) -> int:
    return -(-value // unit) * unit
