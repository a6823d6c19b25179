"""Facts that a pass could use, but that decide nothing in what it makes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any, TypeVar, cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from sassir.dialect.facts import FACTS, USED, FactsAttr, drop_use, facts_of, used_facts
from sassir.dialect.operations import KernelOp
from sassir.rewrite.kernels import free_kernels

_Apply = TypeVar("_Apply", bound=Callable[[Any, Context, ModuleOp], None])


def sparing_ranges(apply: _Apply) -> _Apply:
    """Let the `apply` of a pass record the range of a parameter only where it makes other code without it.

    A range goes on into all that is computed from the parameter, and there mostly decides nothing. So a pass that has recorded some
    runs again on a copy of what it began with, without one of them after the other. One that makes no difference stays away.
    """

    @wraps(apply)
    def sparing(self: Any, ctx: Context, op: ModuleOp) -> None:
        before = {kernel: kernel.clone() for kernel, _ in free_kernels(op) if facts_of(kernel).ranges}
        apply(self, ctx, op)
        for kernel, old in before.items():
            needed, recorded = facts_of(kernel), {*used_facts(kernel)} - {*used_facts(old)}
            for known in [r for r in needed.ranges if r.use in recorded]:
                less = replace(needed, ranges=tuple([r for r in needed.ranges if r is not known]))
                trial = old.clone()
                trial.attributes[FACTS] = FactsAttr(less)
                apply(self, ctx, ModuleOp([trial], dict(op.attributes)))
                if _same_but_for_facts(trial, kernel):
                    needed = less
                    drop_use(kernel, [known.use])

    return cast(_Apply, sparing)


def _same_but_for_facts(a: KernelOp, b: KernelOp) -> bool:
    """Printed, for that shows the registers that values are in as well; from copies, in which blocks have no names."""
    for name in (FACTS, USED):
        a.attributes[name] = b.attributes[name]
    return str(a.clone()) == str(b.clone())
