"""Room in memory for the values of a thread that have no register: in its stack frame, or in shared memory."""

from __future__ import annotations

from abc import ABC, abstractmethod

from xdsl.dialects.builtin import IntAttr
from xdsl.ir import Operation, SSAValue

from sassir.allocation.registers import AllocationError
from sassir.allocation.stack import grow_frame, put_first
from sassir.allocation.storage import WORD, MemoryStorage
from sassir.dialect.operations import SHARED, KernelOp, added_shared
from sassir.machine.constant_bank import constant_bank
from sassir.rewrite.build import instruction

_LANES = 32
_MOST_STATIC = 48 * 1024
"""Bytes of static shared memory that a kernel can have (CUDA Programming Guide 13.0, compute capabilities)."""

_RESERVED_SINCE, _RESERVED_SIZE = 80, 0x114
"""From sm_80 on the driver keeps some of the shared memory, as many bytes as this word of constant bank 0 says: behind the kernel's own,
"""
_CLUSTERS_SINCE = 90
"""from sm_90 on before it. Since then bits 24 and up of an address tell the block of the cluster. (What nvcc 13.0 makes of
`%total_smem_size` and of shared addresses.)"""


class Room(ABC):
    """Where the slots of one kernel are."""

    def __init__(self, kernel: KernelOp, arch: str) -> None:
        self.kernel = kernel
        self.arch = arch

    @abstractmethod
    def make(self, slots: int) -> MemoryStorage:
        """Room for some slots more. Raises AllocationError if there is none."""


class LocalMemory(Room):
    """The stack frame of the thread."""

    def make(self, slots: int) -> MemoryStorage:
        pointer, offset = grow_frame(self.kernel, self.arch, slots * WORD)
        return MemoryStorage("STL", "LDL", pointer, offset, WORD)


class SharedMemory(Room):
    """Shared memory behind all that the kernel uses, a word in each slot for each thread of the block.

    The end of the shared memory of a block, dynamic memory included, is in a special register. The slots count downwards from there, so
    that it does not matter how much the kernel uses itself. ptxas 13.0 does the same from the start of shared memory, and only for
    kernels without dynamic memory (`.pragma "enable_smem_spilling"`).
    """

    def __init__(self, kernel: KernelOp, arch: str, threads: int | None, used: int) -> None:
        super().__init__(kernel, arch)
        if threads is None:
            raise AllocationError("cannot spill to shared memory: how many threads a block has is not known; state it as a fact")
        self._row = -(-threads // _LANES) * _LANES * WORD
        """Bytes of one slot of all threads."""
        self._added = added_shared(kernel)
        self._used = used
        self._rows = 0
        self._address: SSAValue | None = None

    def make(self, slots: int) -> MemoryStorage:
        self._rows += slots
        size = self._rows * self._row
        if self._used + size > _MOST_STATIC:
            raise AllocationError(f"cannot spill to shared memory: {self._used} + {size} bytes are more than the {_MOST_STATIC} there are")
        self.kernel.attributes[SHARED] = IntAttr(self._added + size)
        if self._address is None:
            self._address = _end_of_shared_memory(self.kernel, self.arch)
        return MemoryStorage("STS", "LDS", self._address, -size, self._row)


def _end_of_shared_memory(kernel: KernelOp, arch: str) -> SSAValue:
    """At the start of the kernel, the address behind the shared memory of the block, plus a word for each thread before this one."""
    ops: list[Operation] = []

    def add(text: str, *reads: SSAValue) -> SSAValue:
        ops.append(instruction(text, reads))
        return ops[-1].results[0]

    def word(offset: int) -> SSAValue:
        return add("LDC =R, c[0x0][RZ]" if offset == 0 else f"LDC =R, c[0x0][{offset:#x}]")

    bank = constant_bank(arch)
    x, y, z = [add(f"S2R =R, SR_TID.{axis}") for axis in "XYZ"]
    plane = add("IMAD =R, $R, $R, $R", z, word(bank.block + WORD), y)
    thread = add("IMAD =R, $R, $R, $R", plane, word(bank.block), x)
    end = add("S2R =R, SR_SMEMSZ")
    generation = int("".join(c for c in arch if c.isdigit()))
    if generation >= _CLUSTERS_SINCE:
        end = add("LEA =R, $R, $R, 0x18", add("S2R =R, SR_CgaCtaId"), end)
    elif generation >= _RESERVED_SINCE:
        end = add("IMAD.IADD =R, $R, 0x1, -$R", end, word(_RESERVED_SIZE))
    address = add("LEA =R, $R, $R, 0x2", thread, end)
    put_first(kernel, ops)
    return address
