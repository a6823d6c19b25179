"""The passes, one file each, by the name that `sassir-opt -p` knows."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.passes import ModulePass


def _check_allocation() -> type[ModulePass]:
    from sassir.passes.check_allocation import CheckAllocation

    return CheckAllocation


PASSES: dict[str, Callable[[], type[ModulePass]]] = {
    "sass-check-allocation": _check_allocation,
}
"""Factories, so that a pass is imported only when it runs."""
