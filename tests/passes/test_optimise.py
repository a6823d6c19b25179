"""The pipelines: another code, the same results bit for bit, and what cannot be changed stays."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sassir.asm.program import Function
from sassir.dialect.operations import KernelOp
from sassir.emulator import emulate
from sassir.errors import TranslationError
from sassir.launch import LaunchFile, read_launch_file
from sassir.optimize import BEHIND, Optimised, Pipeline, Task, make_pass, optimise_cubin, read_pipeline
from sassir.translate.cubin import read_module, read_program
from sassir.verify.ladder import verify_pair

BENCH = Path(__file__).parents[2] / "bench"


def _suite(kernel: str) -> tuple[bytes, LaunchFile]:
    return (BENCH / "cubins" / f"{kernel}.sm_90.cubin").read_bytes(), read_launch_file(BENCH / "launch" / f"{kernel}.toml")


def _optimised(kernel: str, case: str, *passes: str) -> tuple[bytes, Optimised]:
    original, file = _suite(kernel)
    pipeline = Pipeline("test", 1, passes) if passes else read_pipeline("launch")
    return original, optimise_cubin(Task(original, kernel, pipeline, file.facts, file.launch(case)))


CASES = [
    ("saxpy_gs", "small"),
    ("saxpy_gs", "empty"),
    ("reduce_sum", "tail"),
    ("histogram256", "tail"),
    ("conv3x3", "one"),
    ("dgemv_col", "tail"),
    ("topk_local", "one"),
    ("poly_strict", "special"),
    ("mandelbrot", "tail"),
]


@pytest.mark.parametrize(("kernel", "case"), CASES)
def test_the_launch_pipeline_changes_the_code_and_no_bit_of_the_results(kernel: str, case: str) -> None:
    original, made = _optimised(kernel, case)
    launch = read_launch_file(BENCH / "launch" / f"{kernel}.toml").launch(case)
    before, after = emulate(original, launch), emulate(made.cubin, launch)
    assert all(outcome.changed for outcome in made.outcomes), made.outcomes
    assert made.cubin != original
    assert all(np.array_equal(before[name].view(np.uint8), after[name].view(np.uint8)) for name in before)


ALONE = ["sass-specialize", "sass-unroll{factor=4}", "sass-gvn", "sass-licm", "sass-schedule", "sass-share-addresses", "sass-dce"]


@pytest.mark.parametrize("step", ALONE)
def test_each_pass_alone_keeps_the_results(step: str) -> None:
    original, made = _optimised("reduce_sum", "small", step)
    launch = read_launch_file(BENCH / "launch" / "reduce_sum.toml").launch("small")
    assert made.outcomes[0].changed
    before, after = emulate(original, launch), emulate(made.cubin, launch)
    assert all(np.array_equal(before[name], after[name]) for name in before)


def test_the_default_pipeline_uses_no_fact_and_holds_for_every_launch() -> None:
    original, file = _suite("saxpy_gs")
    made = optimise_cubin(Task(original, "saxpy_gs", read_pipeline("default")))
    assert made.outcomes[0].facts == ()
    small = [launch for name, launch in file.launches.items() if name not in file.timed]
    assert verify_pair(original, made.cubin, small).good


def test_the_facts_that_the_code_relies_on_are_recorded() -> None:
    _, made = _optimised("saxpy_gs", "small", "sass-specialize")
    assert {"block", "grid"} <= set(made.outcomes[0].facts)


def test_unrolling_shares_one_address_and_batches_the_loads() -> None:
    def most_loads_in_a_row(function: Function) -> int:
        most = now = 0
        for line in function.lines:
            now = now + 1 if line.instruction.mnemonic == "LDG" else 0
            most = max(most, now)
        return most

    original, made = _optimised("reduce_sum", "small")
    before, after = (read_program(data).functions[0] for data in (original, made.cubin))
    assert most_loads_in_a_row(before) == 1
    assert most_loads_in_a_row(after) >= 8


def test_spills_become_registers() -> None:
    original, _ = _suite("su3_spill")
    made = optimise_cubin(Task(original, "su3_spill", Pipeline("test", 1, ("sass-promote-local",))))
    assert _count(original, "LDL", "STL") > 100
    assert _count(made.cubin, "LDL", "STL") == 0


def _count(cubin: bytes, *mnemonics: str) -> int:
    return sum(line.instruction.mnemonic in mnemonics for line in read_program(cubin).functions[0].lines)


def test_a_kernel_that_cannot_be_changed_stays_and_says_why() -> None:
    original, _ = _suite("triton_attention")
    made = optimise_cubin(Task(original, "triton_attention", read_pipeline("default")))
    assert made.cubin == original
    assert "HGMMA" in made.outcomes[0].reason


def test_a_pipeline_says_what_comes_behind_allocation(tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_text('version = 1\npasses = ["sass-dce"]\nbehind = ["sass-keep-cache"]\n')
    (tmp_path / "q.toml").write_text('version = 1\npasses = ["sass-dce"]\n')
    one, other = [read_pipeline(str(tmp_path / name)) for name in ("p.toml", "q.toml")]
    assert one.texts[:4] == ("sass-virtualise", "sass-dce", "sass-allocate-registers", "sass-keep-cache")
    assert one.texts[4] == other.texts[5] == "sass-assign-control"
    assert other.behind == read_pipeline("default").behind == read_pipeline("launch").behind == BEHIND


def test_unknown_passes_and_pipelines_are_named() -> None:
    with pytest.raises(TranslationError, match="no pass is called sass-magic"):
        make_pass("sass-magic")
    with pytest.raises(TranslationError, match="pipeline 'fastest'"):
        read_pipeline("fastest")


CALLING = sorted((Path(__file__).parents[1] / "cubins").glob("calls.*.cubin"))


@pytest.mark.parametrize("path", CALLING, ids=lambda path: path.stem)
def test_what_was_optimised_can_be_read_again(path: Path) -> None:
    """Return addresses are found by where they are written, so that must stay before the calls."""
    made = optimise_cubin(Task(path.read_bytes(), path.name, read_pipeline("default")))
    changed = {outcome.kernel for outcome in made.outcomes if outcome.changed}
    assert changed
    read = [kernel for kernel in read_module(made.cubin, path.name).body.ops if isinstance(kernel, KernelOp)]
    assert [kernel.fixed for kernel in read if kernel.function.data in changed] == [None] * len(changed)
