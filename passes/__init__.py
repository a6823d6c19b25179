"""The passes, one file each, by the name that `sassir-opt -p` knows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module

from xdsl.passes import ModulePass

_CLASSES: Mapping[str, str] = {
    "sass-allocate-registers": "allocate_registers.AllocateRegisters",
    "sass-assign-control": "assign_control.AssignControl",
    "sass-check-allocation": "check_allocation.CheckAllocation",
    "sass-check-schedule": "check_schedule.CheckSchedule",
    "sass-convert-branches": "convert_branches.ConvertBranches",
    "sass-dce": "dce.DeadCodeElimination",
    "sass-gvn": "gvn.GlobalValueNumbering",
    "sass-licm": "licm.LoopInvariantCodeMotion",
    "sass-merge-guards": "merge_guards.MergeGuards",
    "sass-promote-local": "promote_local.PromoteLocal",
    "sass-schedule": "schedule.Schedule",
    "sass-share-addresses": "share_addresses.ShareAddresses",
    "sass-specialize": "specialize.Specialize",
    "sass-unroll": "unroll.Unroll",
    "sass-verify-ssa": "verify_ssa.VerifySsa",
    "sass-virtualise": "virtualise.Virtualise",
}


def _load(place: str) -> type[ModulePass]:
    module, _, name = place.partition(".")
    found = getattr(import_module(f"sassir.passes.{module}"), name)
    assert isinstance(found, type)
    assert issubclass(found, ModulePass)
    return found


PASSES: dict[str, Callable[[], type[ModulePass]]] = {name: partial(_load, place) for name, place in _CLASSES.items()}
"""Factories, so that a pass is imported only when it runs."""
