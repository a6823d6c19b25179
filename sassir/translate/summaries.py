"""What the cubin of a module says of its kernels."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from xdsl.dialects.builtin import ModuleOp

from sassir.cubin.cubin import Cubin
from sassir.cubin.repair import bound_to_other_form, immovable
from sassir.cubin.summary import KernelSummary, summarise
from sassir.dialect.container import ContainerAttr
from sassir.translate.lift import CONTAINER


class Summaries(NamedTuple):
    """Of one cubin."""

    kernels: Mapping[int | None, KernelSummary]
    """By the index of the section."""
    constants: int
    """Bytes of constants of the whole file, in bank 3."""
    immovable: str | None
    """Why all code must stay where it is, if it must."""


def summaries(module: ModuleOp) -> Summaries:
    """What there is to know; nothing about a module without a cubin. Raises ContainerError if the cubin got lost."""
    container = module.attributes.get(CONTAINER)
    return _read(container) if isinstance(container, ContainerAttr) else Summaries({}, 0, None)


@lru_cache(maxsize=2)
def _read(container: ContainerAttr) -> Summaries:
    # Passes ask for each kernel by itself, and a library may have hundreds.
    cubin = Cubin.read(container.bytes, "the container")
    constants = next((s.size for s in cubin.elf.sections if s.name == ".nv.constant3"), 0)
    kernels: dict[int | None, KernelSummary] = {kernel.section: kernel for kernel in summarise(cubin).kernels}
    return Summaries(kernels, constants, immovable(cubin) or bound_to_other_form(cubin))
