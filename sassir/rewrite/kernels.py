"""Which kernels a pass may change."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from xdsl.dialects.builtin import ModuleOp, StringAttr

from sassir.dialect.facts import KernelFacts, facts_of, record_use
from sassir.dialect.operations import ALLOCATED, KernelOp
from sassir.errors import TranslationError
from sassir.translate.lift import ARCH


def arch_of(module: ModuleOp) -> str:
    """The architecture of the code. Raises TranslationError for a module that does not say it."""
    arch = module.attributes.get(ARCH)
    if not isinstance(arch, StringAttr):
        raise TranslationError(f'the module has no architecture; expected the attribute {ARCH} = "sm_90" (or another one)')
    return arch.data


def free_kernels(module: ModuleOp) -> Iterator[tuple[KernelOp, str]]:
    """The kernels whose registers `sass-virtualise` freed, and their architecture."""
    arch = module.attributes.get(ARCH)
    for op in module.body.ops:
        if isinstance(op, KernelOp) and op.fixed is None and ALLOCATED not in op.attributes and isinstance(arch, StringAttr):
            yield op, arch.data


def sparing_noalias(kernel: KernelOp, change: Callable[[KernelOp, KernelFacts], int]) -> int:
    """Change a kernel as far as it goes without the fact `noalias`, then with it, so that it is recorded only where it was needed.

    `change` returns how much it changed; so does this.
    """
    facts = facts_of(kernel)
    changed = change(kernel, replace(facts, noalias=False))
    if facts.noalias and (relies := change(kernel, facts)):
        record_use(kernel, ["noalias"])
        changed += relies
    return changed
