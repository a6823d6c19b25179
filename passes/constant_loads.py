"""sass-constant-loads: loads of buffers that the kernel does not write become `.CONSTANT`, PTX's `ld.global.nc`.

That promises memory which nobody writes while the kernel runs. Threads of the kernel do not where every store goes to the buffer
of another pointer parameter, which the fact `noalias` tells apart. Another kernel might, at the same time, but its data could only
be waited for with an atomic, a fence or a strong load: a kernel that has one stays as it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from sassir.analysis.effects import effects
from sassir.analysis.memory import access
from sassir.analysis.pointers import pointers_of
from sassir.dialect.facts import KernelFacts, facts_of, record_use
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.operations import KernelOp
from sassir.rewrite.build import arguments_of, name_of, rewritten
from sassir.rewrite.kernels import free_kernels
from sassir.rewrite.simplify import exchange

_WITHIN_BLOCKS = frozenset({"BAR", "NOP"})
"""Order accesses, but wait for no other kernel."""


@dataclass(frozen=True)
class ConstantLoads(ModulePass):
    """Marks loads from buffers that nobody writes; with `repeated` only where the same place is loaded several times.

    `sass-gvn` then loads it once. That is all that is gained on an H200: marks alone change no time there (docs/passes.md).
    """

    name = "sass-constant-loads"
    repeated: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel, arch in free_kernels(op):
            if mark_constant_loads(kernel, facts_of(kernel), arch, 2 if self.repeated else 1):
                record_use(kernel, ["noalias"])


def mark_constant_loads(kernel: KernelOp, facts: KernelFacts, arch: str, times: int = 1) -> int:
    """Mark loads of places that at least so many load. Returns their number."""
    ops = [op for block in kernel.body.blocks for op in block.ops if isinstance(op, SassInstruction)]
    pointers = pointers_of(kernel.body, facts)
    written = _written(ops, pointers) if facts.noalias else None
    if written is None:
        return 0
    loads = {op: this for op in ops if op.MNEMONIC == "LDG" and (this := access(op, pointers)) is not None}
    counts = Counter([this.place for this in loads.values()])
    found = [op for op, this in loads.items() if not this.constant and this.pointer is not None and this.pointer not in written]
    return sum([_mark(op, arch) for op in found if counts[loads[op].place] >= times])


def _written(ops: list[SassInstruction], pointers: Mapping[SSAValue, int]) -> set[int] | None:
    """The pointer parameters of all buffers that are written; None if that is not known, or the kernel may wait for another one."""
    found: set[int] = set()
    for op in ops:
        does = effects(op)
        if does.ordered and op.MNEMONIC not in _WITHIN_BLOCKS:
            return None
        if "global" in does.stores:
            this = access(op, pointers)
            if this is None or this.pointer is None:
                return None
            found.add(this.pointer)
    return found


def _mark(op: SassInstruction, arch: str) -> bool:
    name, system, _ = name_of(op).partition(".SYS")
    new = rewritten(op, f"{name}.CONSTANT{system}", arguments_of(op), op.reads)
    return exchange(op, new, arch)
