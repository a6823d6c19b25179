"""Single precision: addition, multiplication, minimum and maximum; every result rounded once."""

from __future__ import annotations

from collections.abc import Callable
from operator import add, mul
from typing import Any, cast

import numpy as np

from sassir.isa.semantics import bits
from sassir.isa.semantics.bits import F32, U32, as_double, as_single, same, select
from sassir.isa.semantics.definition import Binary, Form, Quaternary, Ternary, instruction
from sassir.isa.semantics.rounding import narrow, sum_to_odd

NAN = U32(0x7FFFFFFF).view(F32)
"""The one NaN that single-precision arithmetic returns (CUDA C++ Programming Guide, floating-point standard)."""
_SMALLEST = F32(2.0**-126)
"""The smallest normal number."""
_ROUNDING = "RM RP RZ"


def flush(x: Any) -> Any:
    """Denormal numbers become zero of the same sign (.FTZ)."""
    return _without(np.abs(x) < _SMALLEST, x)


def _without(tiny: Any, x: Any) -> Any:
    """x, but zero of the same sign where it is tiny. A NaN stays as it is, which a product of all would make quiet."""
    return select(tiny, x * F32(0), x) if tiny.any() else x


def canonical(x: Any) -> Any:
    """Every NaN becomes the one that the hardware returns."""
    nan = x != x
    return select(nan, NAN, x) if nan.any() else x


def saturate(x: Any) -> Any:
    """Into [0, 1]; NaN and -0 become 0 (.SAT)."""
    zero, one = x.dtype.type(0), x.dtype.type(1)
    return select(x > zero, np.minimum(x, one), zero)


def relu(x: Any) -> Any:
    """Negative numbers and -0 become 0 (.RELU)."""
    return select(x <= 0, x.dtype.type(0), x)


def _arguments(form: Form) -> Callable[[Any], Any]:
    """What happens to an operand."""
    return flush if form.has("FTZ") else same


def _rounded(form: Form, exact: Callable[..., Any], nearest: Callable[..., Any]) -> Callable[..., Any]:
    """The instruction from two functions of its operands: the result in double precision, exact or rounded to odd, and the
    single nearest to it."""
    rounding, last = form.rounding, saturate if form.has("SAT") else canonical

    def compute(*operands: Any) -> Any:
        return nearest(*operands) if rounding == "RN" else narrow(exact(*operands), rounding)

    def flushed(*operands: Any) -> Any:
        operands = tuple([flush(x) for x in operands])
        return last(_flush_result(compute(*operands), lambda: exact(*operands), rounding))

    return flushed if form.has("FTZ") else lambda *operands: last(compute(*operands))


def _flush_result(result: Any, exact: Callable[[], Any], rounding: str) -> Any:
    """.FTZ of a result: zero where it would be denormal if rounded to 24 bits with any exponent (docs/semantics.md).

    Such a number may round to the smallest normal one, as there are fewer denormal numbers.
    """
    size = np.abs(result)
    tiny, edge = size < _SMALLEST, size == _SMALLEST
    if edge.any():
        tiny = tiny | edge & (np.abs(narrow(exact() * 2.0**64, rounding)) < F32(2.0**-62))
    return _without(tiny, result)


@instruction("FADD UFADD", "f32", "f32 f32", modifiers=f"FTZ SAT {_ROUNDING}")
def fadd(form: Form) -> Binary:
    """d = a + b"""
    rounding = form.rounding

    def exact(a: Any, b: Any) -> Any:
        return sum_to_odd(as_double(a), as_double(b), rounding)

    return _rounded(form, exact, add)


_SCALES = {"D8": 0.125, "D4": 0.25, "D2": 0.5, "M2": 2.0, "M4": 4.0, "M8": 8.0}


@instruction("FMUL UFMUL", "f32", "f32 f32", modifiers=f"FTZ SAT {_ROUNDING} {' '.join(_SCALES)}")
def fmul(form: Form) -> Binary:
    """d = a * b; .M2 doubles it, .D2 halves it, …"""
    scale = form.choose(_SCALES, 1.0)

    def exact(a: Any, b: Any) -> Any:
        return as_double(a) * b * scale

    def scaled(a: Any, b: Any) -> Any:
        return as_single(exact(a, b))

    return _rounded(form, exact, cast(Binary, mul) if scale == 1 else scaled)


@instruction("FFMA UFFMA", "f32", "f32 f32 f32", modifiers=f"FTZ SAT {_ROUNDING}")
def ffma(form: Form) -> Ternary:
    """d = a * b + c"""
    rounding = form.rounding

    def exact(a: Any, b: Any, c: Any) -> Any:
        return sum_to_odd(as_double(a) * b, as_double(c), rounding)

    return _rounded(form, exact, fused_multiply_add)


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


def minimum_and_maximum(keep_nan: bool) -> tuple[Binary, Binary]:
    """The functions of two floating-point arrays of one type: -0 is below +0; of a number and a NaN the number, or the NaN.

    Not numpy's fmin and fmax: what these make of a signalling NaN depends on the length of the arrays.
    """

    def choose(a: Any, b: Any, first: Any) -> Any:
        return select(first | (a != a if keep_nan else b != b), a, b)

    def least(a: Any, b: Any) -> Any:
        return choose(a, b, (a < b) | ((a == b) & np.signbit(a)))

    def most(a: Any, b: Any) -> Any:
        return choose(a, b, (a > b) | ((a == b) & ~np.signbit(a)))

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
    """p = the quotient a / b needs more than a reciprocal and fused multiply-adds: an exponent is too near the end of its range

    The limits are those of an H200, see docs/semantics.md.
    """

    def evaluate(a: Any, b: Any) -> Any:
        top, bottom = ((x.view(U32) >> 23 & 0xFF).view(np.int32) for x in (a, b))
        usual = (top > 24) & (top < 255) & (bottom > 1) & (bottom < 252)
        return ~usual | (top - bottom <= -125) | (top - bottom > 126)

    return evaluate
