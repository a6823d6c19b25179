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


def _verify_ssa() -> type[ModulePass]:
    from sassir.passes.verify_ssa import VerifySsa

    return VerifySsa


def _virtualise() -> type[ModulePass]:
    from sassir.passes.virtualise import Virtualise

    return Virtualise


def _dce() -> type[ModulePass]:
    from sassir.passes.dce import DeadCodeElimination

    return DeadCodeElimination


def _gvn() -> type[ModulePass]:
    from sassir.passes.gvn import GlobalValueNumbering

    return GlobalValueNumbering


def _licm() -> type[ModulePass]:
    from sassir.passes.licm import LoopInvariantCodeMotion

    return LoopInvariantCodeMotion


def _promote_local() -> type[ModulePass]:
    from sassir.passes.promote_local import PromoteLocal

    return PromoteLocal


def _schedule() -> type[ModulePass]:
    from sassir.passes.schedule import Schedule

    return Schedule


def _share_addresses() -> type[ModulePass]:
    from sassir.passes.share_addresses import ShareAddresses

    return ShareAddresses


def _specialize() -> type[ModulePass]:
    from sassir.passes.specialize import Specialize

    return Specialize


def _unroll() -> type[ModulePass]:
    from sassir.passes.unroll import Unroll

    return Unroll


PASSES: dict[str, Callable[[], type[ModulePass]]] = {
    "sass-allocate-registers": _allocate_registers,
    "sass-assign-control": _assign_control,
    "sass-check-allocation": _check_allocation,
    "sass-check-schedule": _check_schedule,
    "sass-dce": _dce,
    "sass-gvn": _gvn,
    "sass-licm": _licm,
    "sass-promote-local": _promote_local,
    "sass-schedule": _schedule,
    "sass-share-addresses": _share_addresses,
    "sass-specialize": _specialize,
    "sass-unroll": _unroll,
    "sass-verify-ssa": _verify_ssa,
    "sass-virtualise": _virtualise,
}
"""Factories, so that a pass is imported only when it runs."""
