"""sass-allocate-registers: give every value a register."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from sassir.allocation.allocate import allocate
from sassir.allocation.launch import LaunchBounds, bounds_of, launch_bounds
from sassir.allocation.registers import MOST_REGISTERS
from sassir.allocation.room import LocalMemory, Room, SharedMemory
from sassir.dialect.facts import facts_of, record_use
from sassir.dialect.operations import KernelOp
from sassir.errors import TranslationError
from sassir.rewrite.kernels import free_kernels


@dataclass(frozen=True)
class AllocateRegisters(ModulePass):
    """Gives every value of the kernels that `sass-virtualise` freed a register.

    A kernel takes as many registers as it had, more where more values live at once, up to what its launch bounds allow, and never
    more than `max-registers`; what does not fit is spilled to local memory, or with `spill-to=shared` to shared memory that the
    kernel does not use.
    """

    name = "sass-allocate-registers"
    max_registers: int | None = None
    spill_to: Literal["local", "shared"] = "local"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        bounds = launch_bounds(op)
        for kernel, arch in free_kernels(op):
            try:
                self._allocate(kernel, arch, bounds_of(kernel, bounds))
            except TranslationError as error:
                raise error.at(f"kernel {kernel.function.data}") from error

    def _allocate(self, kernel: KernelOp, arch: str, bounds: LaunchBounds) -> None:
        most = min(self.max_registers or MOST_REGISTERS, bounds.registers(arch))

        def shared(kernel: KernelOp, arch: str) -> Room:
            block = facts_of(kernel).block
            if bounds.threads is None and block is not None:
                record_use(kernel, ["block"])
                return SharedMemory(kernel, arch, block[0] * block[1] * block[2], bounds.shared)
            return SharedMemory(kernel, arch, bounds.threads, bounds.shared)

        allocate(kernel, arch, most, shared if self.spill_to == "shared" else LocalMemory)
