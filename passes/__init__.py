"""The passes, one file each, by the name that `sassir-opt -p` knows."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.passes import ModulePass


def _allocate_registers() -> type[ModulePass]:
    from sassir.passes.allocate_registers import AllocateRegisters

    return AllocateRegisters


def _assign_control() -> type[ModulePass]:
    from sassir.passes.assign_control import AssignControl

    return AssignControl


def _check_allocation() -> type[ModulePass]:
    from sassir.passes.check_allocation import CheckAllocation

    return CheckAllocation


def _check_schedule() -> type[ModulePass]:
    from sassir.passes.check_schedule import CheckSchedule

    return CheckSchedule


def _virtualise() -> type[ModulePass]:
    from sassir.passes.virtualise import Virtualise

    return Virtualise


PASSES: dict[str, Callable[[], type[ModulePass]]] = {
    "sass-allocate-registers": _allocate_registers,
    "sass-assign-control": _assign_control,
    "sass-check-allocation": _check_allocation,
    "sass-check-schedule": _check_schedule,
    "sass-virtualise": _virtualise,
}
"""Factories, so that a pass is imported only when it runs."""
