"""Comparison of two results of one launch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from sassir.launch.data import STORAGE, Array, bits_of, is_float, load
from sassir.launch.records import Buffer, Launch, Tolerance

Outputs = Mapping[str, Array]
"""Content of every output buffer after a launch, by name, in its storage type."""


@dataclass(frozen=True)
class Difference:
    """The first element, in buffer and memory order, in which two results differ."""

    buffer: str
    index: tuple[int, ...]
    left: str
    right: str
    """Values as text, with their bits."""
    count: int
    """How many elements of this buffer differ."""
    length: int

    def __str__(self) -> str:
        place = ", ".join(map(str, self.index))
        return f"{self.buffer}[{place}]: {self.left} against {self.right}; {self.count} of {self.length} elements differ"


@dataclass(frozen=True)
class Error:
    """How far the floats of two results lie apart, the worst over all output buffers; infinite where only one is a number."""

    absolute: float
    relative: float
    """Of the magnitude of the left element."""
    rmse: float
    """Root of the mean square difference of a buffer."""
    ulp: int
    """Representable numbers between the two, in the buffer's own type."""


def compare(launch: Launch, left: Outputs, right: Outputs, tolerance: Tolerance | None = None) -> Difference | None:
    """The first difference of two results of `launch`; None when they agree.

    Without a tolerance every bit counts, NaN payloads and the sign of zero included. With one, floats may differ within
    absolute + relative * |left|, NaN equals NaN, and up to a share of `differing` elements of a buffer may lie outside.
    """
    for buffer in launch.outputs:
        a, b = left[buffer.name].reshape(-1), right[buffer.name].reshape(-1)
        different = np.flatnonzero(bits_of(a) != bits_of(b))
        if tolerance is not None and different.size:
            if is_float(buffer.dtype):
                outside = ~_within(buffer, a[different], b[different], tolerance)
                different = different[outside]
            if different.size <= tolerance.differing * buffer.length:
                continue
        if different.size:
            first = int(different[0])
            index = tuple(int(i) for i in np.unravel_index(first, buffer.shape))
            show = [_show(side[first : first + 1], buffer.dtype) for side in (a, b)]
            return Difference(buffer.name, index, show[0], show[1], different.size, buffer.length)
    return None


def measure_error(launch: Launch, left: Outputs, right: Outputs) -> Error:
    """The distance of two results of `launch`; all zero where they have no floats."""
    worst = Error(0, 0, 0, 0)
    for buffer in launch.outputs:
        if not is_float(buffer.dtype) or not buffer.length:
            continue
        a, b = left[buffer.name].reshape(-1), right[buffer.name].reshape(-1)
        x, y = (load(side, buffer.dtype).astype(np.float64) for side in (a, b))
        same = (x == y) | (np.isnan(x) & np.isnan(y))
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            distance = np.where(same, 0, np.nan_to_num(np.abs(x - y), nan=np.inf, posinf=np.inf))
            relative = np.where(same, 0, np.nan_to_num(distance / np.abs(x), nan=np.inf, posinf=np.inf))
            rmse = float(np.sqrt(np.mean(np.square(distance))))
        ulp = np.abs(_ordinal(a) - _ordinal(b)) * ~same
        worst = Error(
            max(worst.absolute, float(distance.max())),
            max(worst.relative, float(relative.max())),
            max(worst.rmse, rmse),
            max(worst.ulp, int(ulp.max())),
        )
    return worst


def _ordinal(values: Array) -> Array:
    """Floats counted from zero upwards, as integers that differ by one from each float to the next."""
    bits = bits_of(values).astype(np.int64)
    width = 8 * values.dtype.itemsize
    magnitude = bits & (1 << width - 1) - 1
    return np.where(bits >> width - 1 & 1, -magnitude, magnitude)


def _within(buffer: Buffer, a: Array, b: Array, tolerance: Tolerance) -> Array:
    x, y = load(a, buffer.dtype).astype(np.float64), load(b, buffer.dtype).astype(np.float64)
    return np.isclose(y, x, rtol=tolerance.relative, atol=tolerance.absolute, equal_nan=True)


def _show(element: Array, dtype: str) -> str:
    value, bits = load(element, dtype)[0], int(bits_of(element)[0])
    return f"{value} ({bits:#0{2 + 2 * STORAGE[dtype].itemsize}x})"
