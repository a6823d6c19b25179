"""Single precision: addition, multiplication, minimum and maximum; every result rounded once."""

from __future__ import annotations

from collections.abc import Callable
from operator import add, mul
from typing import Any

import numpy as np

from sassir.isa.semantics import bits
from sassir.isa.semantics.bits import F32, U32, as_double, same, select
from sassir.isa.semantics.definition import Binary, Form, Quaternary, Ternary, instruction
from sassir.isa.semantics.rounding import narrow, sum_to_odd

NAN = U32(0x7FFFFFFF).view(F32)
"""The one NaN that single-precision arithmetic returns (CUDA C++ Programming Guide, floating-point standard)."""
_SMALLEST = F32(2.0**-126)
"""The smallest normal number."""
_ROUNDING = "RM RP RZ"


def flush(x: Any) -> Any:
    """Denormal numbers become zero of the same sign (.FTZ)."""
    return x * (np.abs(x) >= _SMALLEST)


def canonical(x: Any) -> Any:
    """Every NaN becomes the one that the hardware returns."""
    nan = x != x
    return select(nan, NAN, x) if nan.any() else x


def saturate(x: Any) -> Any:
    """Into [0, 1]; NaN and -0 become 0 (.SAT)."""
    zero, one = x.dtype.type(0), x.dtype.type(1)
    return np.fmin(np.fmax(x, zero) + zero, one)


def relu(x: Any) -> Any:
    """Negative numbers and -0 become 0 (.RELU)."""
    return select(x <= 0, x.dtype.type(0), x)


def _finish(form: Form) -> Callable[[Any], Any]:
    """What happens to a rounded result."""
    last = saturate if form.has("SAT") else canonical
    return (lambda x: last(flush(x))) if form.has("FTZ") else last


def _arguments(form: Form) -> Callable[[Any], Any]:
    """What happens to an operand."""
    return flush if form.has("FTZ") else same


def _whole(form: Form, compute: Callable[..., Any]) -> Callable[..., Any]:
    """`compute` between what the modifiers do to operands and result."""
    argument, finish = _arguments(form), _finish(form)
    return lambda *operands: finish(compute(*[argument(x) for x in operands]))


@instruction("FADD UFADD", "f32", "f32 f32", modifiers=f"FTZ SAT {_ROUNDING}")
def fadd(form: Form) -> Binary:
    """d = a + b"""
    rounding = form.rounding
    if rounding == "RN":
        return _whole(form, add)

    def directed(a: Any, b: Any) -> Any:
        return narrow(sum_to_odd(as_double(a), as_double(b), rounding), rounding)

    return _whole(form, directed)


_SCALES = {"D8": 0.125, "D4": 0.25, "D2": 0.5, "M2": 2.0, "M4": 4.0, "M8": 8.0}


@instruction("FMUL UFMUL", "f32", "f32 f32", modifiers=f"FTZ SAT {_ROUNDING} {' '.join(_SCALES)}")
def fmul(form: Form) -> Binary:
    """d = a * b; .M2 doubles it, .D2 halves it, …"""
    rounding, scale = form.rounding, form.choose(_SCALES, 1.0)
    if rounding == "RN" and scale == 1:
        return _whole(form, mul)

    def directed(a: Any, b: Any) -> Any:
        return narrow(as_double(a) * b * scale, rounding)

    return _whole(form, directed)


@instruction("FFMA UFFMA", "f32", "f32 f32 f32", modifiers=f"FTZ SAT {_ROUNDING}")
def ffma(form: Form) -> Ternary:
    """d = a * b + c"""
    rounding = form.rounding
    if rounding == "RN":
        return _whole(form, fused_multiply_add)

    def directed(a: Any, b: Any, c: Any) -> Any:
        return narrow(sum_to_odd(as_double(a) * b, as_double(c), rounding), rounding)

    return _whole(form, directed)


def fused_multiply_add(a: Any, b: Any, c: Any) -> Any:
    """a * b + c in single precision, rounded once to nearest even.

    The product is exact in double precision. Their sum, rounded there, then rounds to the right single but where it lies
    half-way between two singles or is denormal; only for those lanes the sum is made again, rounded to odd.
    """
    product = as_double(a) * b
    total = product + c
    result = total.astype(F32)
    doubtful = (total.view(np.uint64) & 0x1FFFFFFF) == 0x10000000
    doubtful |= (np.abs(result) < _SMALLEST) & (total != 0)
    return select(doubtful, narrow(sum_to_odd(product, as_double(c)), "RN"), result) if doubtful.any() else result


@instruction("FMNMX UFMNMX", "f32", "f32 f32 p", modifiers="FTZ NAN")
def fmnmx(form: Form) -> Ternary:
    """d = p ? min(a, b) : max(a, b); -0 is below +0; of a number and a NaN the number, with .NAN the NaN"""
    least, most = minimum_and_maximum(form.has("NAN"))
    argument = _arguments(form)
    return lambda a, b, p: canonical(bits.either(p, least, most, argument(a), argument(b)))


@instruction("FMNMX3", "f32", "f32 f32 f32 p", modifiers="FTZ NAN")
def fmnmx3(form: Form) -> Quaternary:
    """d = p ? min(a, b, c) : max(a, b, c)"""
    least, most = minimum_and_maximum(form.has("NAN"))
    argument = _arguments(form)
    least, most = bits.of_three(least), bits.of_three(most)
    return lambda a, b, c, p: canonical(bits.either(p, least, most, argument(a), argument(b), argument(c)))


def minimum_and_maximum(keep_nan: bool) -> tuple[Any, Any]:
    """The functions of two floating-point arrays of one type; equal operands are zeros or the same, and -0 is the lesser zero."""
    lesser, greater = (np.minimum, np.maximum) if keep_nan else (np.fmin, np.fmax)

    def least(a: Any, b: Any) -> Any:
        return select(a == b, select(np.signbit(a), a, b), lesser(a, b))

    def most(a: Any, b: Any) -> Any:
        return select(a == b, select(np.signbit(a), b, a), greater(a, b))

    return least, most


@instruction("FADD2", "u64", "f32x2 f32x2", modifiers=f"FTZ {_ROUNDING}")
@instruction("FMUL2", "u64", "f32x2 f32x2", modifiers=f"FTZ {_ROUNDING}")
@instruction("FFMA2", "u64", "f32x2 f32x2 f32x2", modifiers=f"FTZ {_ROUNDING}")
def packed(form: Form) -> Callable[..., Any]:
    """The same as FADD, FMUL, FFMA on two singles"""
    build = {"FADD2": fadd, "FMUL2": fmul, "FFMA2": ffma}[form.instruction.mnemonic]
    one = build(form)

    def evaluate(*operands: Any) -> Any:
        low, high = (one(*[pair[i] for pair in operands]).view(U32) for i in (0, 1))
        return bits.join(low, high)

    return evaluate


@instruction("FCHK", "p", "f32 f32")
def fchk(form: Form) -> Binary:
    """p = the quotient a / b needs more than a reciprocal and fused multiply-adds: an exponent is too near the end of its range"""

    def evaluate(a: Any, b: Any) -> Any:
        top, bottom = ((x.view(U32) >> 23 & 0xFF).view(np.int32) for x in (a, b))
        usual = (top > 24) & (top < 255) & (bottom > 0) & (bottom < 253)
        return ~usual | (np.abs(top - bottom) > 125)

    return evaluate
