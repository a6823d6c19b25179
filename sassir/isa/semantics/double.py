"""Double precision: every result rounded once, in every direction, over the whole range of exponents."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from sassir.isa.semantics import bits
from sassir.isa.semantics.bits import F64, U64, select
from sassir.isa.semantics.definition import Binary, Form, Ternary, instruction
from sassir.isa.semantics.rounding import sum_to_odd, two_sum
from sassir.isa.semantics.single import minimum_and_maximum

INVALID = U64(0xFFF8 << 48).view(F64)
"""What an invalid operation returns."""
_QUIET = U64(1 << 51)
_SPLITTER = F64(2**27 + 1)
_LARGE, _SMALL = F64(2.0**980), F64(2.0**-900)
_DIRECTIONS = {"RN": 0, "RZ": 0, "RM": -1, "RP": 1}


@instruction("DADD", "f64", "f64 f64", modifiers="RM RP RZ")
def dadd(form: Form) -> Binary:
    """d = a + b"""
    rounding = form.rounding
    if rounding == "RN":
        return lambda a, b: with_nan(a + b, b, a)
    return lambda a, b: with_nan(fused(a, F64(1), b, rounding), b, a)


@instruction("DMUL", "f64", "f64 f64", modifiers="RM RP RZ")
def dmul(form: Form) -> Binary:
    """d = a * b"""
    rounding = form.rounding
    if rounding == "RN":
        return lambda a, b: with_nan(a * b, b, a)
    return lambda a, b: with_nan(fused(a, b, np.copysign(F64(0), a * b), rounding), b, a)


@instruction("DFMA", "f64", "f64 f64 f64", modifiers="RM RP RZ")
def dfma(form: Form) -> Ternary:
    """d = a * b + c"""
    rounding = form.rounding
    return lambda a, b, c: with_nan(fused(a, b, c, rounding), b, c, a)


@instruction("DMNMX", "f64", "f64 f64 p")
def dmnmx(form: Form) -> Ternary:
    """d = p ? min(a, b) : max(a, b)"""
    least, most = minimum_and_maximum(keep_nan=False)
    return lambda a, b, p: bits.either(p, least, most, a, b)


def with_nan(result: Any, *operands: Any) -> Any:
    """A NaN result is the first of `operands` that is a NaN, made quiet; else what an invalid operation returns.

    The hardware looks at b first, then c, then a (docs/semantics.md).
    """
    nan = result != result
    if not nan.any():
        return result
    chosen = INVALID
    for x in reversed(operands):
        chosen = select(x != x, (x.view(U64) | _QUIET).view(F64), chosen)
    return select(nan, chosen, result)


def fused(a: Any, b: Any, c: Any, rounding: str = "RN") -> Any:
    """a * b + c of doubles, rounded once.

    To nearest, lanes of moderate exponents take the way of Boldo and Melquiond (see `rounding`); the others, and other
    directions, the same way on scaled operands.
    """
    a, b, c = cast(tuple[Any, ...], np.broadcast_arrays(a, b, c))
    if rounding != "RN":
        return _fused_scaled(a.ravel(), b.ravel(), c.ravel(), rounding).reshape(a.shape)
    product = a * b
    size = np.abs(product)
    moderate = (size < _LARGE) & ((size > _SMALL) | (a == 0) | (b == 0))
    moderate &= (np.abs(a) < _LARGE) & (np.abs(b) < _LARGE) & (np.abs(c) < _LARGE)
    high, rest = _sum_of_three(*two_product(a, b), c)
    total = high + rest
    result = np.array(select(total == 0, product + c, total))  # of zeros, the plain sum has the right sign
    if not moderate.all():
        others = ~moderate
        result[others] = _fused_scaled(a[others], b[others], c[others], "RN")
    return result


def two_product(a: Any, b: Any) -> tuple[Any, Any]:
    """a * b rounded, and what was rounded away, for moderate exponents (T. J. Dekker, Numerische Mathematik 18, 1971)."""
    product = a * b
    a_high, a_low = _halves(a)
    b_high, b_low = _halves(b)
    return product, a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low)


def _halves(x: Any) -> tuple[Any, Any]:
    scaled = x * _SPLITTER
    high = scaled - (scaled - x)
    return high, x - high


def _sum_of_three(high: Any, low: Any, c: Any) -> tuple[Any, Any]:
    """Two doubles that round, together, like high + low + c, where low is what was rounded away from high."""
    middle, least = two_sum(c, low)
    most, second = two_sum(high, middle)
    return most, sum_to_odd(least, second)


def _fused_scaled(a: Any, b: Any, c: Any, rounding: str) -> Any:
    """a * b + c of one-dimensional arrays with any exponents, rounded once."""
    (ma, ea), (mb, eb), (mc, ec) = (np.frexp(x) for x in (a, b, c))
    product_exponent = select((ma == 0) | (mb == 0), -5000, ea + eb)
    exponent = np.maximum(product_exponent, select(mc == 0, -5000, ec))
    # An addend far below the other only says on which side of it the sum lies.
    ma = np.ldexp(ma, np.maximum(product_exponent - exponent, -300))
    mc = np.ldexp(mc, np.maximum(ec - exponent, -300))
    high, rest = _sum_of_three(*two_product(ma, mb), mc)
    result = _round_scaled(high, rest, np.maximum(exponent, -1500), rounding)
    exact = (high == 0) & (rest == 0)
    zero = select((a == 0) | (b == 0), a * b + c, F64(-0.0 if rounding == "RM" else 0.0))
    if rounding == "RM":
        zero = select((zero == 0) & (np.signbit(a) ^ np.signbit(b) | np.signbit(c)), F64(-0.0), zero)
    result = select(exact, zero, result)
    finite = np.isfinite(a) & np.isfinite(b)
    return select(finite & np.isfinite(c), result, select(finite, c, a * b + c))


def _round_scaled(high: Any, rest: Any, exponent: Any, rounding: str) -> Any:
    """(high + rest) * 2^exponent, rounded once, denormal and infinite results included."""
    total, lost = two_sum(high, rest)
    grid = np.ldexp(1.0, np.maximum(-1074 - exponent, -400))
    denormal = np.abs(total) < np.ldexp(grid, 52)
    # Adding 2^52 units of the last place, of the same sign, rounds to that place.
    anchor = np.copysign(2.0**52 * grid, total)
    near, below = two_sum(anchor, total)
    on_grid = near + sum_to_odd(below, lost) - anchor
    nearest = select(denormal, on_grid, total)
    error = select(denormal, total - on_grid + lost, lost)
    if rounding != "RN":
        sign = np.sign(total) if rounding == "RZ" else np.full_like(total, -_DIRECTIONS[rounding])
        wrong = np.sign(error) == -sign
        step = select(denormal, nearest - sign * grid, np.nextafter(nearest, -sign * np.inf))
        nearest = select(wrong, step, nearest)
    result = np.copysign(np.ldexp(nearest, exponent), total)
    if rounding == "RN":
        return result
    largest = np.copysign(np.finfo(F64).max, total)
    direction = _DIRECTIONS[rounding]
    keep = np.zeros_like(total, np.bool_) if direction == 0 else np.sign(total) == direction
    return select(np.isinf(result) & ~keep, largest, result)
