"""Two results are equal when every bit is; a tolerance is for floats whose file states one."""

from __future__ import annotations

import numpy as np
import pytest

from sassir.launch import Error, Launch, Tolerance, compare, measure_error
from sassir.launch.data import Array
from sassir.launch.records import Buffer


def launch(dtype: str, shape: tuple[int, ...]) -> Launch:
    return Launch("test", {}, (Buffer("y", dtype, shape, "out", "poison", (), 1),), (), ())


def floats(*values: float) -> Array:
    return np.array(values, np.float32)


def test_first_difference_is_named_with_both_values() -> None:
    left = np.arange(12, dtype=np.float32).reshape(3, 4)
    right = left.copy()
    right[1, 2], right[2, 0] = 6.5, 0
    difference = compare(launch("f32", (3, 4)), {"y": left}, {"y": right})
    assert str(difference) == "y[1, 2]: 6.0 (0x40c00000) against 6.5 (0x40d00000); 2 of 12 elements differ"
    assert compare(launch("f32", (3, 4)), {"y": left}, {"y": left.copy()}) is None


@pytest.mark.parametrize(("left", "right"), [(0x00000000, 0x80000000), (0x7FC00000, 0x7FC00001)], ids=["sign of zero", "payload of NaN"])
def test_every_bit_counts(left: int, right: int) -> None:
    first, second = ({"y": np.array([bits], np.uint32).view(np.float32)} for bits in (left, right))
    assert compare(launch("f32", (1,)), first, second) is not None
    assert compare(launch("f32", (1,)), first, first) is None


def test_bf16_is_shown_as_a_number() -> None:
    difference = compare(launch("bf16", (1,)), {"y": np.array([0x3F80], np.uint16)}, {"y": np.array([0x4000], np.uint16)})
    assert str(difference) == "y[0]: 1.0 (0x3f80) against 2.0 (0x4000); 1 of 1 elements differ"


@pytest.mark.parametrize(
    ("tolerance", "right", "agree"),
    [
        (Tolerance(relative=1e-3), floats(1.0005, 100, np.nan), True),
        (Tolerance(relative=1e-3), floats(1.01, 100, np.nan), False),
        (Tolerance(absolute=0.1), floats(1.05, 100.05, np.nan), True),
        (Tolerance(relative=1e-3), floats(1, 100, 1), False),
        (Tolerance(differing=0.4), floats(5, 100, np.nan), True),
        (Tolerance(differing=0.3), floats(5, 100, np.nan), False),
    ],
)
def test_tolerance(tolerance: Tolerance, right: Array, agree: bool) -> None:
    difference = compare(launch("f32", (3,)), {"y": floats(1, 100, np.nan)}, {"y": right}, tolerance)
    assert (difference is None) == agree


def test_integers_have_no_tolerance_but_a_share() -> None:
    left, right = {"y": np.array([1, 2], np.int32)}, {"y": np.array([1, 3], np.int32)}
    assert compare(launch("i32", (2,)), left, right, Tolerance(absolute=10, relative=10)) is not None
    assert compare(launch("i32", (2,)), left, right, Tolerance(differing=0.5)) is None


def test_empty_results_agree() -> None:
    assert compare(launch("f32", (0,)), {"y": floats()}, {"y": floats()}) is None


def test_the_distance_of_two_results() -> None:
    left, right = {"y": floats(1, -2, 0, np.nan)}, {"y": floats(1, -1.9999999, 0.5, np.nan)}
    found = measure_error(launch("f32", (4,)), left, right)
    assert found.absolute == 0.5
    assert found.relative == np.inf  # of zero
    assert found.rmse == pytest.approx(0.25)
    assert found.ulp == 0x3F000000
    assert measure_error(launch("f32", (4,)), left, left) == Error(0, 0, 0, 0)


def test_the_distance_across_zero_and_to_what_is_no_number() -> None:
    least = 1e-45
    assert measure_error(launch("f32", (1,)), {"y": floats(least)}, {"y": floats(-least)}).ulp == 2
    assert measure_error(launch("f32", (1,)), {"y": floats(1)}, {"y": floats(np.nan)}).absolute == np.inf
    assert measure_error(launch("i32", (1,)), {"y": np.array([1], np.int32)}, {"y": np.array([9], np.int32)}) == Error(0, 0, 0, 0)
