"""How many registers a kernel may take so that the blocks it is made for can still be launched."""

from __future__ import annotations

from math import prod

from xdsl.dialects.builtin import ModuleOp

from sassir.allocation.registers import MOST_REGISTERS
from sassir.analysis.occupancy import occupancy
from sassir.cubin.cubin import Cubin
from sassir.cubin.summary import summarise
from sassir.dialect.container import ContainerAttr
from sassir.translate.lift import CONTAINER


def launch_limits(module: ModuleOp) -> dict[int | None, int]:
    """The highest register count of each kernel by the index of its section, where its cubin says how large its blocks may be."""
    container = module.attributes.get(CONTAINER)
    if not isinstance(container, ContainerAttr):
        return {}
    summary = summarise(Cubin.read(container.bytes, "the container"))
    blocks = {k.section: k.required_threads or k.max_threads for k in summary.kernels}
    return {section: highest_count(summary.arch, prod(block)) for section, block in blocks.items() if block is not None}


def highest_count(arch: str, threads: int) -> int:
    """The most registers that each thread of a block of this size may have."""
    return next(count for count in range(MOST_REGISTERS, 0, -1) if occupancy(arch, count, 0, threads).blocks)
