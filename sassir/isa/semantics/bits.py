"""Words and what they hold: 64-bit pairs, signed views, half registers. All work on arrays of any shape and on numpy scalars."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np

U32, I32, U64, I64, F16, F32, F64 = np.uint32, np.int32, np.uint64, np.int64, np.float16, np.float32, np.float64

ONES = U32(0xFFFFFFFF)
ZERO = U32(0)


def join(low: Any, high: Any) -> Any:
    """The uint64 of two words."""
    return high.astype(U64) << 32 | low


def split(pair: Any) -> tuple[Any, Any]:
    """The low and the high word of a uint64."""
    return pair.astype(U32), (pair >> 32).astype(U32)


def signed(x: Any) -> Any:
    """A word as int32, a pair as int64."""
    return x.view(I32 if x.dtype == U32 else I64)


def unsigned(x: Any) -> Any:
    """An int32 as a word, an int64 as a pair."""
    return x.view(U32 if x.dtype == I32 else U64)


def sign_extended(x: Any) -> Any:
    """A word as int64."""
    return x.view(I32).astype(I64)


def as_double(x: Any) -> Any:
    """Singles or halves as doubles, which is exact."""
    return x.astype(F64)


def as_single(x: Any) -> Any:
    """Halves as singles, which is exact, or doubles, rounded to nearest even."""
    return x.astype(F32)


def halves(x: Any) -> tuple[Any, Any]:
    """The low and the high 16 bits of a word, as words."""
    return x & 0xFFFF, x >> 16


def pack(low: Any, high: Any) -> Any:
    """A word of two halves, given as words below 65536."""
    return high << 16 | low


def same(x: Any) -> Any:
    """x itself: the step that does nothing."""
    return x


def select(p: Any, a: Any, b: Any) -> Any:
    """a where p holds, b elsewhere."""
    if np.ndim(p) == 0:
        return a if p else b
    return cast(Any, np.where(p, a, b))


def either(p: Any, yes: Callable[..., Any], no: Callable[..., Any], *values: Any) -> Any:
    """`yes(*values)` where p holds, `no(*values)` elsewhere; for a single p only one of them is computed."""
    if np.ndim(p) == 0:
        return yes(*values) if p else no(*values)
    return select(p, yes(*values), no(*values))


def of_three(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any, Any], Any]:
    """The function of two, over three."""
    return lambda a, b, c: function(function(a, b), c)
