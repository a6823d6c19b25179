"""Comparison of two results of one launch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from sassir.launch.data import STORAGE, Array, is_float, load
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


def compare(launch: Launch, left: Outputs, right: Outputs, tolerance: Tolerance | None = None) -> Difference | None:
    """The first difference of two results of `launch`; None when they agree.

    Without a tolerance every bit counts, NaN payloads and the sign of zero included. With one, floats may differ within
    absolute + relative * |left|, NaN equals NaN, and up to a share of `differing` elements of a buffer may lie outside.
    """
    for buffer in launch.outputs:
        a, b = left[buffer.name].reshape(-1), right[buffer.name].reshape(-1)
        different = np.flatnonzero(_bits(a) != _bits(b))
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


def _bits(values: Array) -> Array:
    return values.view(f"u{values.dtype.itemsize}")


def _within(buffer: Buffer, a: Array, b: Array, tolerance: Tolerance) -> Array:
    x, y = load(a, buffer.dtype).astype(np.float64), load(b, buffer.dtype).astype(np.float64)
    return np.isclose(y, x, rtol=tolerance.relative, atol=tolerance.absolute, equal_nan=True)


def _show(element: Array, dtype: str) -> str:
    value, bits = load(element, dtype)[0], int(_bits(element)[0])
    return f"{value} ({bits:#0{2 + 2 * STORAGE[dtype].itemsize}x})"
