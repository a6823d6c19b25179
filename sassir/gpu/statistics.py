"""From interleaved samples to a verdict: faster, same or slower, with the confidence that supports it."""

from __future__ import annotations

from statistics import NormalDist
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sassir.gpu.timing import Samples

Verdict = Literal["faster", "same", "slower"]

CONFIDENCE = 0.99
"""Of the interval of the ratio."""
MARGIN = 0.01
"""Differences below 1 % are not called: where code and data happen to lie in memory alone makes that much."""


class Times(NamedTuple):
    """Seconds of one run."""

    median: float
    minimum: float
    spread: float
    """Distance of the quartiles, as a share of the median."""


class Comparison(NamedTuple):
    """What the samples say. A ratio is the original's time over the candidate's: above 1 the candidate is faster."""

    original: Times
    candidate: Times
    ratio: float
    """The centre of the rounds."""
    low: float
    high: float
    """Interval of the ratio at CONFIDENCE."""
    noise: float
    """How well the original's two samples of a round agree: half the interval of their ratio at CONFIDENCE."""
    verdict: Verdict


def compare_times(samples: Samples) -> Comparison:
    """The verdict is `faster` or `slower` only if the whole interval lies beyond MARGIN and beyond the noise, else `same`."""
    original, candidate = np.log(samples.original), np.log(samples.candidate)
    # One value a round, the means of its two samples: in a round A B B A a linear drift cancels.
    ratio, low, high = _locate(original.mean(axis=1) - candidate.mean(axis=1))
    _, worst, best = _locate(original[:, 0] - original[:, 1])
    noise = (best - worst) / 2
    margin = max(np.log1p(MARGIN), noise)
    verdict: Verdict = "faster" if low > margin else "slower" if high < -margin else "same"
    ratio, low, high = (float(np.exp(value)) for value in (ratio, low, high))
    return Comparison(_times(original), _times(candidate), ratio, low, high, float(np.expm1(noise)), verdict)


def _locate(values: NDArray[np.float64]) -> tuple[float, float, float]:
    """The centre of values that scatter symmetrically, and its interval: Hodges and Lehmann's estimate and Wilcoxon's signed ranks.

    One far-off round does not move them, and no distribution is assumed. (Hollander, Wolfe, Chicken: Nonparametric Statistical
    Methods, 3.2 and 3.3. A bootstrap of the median is wider, and misses the centre in 4 of 100 cases at 15 rounds.)
    """
    rounds = len(values)
    first, second = np.triu_indices(rounds)
    averages = np.sort((values[first] + values[second]) / 2)
    deviation = (rounds * (rounds + 1) * (2 * rounds + 1) / 24) ** 0.5
    quantile = NormalDist().inv_cdf((1 - CONFIDENCE) / 2)
    outside = max(int(rounds * (rounds + 1) / 4 + quantile * deviation) - 1, 0)
    return float(np.median(averages)), float(averages[outside]), float(averages[-1 - outside])


def _times(logarithms: NDArray[np.float64]) -> Times:
    seconds = np.exp(logarithms).ravel()
    low, median, high = np.percentile(seconds, (25, 50, 75))
    return Times(float(median), float(seconds.min()), float((high - low) / median))
