"""Constant memory as a kernel finds it: its own banks, and bank 0, which the driver fills at launch."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from sassir.emulator.lanes import Array, Flags, Indices, LaneError
from sassir.emulator.local import STACK_TOP
from sassir.emulator.memory import LOCAL_WINDOW, SHARED_WINDOW, Bytes, load
from sassir.launch import Step

PARAMETER_WINDOW = 0x7E02 << 32
"""Where generic addresses of parameters would be; compared with by `__isGlobal`."""
BANK_BYTES = 1 << 16
MEMORY_DESCRIPTOR = 0x7E03_DE5C_7E03_DE5C
"""Made up: the content of the real one is the driver's secret. Here it only tells that an access names it."""


class Layout(NamedTuple):
    """Byte offsets in bank 0. From nvcc 13.0's code for blockDim, gridDim, generic addresses, dynamic_smem_size and the stack."""

    block: int
    grid: int
    shared_window: int | None
    """64-bit base; from sm_90 on the special register SR_SWINHI instead."""
    local_window: int
    stack: int
    dynamic_shared: int | None
    parameter_window: int
    descriptor: int | None
    """The memory descriptor that global accesses name, 64 bits."""


_LAYOUTS: Mapping[str, Layout] = {
    "sm_75": Layout(0x0, 0xC, 0x18, 0x20, 0x28, 0x2C, 0x50, None),
    "sm_80": Layout(0x0, 0xC, 0x18, 0x20, 0x28, 0x2C, 0x50, 0x118),
    "sm_90": Layout(0x0, 0xC, None, 0x20, 0x28, 0x2C, 0xD0, 0x208),
    "sm_100": Layout(0x360, 0x370, None, 0x2F8, 0x37C, None, 0x120, 0x358),
}


def layout_of(arch: str) -> Layout:
    """The layout of bank 0 on an architecture: it changed with sm_80, sm_90 and sm_100."""
    number = int("".join([c for c in arch if c.isdigit()]))
    return _LAYOUTS[f"sm_{max((n for n in (75, 80, 90, 100) if n <= number), default=75)}"]


class Bank:
    """One constant bank: its bytes, and which of them are known."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.data: Bytes = np.zeros(BANK_BYTES, np.uint8)
        self.known: Flags = np.zeros(BANK_BYTES, np.bool_)

    def put(self, offset: int, content: bytes) -> None:
        """Make some bytes known."""
        self.data[offset : offset + len(content)] = np.frombuffer(content, np.uint8)
        self.known[offset : offset + len(content)] = True

    def word(self, offset: int) -> Array | None:
        """The 32-bit word at an offset, shape (1, 1); None where nothing is known."""
        if offset % 4 or not 0 <= offset < BANK_BYTES or not self.known[offset : offset + 4].all():
            return None
        return self.data[offset : offset + 4].view(np.uint32).reshape(1, 1)

    def gather(self, offsets: Indices, width: int, signed: bool, lanes: Indices) -> list[Array]:
        """The words at some offsets, one a lane; a narrower value is extended. Raises LaneError for one that is misaligned or not known."""
        bad = (offsets % width != 0) | (offsets < 0) | (offsets > BANK_BYTES - width)
        bad |= ~self.known[np.where(bad, 0, offsets)]
        if bad.any():
            first = int(np.argmax(bad))
            where = f"{self.name}[{int(offsets[first]):#x}]"
            raise LaneError(f"{where} is read, {width} bytes wide: nothing is known to be there", int(lanes[first]))
        return load(self, offsets, width, signed)


def put_launch(bank: Bank, layout: Layout, step: Step, parameters: bytes, parameter_offset: int) -> None:
    """What the driver puts into bank 0 for one launch."""
    bank.put(layout.block, struct.pack("<3I", *step.block))
    bank.put(layout.grid, struct.pack("<3I", *step.grid))
    if layout.shared_window is not None:
        bank.put(layout.shared_window, struct.pack("<Q", SHARED_WINDOW))
    bank.put(layout.local_window, struct.pack("<Q", LOCAL_WINDOW))
    bank.put(layout.stack, struct.pack("<I", STACK_TOP))
    if layout.dynamic_shared is not None:
        bank.put(layout.dynamic_shared, struct.pack("<I", step.shared))
    bank.put(layout.parameter_window, struct.pack("<Q", PARAMETER_WINDOW))
    if layout.descriptor is not None:
        bank.put(layout.descriptor, struct.pack("<Q", MEMORY_DESCRIPTOR))
    bank.put(parameter_offset, parameters)
