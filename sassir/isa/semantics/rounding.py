"""Rounding once: sums without lost bits, and conversion of doubles to narrower formats in every direction.

A double rounded *to odd* (an inexact result takes the neighbour whose last bit is one) can be rounded again to a format that
is at least two bits narrower with the result of a single rounding: S. Boldo and G. Melquiond, "Emulation of FMA and correctly
rounded sums: proved algorithms using rounding to odd", IEEE Transactions on Computers 57(4), 2008.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sassir.isa.semantics.bits import F32, F64, I32, I64, U32, select

INFINITY = {"RM": F32(-np.inf), "RP": F32(np.inf), "RZ": F32(0)}
"""Where each direction goes."""


def two_sum(x: Any, y: Any) -> tuple[Any, Any]:
    """x + y rounded, and what was rounded away (Knuth, TAOCP 2, 4.2.2)."""
    total = x + y
    rest = total - x
    return total, (x - (total - rest)) + (y - rest)


def sum_to_odd(x: Any, y: Any, rounding: str = "RN") -> Any:
    """x + y of doubles, rounded to odd. `rounding` decides the sign of an exact zero: negative for RM."""
    total, lost = two_sum(x, y)
    last = total.view(I64)
    step = select((lost > 0) == (total > 0), I64(1), I64(-1))
    odd = (last + select((lost != 0) & ((last & 1) == 0) & np.isfinite(total), step, I64(0))).view(F64)
    if rounding == "RM":
        return select((total == 0) & (np.signbit(x) | np.signbit(y)), F64(-0.0), odd)
    return odd


def narrow(x: Any, rounding: str) -> Any:
    """Doubles as singles, rounded in the direction RN, RM, RP or RZ."""
    nearest = x.astype(F32)
    if rounding == "RN":
        return nearest
    back = nearest.astype(F64)
    return select(_beyond(back, x, rounding), np.nextafter(nearest, INFINITY[rounding]), nearest)


def _beyond(rounded: Any, x: Any, rounding: str) -> Any:
    """Where rounding to nearest went the wrong way."""
    return np.abs(rounded) > np.abs(x) if rounding == "RZ" else rounded > x if rounding == "RM" else rounded < x


def single_to_odd(x: Any) -> Any:
    """Doubles as singles, rounded to odd."""
    cut = narrow(x, "RZ")
    return (cut.view(I32) | (cut.astype(F64) != x)).view(F32)


def to_half(x: Any) -> Any:
    """Singles or doubles to nearest even as halves, in the low 16 bits of words; every NaN is 0x7fff."""
    return select(x != x, U32(0x7FFF), x.astype(np.float16).view(np.uint16).astype(U32))


def half_towards(x: Any, rounding: str) -> Any:
    """Singles or doubles as halves in the low 16 bits of words, rounded in the direction RN, RM, RP or RZ."""
    if rounding == "RN":
        return to_half(x)
    nearest = x.astype(np.float16)
    back = nearest.astype(x.dtype)
    return to_half(select(_beyond(back, x, rounding), np.nextafter(nearest, np.float16(INFINITY[rounding])), nearest))


def to_bfloat(x: Any) -> Any:
    """Singles to nearest even as bfloat16, in the low 16 bits of words; every NaN is 0x7fff."""
    return bfloat_towards(x, "RN")


def bfloat_towards(x: Any, rounding: str) -> Any:
    """Singles as bfloat16 in the low 16 bits of words, rounded in the direction RN or RZ; every NaN is 0x7fff."""
    word = x.view(U32)
    up = 0x7FFF + (word >> 16 & 1) if rounding == "RN" else U32(0)
    return select(x != x, U32(0x7FFF), word + up >> 16)
