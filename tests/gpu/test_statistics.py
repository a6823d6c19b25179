"""From samples to a verdict: what is equal stays equal, 3 % is called, noise is not mistaken for a difference."""

from __future__ import annotations

import numpy as np
import pytest

from sassir.gpu.statistics import MARGIN, compare_times
from sassir.gpu.timing import Samples

ROUNDS = 40


def samples(slower: float, noise: float, seed: int, drift: float = 0) -> Samples:
    """Rounds of a kernel of 100 µs and a candidate that takes longer by the share `slower`."""
    random = np.random.default_rng(seed)
    clock = 1 + drift * np.linspace(0, 1, ROUNDS)[:, None]
    original, candidate = (1e-4 * clock * (1 + noise * random.standard_normal((ROUNDS, 2))) for _ in range(2))
    return Samples([(a, b) for a, b in original], [(a, b) for a, b in candidate * (1 + slower)], 1, 1)


def test_a_kernel_against_itself_is_the_same() -> None:
    found = [compare_times(samples(0, 0.01, seed)) for seed in range(20)]
    assert [c.verdict for c in found] == ["same"] * 20
    assert all(abs(c.ratio - 1) < MARGIN for c in found)


@pytest.mark.parametrize(("slower", "verdict"), [(0.03, "slower"), (-0.03, "faster"), (0.004, "same")])
def test_three_per_cent_are_called_in_spite_of_noise(slower: float, verdict: str) -> None:
    found = [compare_times(samples(slower, 0.008, seed)) for seed in range(10)]
    assert {c.verdict for c in found} == {verdict}
    assert sum(c.low <= 1 / (1 + slower) <= c.high for c in found) >= 9


def test_drift_of_the_clock_falls_on_both() -> None:
    found = compare_times(samples(0, 0.002, 1, drift=0.2))
    assert found.verdict == "same"
    assert abs(found.ratio - 1) < 0.003
    assert found.original.spread > 0.05


def test_where_the_original_varies_by_itself_a_small_difference_is_not_called() -> None:
    found = compare_times(samples(0.03, 0.1, 1))
    assert found.noise > 0.03
    assert found.verdict == "same"


def test_figures_of_both_sides() -> None:
    exact = Samples([(1.0, 2.0)] * 3, [(2.0, 4.0)] * 3, 1, 1)
    found = compare_times(exact)
    assert (found.original.minimum, found.original.median, found.candidate.minimum) == pytest.approx((1, 1.5, 2))
    assert (found.ratio, found.low, found.high) == pytest.approx((0.5, 0.5, 0.5))
    assert found.verdict == "slower"
