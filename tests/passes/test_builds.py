"""What nvcc builds with flags that nobody tuned the passes for is optimised too, or refused by name."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from sassir.errors import SassirWarning
from sassir.launch import read_launch_file
from sassir.optimize import Task, optimise_cubin, read_pipeline
from sassir.verify.ladder import verify_pair

CUBINS = Path(__file__).parents[1] / "cubins"


@pytest.mark.parametrize("name", ["unoptimised.sm_90", "unoptimised.linked.sm_75", "unoptimised.linked.sm_90", "unoptimised.linked.sm_120"])
@pytest.mark.parametrize("pipeline", ["default", "launch"])
@pytest.mark.parametrize("case", ["many", "none"])
def test_code_without_optimisation_and_linked_code_keep_their_results(name: str, pipeline: str, case: str) -> None:
    """The first compares its stack pointer with the limit, and constants of its functions go in front of the loop that calls them; the
    functions of the others are in sections of their own."""
    original, file = (CUBINS / f"{name}.cubin").read_bytes(), read_launch_file(CUBINS / "unoptimised.toml")
    launch = file.launch(case)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SassirWarning)  # functions return to code that is not known; one form of sm_120 stays
        made = optimise_cubin(Task(original, name, read_pipeline(pipeline), file.facts, launch if pipeline == "launch" else None))
    assert {outcome.kernel for outcome in made.outcomes if outcome.changed} == {"unoptimised"}
    report = verify_pair(original, made.cubin, [launch], file.facts, assumptions=made.assumptions)
    assert {layer.verdict for layer in report.layers} == {"holds"}


def test_code_with_full_debug_information_stays_and_says_why() -> None:
    """Which register holds a variable cannot follow. The user gets the file as it was, before any pass has spent time on it."""
    original = (CUBINS / "debug.sm_90.cubin").read_bytes()
    made = optimise_cubin(Task(original, "debug", read_pipeline("default")))
    assert made.cubin == original
    assert {outcome.reason for outcome in made.outcomes} == {
        ".nv_debug_info_reg_sass: code with full debug information cannot move; compile with -lineinfo, not -G"
    }


def test_the_reason_of_a_relocatable_function_is_plain_text() -> None:
    """A device function returns to code in another file."""
    made = optimise_cubin(Task((CUBINS / "hop.sm_90.cubin").read_bytes(), "hop", read_pipeline("default")))
    reasons = {outcome.kernel: outcome.reason for outcome in made.outcomes}
    assert reasons["_Z7half_off"].startswith("RET at 0x")


def test_a_relocatable_object_with_another_form_of_its_code_stays_for_the_linker() -> None:
    original = (CUBINS / "hop.sm_120.cubin").read_bytes()
    made = optimise_cubin(Task(original, "hop", read_pipeline("default")))
    assert made.cubin == original
    assert all("optimise the linked file" in outcome.reason for outcome in made.outcomes)
