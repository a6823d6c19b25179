"""A failure becomes as small as it can: launch, passes, changed instructions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sassir.launch import Launch, LaunchFile, read_launch
from sassir.verify.differential import Original
from sassir.verify.reduce import Failing, Make, find_failure, minimise, reduce_passes, reduce_regions, shrink_launch

Bench = Callable[[str], tuple[bytes, LaunchFile]]
Edit = Callable[..., bytes]

WRONG = ("/*0220*/ FADD R7, R7, 0.5 ;", "/*0220*/ FADD R7, R7, 0.75 ;")


@given(st.sets(st.integers(0, 30), max_size=4), st.integers(31, 40))
def test_delta_debugging_finds_exactly_what_is_needed(needed: set[int], count: int) -> None:
    assert minimise(range(count), lambda items: needed <= set(items)) == sorted(needed)


def failing(make: Make, original: bytes, passes: Sequence[str], file: LaunchFile) -> Failing:
    found = find_failure(Original(original), make, passes, file.small, file.facts.noalias)
    assert found is not None
    return found


def given_candidate(candidate: bytes) -> Make:
    return lambda passes, launch: candidate


def test_there_is_nothing_to_reduce_where_nothing_fails(bench: Bench) -> None:
    cubin, file = bench("rgb2gray_u8")
    assert find_failure(Original(cubin), given_candidate(cubin), (), file.small, True) is None


def test_sizes_become_as_small_as_the_failure_allows(bench: Bench, edited: Edit) -> None:
    cubin, file = bench("poly_strict")
    wrong = failing(given_candidate(edited(cubin, WRONG)), cubin, (), file)

    def resize(name: str, sizes: dict[str, int]) -> Launch:
        return read_launch(file.path, name, sizes)

    sizes, found = shrink_launch(wrong, resize, noalias=True)
    assert sizes == {"n": 1, "steps": 4}  # the wrong instruction is in a loop unrolled by four
    assert found.case.launch.sizes == {"n": 1, "steps": 4}
    assert "1 of 1 elements differ" in found.check.detail


@pytest.mark.parametrize("culprits", [{"c"}, {"a", "d"}])
def test_only_the_passes_that_matter_are_kept(bench: Bench, edited: Edit, culprits: set[str]) -> None:
    cubin, file = bench("poly_strict")
    wrong = edited(cubin, WRONG)

    def make(passes: Sequence[str], launch: Launch) -> bytes | None:
        if "b" in passes and len(passes) == 1:
            return None  # it makes nothing by itself
        return wrong if culprits <= set(passes) else cubin

    found = reduce_passes(failing(make, cubin, "abcde", file))
    assert set(found.passes) == culprits
    assert found.candidate == wrong


def test_only_the_changes_that_matter_are_kept(bench: Bench, edited: Edit) -> None:
    cubin, file = bench("poly_strict")
    wrong = edited(cubin, WRONG, ("/*0630*/ FMUL R7, R7, R6 ;", "/*0630*/ FMUL R7, R6, R7 ;"))
    reduced = reduce_regions(failing(given_candidate(wrong), cubin, (), file))
    assert reduced is not None
    (region,), found = reduced
    assert (region.function, region.lines) == (0, range(0x22, 0x23))
    assert found.candidate == edited(cubin, WRONG)


def test_code_that_was_laid_out_anew_is_not_mixed(bench: Bench, edited: Edit) -> None:
    cubin, file = bench("poly_strict")
    longer = edited(cubin, (WRONG[0], WRONG[1] + "\n" + "\n".join(["[B------:R-:W-:Y:S04] NOP ;"] * 20)))
    assert reduce_regions(failing(given_candidate(longer), cubin, (), file)) is None
