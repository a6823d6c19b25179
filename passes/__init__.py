"""The passes, one file each, by the name that `sassir-opt -p` knows."""

from __future__ import annotations

import runpy
import traceback
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path

from xdsl.passes import ModulePass

from sassir.errors import TranslationError

_CLASSES: Mapping[str, str] = {
    "sass-allocate-registers": "allocate_registers.AllocateRegisters",
    "sass-assign-control": "assign_control.AssignControl",
    "sass-check-allocation": "check_allocation.CheckAllocation",
    "sass-check-schedule": "check_schedule.CheckSchedule",
    "sass-collapse-sums": "collapse_sums.CollapseSums",
    "sass-constant-loads": "constant_loads.ConstantLoads",
    "sass-convert-branches": "convert_branches.ConvertBranches",
    "sass-dce": "dce.DeadCodeElimination",
    "sass-divide": "divide.Divide",
    "sass-flatten": "flatten.Flatten",
    "sass-forward-memory": "forward_memory.ForwardMemory",
    "sass-gvn": "gvn.GlobalValueNumbering",
    "sass-hoist": "hoist.Hoist",
    "sass-keep-cache": "keep_cache.KeepCache",
    "sass-licm": "licm.LoopInvariantCodeMotion",
    "sass-merge-guards": "merge_guards.MergeGuards",
    "sass-pipeline-loads": "pipeline_loads.PipelineLoads",
    "sass-promote-local": "promote_local.PromoteLocal",
    "sass-promote-memory": "promote_memory.PromoteMemory",
    "sass-relax-barriers": "relax_barriers.RelaxBarriers",
    "sass-rotate-loops": "rotate_loops.RotateLoops",
    "sass-schedule": "schedule.Schedule",
    "sass-share-addresses": "share_addresses.ShareAddresses",
    "sass-specialize": "specialize.Specialize",
    "sass-stage-constants": "stage_constants.StageConstants",
    "sass-state-facts": "state_facts.StateFacts",
    "sass-strength-reduce": "strength_reduce.StrengthReduce",
    "sass-swizzle-shared": "swizzle_shared.SwizzleShared",
    "sass-unroll": "unroll.Unroll",
    "sass-unguard": "unguard.Unguard",
    "sass-verify-ssa": "verify_ssa.VerifySsa",
    "sass-virtualise": "virtualise.Virtualise",
    "sass-widen": "widen.Widen",
}


def _load(place: str) -> type[ModulePass]:
    module, _, name = place.partition(".")
    found = getattr(import_module(f"sassir.passes.{module}"), name)
    assert isinstance(found, type)
    assert issubclass(found, ModulePass)
    return found


PASSES: dict[str, Callable[[], type[ModulePass]]] = {name: partial(_load, place) for name, place in _CLASSES.items()}
"""Factories, so that a pass is imported only when it runs."""


LOADED: set[str] = set()
"""The names of passes that `load_passes` has added. What they make is verified before anything else looks at it."""


def load_passes(file: Path) -> None:
    """Add the passes that are defined in a Python file, by their names. Raises TranslationError where it fails or there are none."""
    try:
        members = runpy.run_path(str(file), run_name=file.stem)
    except FileNotFoundError as error:
        raise TranslationError(f"{file}: {error.strerror}") from error
    except Exception as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(file)]
        place = f"{file}, line {lines[-1]}" if lines else str(file)
        raise TranslationError(f"{place}: {type(error).__name__}: {error}") from error
    kinds = [m for m in members.values() if isinstance(m, type) and issubclass(m, ModulePass) and m.__module__ == file.stem]
    if not kinds:
        raise TranslationError(f"{file}: no pass; expected a subclass of xdsl.passes.ModulePass")
    PASSES.update({kind.name: partial(_given, kind) for kind in kinds})
    LOADED.update([kind.name for kind in kinds])


def _given(kind: type[ModulePass]) -> type[ModulePass]:
    return kind
