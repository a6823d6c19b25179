"""sass-widen: one wide load or store in place of several that lie side by side, and no code that puts bytes together by hand.

What is read and written stays the same, byte for byte. Accesses share an address register if they differ by a number only
(`sass-share-addresses` sees to that); how that is aligned follows from the code, or from the alignment of pointers as a fact.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from sassir.analysis.adjacent import Adjacent
from sassir.analysis.bits import Bits
from sassir.analysis.propagated import propagate
from sassir.dialect.facts import facts_of, record_use
from sassir.dialect.operations import KernelOp
from sassir.passes.dce import drop_dead_code
from sassir.rewrite.bits import simplify_bits
from sassir.rewrite.kernels import free_kernels
from sassir.rewrite.sparing import sparing_ranges
from sassir.rewrite.wider import merge


@dataclass(frozen=True)
class Widen(ModulePass):
    """Merges adjacent accesses to global and shared memory into accesses of up to 128 bits."""

    name = "sass-widen"

    @sparing_ranges
    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel, arch in free_kernels(op):
            widen(kernel, arch)


def widen(kernel: KernelOp, arch: str) -> int:
    """Returns the number of accesses that are gone. What they loaded is no longer put together from its bytes."""
    known = propagate(kernel, arch)
    if Widen.name in known.settled:
        return 0
    adjacent = Adjacent(kernel.body, lambda: Bits(kernel, arch, known), facts_of(kernel))
    merged = 0
    for block in kernel.body.blocks:
        for loads in (True, False):
            for found in list(adjacent.mergers(block, loads)):
                merged += len(found.parts) - 1 if merge(found, arch) else 0
    if not merged:
        known.settled.add(Widen.name)
    else:
        simplified = simplify_bits(kernel, Bits(kernel, arch, known)) or set[str]()
        record_use(kernel, known.used | adjacent.used | simplified)
        drop_dead_code(kernel.body)
    return merged
