"""What the cubin of a kernel says about its blocks, and how many registers that leaves for a thread."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import NamedTuple

from xdsl.dialects.builtin import ModuleOp

from sassir.allocation.registers import MOST_REGISTERS
from sassir.analysis.occupancy import occupancy
from sassir.dialect.operations import KernelOp, added_shared
from sassir.translate.summaries import summaries


class LaunchBounds(NamedTuple):
    """The blocks that a kernel is made for."""

    threads: int | None = None
    """Most threads of a block; None if the file does not say."""
    shared: int = 0
    """Bytes of static shared memory, without what the driver reserves."""

    def registers(self, arch: str) -> int:
        """The highest register count with which such a block can still be launched."""
        if self.threads is None:
            return MOST_REGISTERS
        return next(count for count in range(MOST_REGISTERS, 0, -1) if occupancy(arch, count, 0, self.threads).blocks)


def launch_bounds(module: ModuleOp) -> dict[int | None, LaunchBounds]:
    """The bounds of each kernel of a module with a cubin, by the index of its section."""
    kernels = summaries(module).kernels
    blocks = {section: k.required_threads or k.max_threads for section, k in kernels.items()}
    return {section: LaunchBounds(prod(block) if (block := blocks[section]) else None, k.asked_shared) for section, k in kernels.items()}


def bounds_of(kernel: KernelOp, found: Mapping[int | None, LaunchBounds]) -> LaunchBounds:
    """Of what `launch_bounds` found, the bounds of one kernel, with the shared memory that passes have added; such as say nothing for a
    kernel without a cubin."""
    bounds = found.get(kernel.section.data if kernel.section is not None else None, LaunchBounds())
    return bounds._replace(shared=bounds.shared + added_shared(kernel))
