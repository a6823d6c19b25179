"""What the driver puts into constant bank 0 in front of a kernel's parameters: byte offsets, by architecture.

Read from what nvcc 13.0 makes of blockDim, gridDim, the stack pointer and global accesses on each architecture. Where the
parameters begin, the cubin says too (attribute PARAM_CBANK).
"""

from __future__ import annotations

from typing import NamedTuple

from sassir.encoders.library import base_architecture


class ConstantBank(NamedTuple):
    """Byte offsets in constant bank 0; words of 32 bits, three for a size in x, y, z."""

    block: int
    """Threads of a block (ntid)."""
    grid: int
    """Blocks of the grid (nctaid)."""
    stack: int
    """The initial stack pointer of a thread, in its local memory."""
    descriptor: int | None
    """The 64-bit memory descriptor of global accesses; None where there is none (sm_75)."""
    parameters: int
    """The kernel's parameters."""


_BANKS = {
    "sm_75": ConstantBank(0x0, 0xC, 0x28, None, 0x160),
    "sm_80": ConstantBank(0x0, 0xC, 0x28, 0x118, 0x160),
    "sm_86": ConstantBank(0x0, 0xC, 0x28, 0x118, 0x160),
    "sm_89": ConstantBank(0x0, 0xC, 0x28, 0x118, 0x160),
    "sm_90": ConstantBank(0x0, 0xC, 0x28, 0x208, 0x210),
    "sm_100": ConstantBank(0x360, 0x370, 0x37C, 0x358, 0x380),
    "sm_120": ConstantBank(0x360, 0x370, 0x37C, 0x358, 0x380),
}


def constant_bank(arch: str) -> ConstantBank:
    """The layout of bank 0 on `arch`. Raises EncodingError for an unknown architecture."""
    return _BANKS[base_architecture(arch)]
