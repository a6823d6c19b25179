"""sass-merge-guards: what is merged, what must not be, and that operands which take the slow ways give the same bits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from sassir.analysis.guarded_runs import guarded_runs
from sassir.asm.assemble import assemble
from sassir.asm.listing import read_listing
from sassir.dialect.operations import KernelOp
from sassir.emulator import emulate
from sassir.encoders import table
from sassir.launch import Launch, read_launch_file
from sassir.optimize import Optimised, Pipeline, Task, optimise_cubin, read_pipeline
from sassir.passes.virtualise import virtualise
from sassir.translate.cubin import read_module, read_program
from sassir.translate.lift import lift_program

ROOT = Path(__file__).parents[2]
NBODY = (ROOT / "bench" / "cubins" / "nbody.sm_90.cubin").read_bytes()
LISTING = (ROOT / "tests" / "filecheck" / "passes" / "merge_guards.sass").read_text(encoding="utf-8")
"""A loop with two reciprocals; the sum at 0xc0 is between them, and the routine begins at 0x1e0."""


@pytest.fixture(scope="module")
def nbody() -> Optimised:
    made = optimise_cubin(Task(NBODY, "nbody", Pipeline("test", 1, ("sass-merge-guards", "sass-schedule"))))
    assert made.outcomes[0].changed
    return made


@pytest.mark.parametrize("pipeline", ["default", "launch"])
def test_no_fact_is_needed(pipeline: str) -> None:
    assert "sass-merge-guards" in read_pipeline(pipeline).passes


def _runs(module: ModuleOp) -> list[int]:
    """The guards in each run of the only kernel."""
    kernel = module.body.ops.first
    assert isinstance(kernel, KernelOp)
    assert virtualise(kernel) is None
    return [len(run.guards) for run in guarded_runs(kernel)]


def _with(**instructions: str) -> ModuleOp:
    """The listing with other instructions at some offsets: `at_00c0="NOP"`."""
    lines = LISTING.splitlines()
    for key, instruction in instructions.items():
        place = key.removeprefix("at_")
        (i,) = [i for i, line in enumerate(lines) if f"/*{place}*/" in line]
        lines[i] = f"[B------:R-:W0:Y:S13] /*{place}*/ {instruction} ;"
    listing = read_listing("\n".join(lines), "merge_guards.sass", "sm_90")
    return lift_program(assemble(listing, table("sm_90")))


def test_the_eight_guards_of_four_bodies_are_one_run() -> None:
    assert _runs(read_module(NBODY)) == [8]


@pytest.mark.parametrize("instruction", ["FADD R2, R7, R3", "LDG.E R2, desc[UR4][R10.64]", "@P1 LDS R2, [R10]"])
def test_what_only_computes_or_is_read_in_any_case_may_run_early(instruction: str) -> None:
    assert _runs(_with(at_00c0=instruction)) == [2]


@pytest.mark.parametrize(
    "instruction",
    [
        "STG.E.STRONG.SYS desc[UR4][R10.64], R7",
        "ATOMG.E.ADD.STRONG.GPU PT, R2, desc[UR4][R10.64], R7",
        "LDG.E.STRONG.SYS R2, desc[UR4][R10.64]",
        "LDS R2, [R7]",  # the slow way decides where
        "@P1 LDG.E R2, desc[UR4][R6.64]",
        "SHFL.BFLY PT, R2, R7, 0x1, 0x1f",
        "BAR.SYNC.DEFER_BLOCKING 0x0",
        "CS2R R2, SR_CLOCKLO",
        "UIADD3 UR4, UR4, 0x4, URZ",  # the threads on the slow way would write it once more
    ],
)
def test_what_must_not_run_twice_or_too_early_parts_the_run(instruction: str) -> None:
    assert _runs(_with(at_00c0=instruction)) == [1, 1]


@pytest.mark.parametrize("instruction", ["STG.E desc[UR4][R10.64], R7", "@P1 STS [R7], R2"])
def test_a_store_waits_until_all_is_known(instruction: str) -> None:
    assert _runs(_with(at_00c0=instruction)) == [2]


@pytest.mark.parametrize(("load", "guards"), [("LDG.E R6, desc[UR4][R12.64]", [1, 1]), ("LDG.E R6, desc[UR4][R10.64+0x4]", [2])])
def test_a_load_behind_a_store_runs_early_only_from_another_place(load: str, guards: list[int]) -> None:
    assert _runs(_with(at_00c0="STG.E desc[UR4][R10.64], R7", at_00d0=load)) == guards


def test_a_routine_in_which_a_thread_may_end_is_no_slow_way() -> None:
    assert _runs(_with(at_01e0="@P1 EXIT")) == []


@pytest.mark.parametrize(("softening", "fill"), [("0", "uniform(-1, 1)"), ("1e-44", "bits"), ("0", "uniform(-1e-22, 1e-22)")])
def test_slow_ways_give_the_same_bits(tmp_path: Path, nbody: Optimised, softening: str, fill: str) -> None:
    text = (ROOT / "bench" / "launch" / "nbody.toml").read_text(encoding="utf-8")
    changed = tmp_path / "nbody.toml"
    changed.write_text(text.replace("1e-2", softening).replace("uniform(-1, 1)", fill), encoding="utf-8")
    launch = read_launch_file(changed).launch("tile")
    before, after = emulate(NBODY, launch)["acc"], emulate(nbody.cubin, launch)["acc"]
    assert np.isnan(before).any()  # a body at no distance, at least to itself: the reciprocal of 0
    assert np.array_equal(before.view(np.uint32), after.view(np.uint32))


SOFTMAX = (
    "sass-specialize",
    "sass-specialize",
    "sass-unroll",
    "sass-specialize",
    "sass-gvn",
    "sass-dce",
    "sass-merge-guards",
    "sass-schedule",
)


def _softmax(tmp_path: Path, cols: int, noalias: bool) -> tuple[bytes, Optimised, Launch]:
    """Quotients from 0 over denormals to 1; the first and the last take the slow way."""
    text = (ROOT / "bench" / "launch" / "softmax_rows.toml").read_text(encoding="utf-8")
    changed = tmp_path / "softmax_rows.toml"
    changed.write_text(text.replace("rows = 3, cols = 1024", f"rows = 1, cols = {cols}").replace("uniform(-5, 5)", "uniform(-100, 5)"))
    file = read_launch_file(changed)
    original = (ROOT / "bench" / "cubins" / "softmax_rows.sm_90.cubin").read_bytes()
    facts = replace(file.facts, noalias=noalias)
    return (
        original,
        optimise_cubin(Task(original, "softmax", Pipeline("test", 1, SOFTMAX), facts, file.launch("small"))),
        file.launch("small"),
    )


def _checks_in_a_row(cubin: bytes) -> int:
    """The most FCHK without a branch between them."""
    most = now = 0
    for mnemonic in [line.instruction.mnemonic for line in read_program(cubin).functions[0].lines]:
        now = now + (mnemonic == "FCHK") if mnemonic not in ("BRA", "BSYNC", "CALL") else 0
        most = max(most, now)
    return most


@pytest.mark.parametrize("cols", [4096, 4000])  # a multiple of eight turns, and not
def test_the_divisions_of_eight_turns_are_tested_at_once(tmp_path: Path, cols: int) -> None:
    original, made, launch = _softmax(tmp_path, cols, noalias=True)
    assert _checks_in_a_row(original) == 1
    assert _checks_in_a_row(made.cubin) == 8
    assert "noalias" in made.outcomes[0].facts
    before, after = emulate(original, launch)["y"], emulate(made.cubin, launch)["y"]
    smallest = np.finfo(np.float32).tiny
    assert ((before > 0) & (before < smallest)).any()
    assert np.array_equal(before.view(np.uint32), after.view(np.uint32))


def test_stores_that_a_later_load_may_read_do_not_wait(tmp_path: Path) -> None:
    _, made, _ = _softmax(tmp_path, 4096, noalias=False)
    assert made.outcomes[0].changed
    assert _checks_in_a_row(made.cubin) == 1


def test_in_the_loop_one_branch_is_left_for_all_guards(nbody: Optimised) -> None:
    code = [line.instruction for line in read_program(nbody.cubin).functions[0].lines]
    roots = [i for i, c in enumerate(code) if c.name == "MUFU.RSQ"]
    run = code[roots[0] : roots[3]]
    assert [c.name for c in run].count("MUFU.RSQ") == 3
    assert not [c for c in run if c.mnemonic in ("BRA", "BSSY", "BSYNC", "CALL")]
