"""Single-precision arithmetic as the GPU does it: rounded once, to nearest even."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
F32 = np.float32


def fma(a: Any, b: Any, c: Any) -> Floats:
    """a * b + c in single precision with one rounding.

    In double precision the product is exact. The sum is rounded to odd: of the two neighbours of the exact sum the one with an odd
    last bit, so that rounding it once more, to single precision, gives what rounding the exact sum would have given. (Boldo and
    Melquiond: Emulation of a FMA and correctly rounded sums, 2008.)
    """
    a, b, c = (np.asarray(operand, F32).astype(np.float64) for operand in (a, b, c))
    product = a * b
    total = np.asarray(product + c)
    back = total - product
    error = (product - (total - back)) + (c - back)
    bits = total.view(np.int64)
    inexact = np.isfinite(total) & (error != 0) & (bits & 1 == 0)
    odd = np.where(inexact, bits + np.where((error > 0) == (total > 0), 1, -1), bits)
    return odd.view(np.float64).astype(F32)


def flush(x: Any) -> Floats:
    """`x`, exact in single or double precision, as the operand or result of an `.FTZ` instruction.

    What lies below the smallest normal number becomes zero, and is compared before it is rounded: 0x3f7fffff * 0x00800000 is
    zero although rounding would lift it to 0x00800000 (measured on an H200: launch `special` of cupy_where).
    """
    return np.where(np.abs(x) < np.finfo(F32).tiny, np.copysign(0, x), x).astype(F32)
