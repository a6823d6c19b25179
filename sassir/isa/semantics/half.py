"""Half precision and bfloat16, two numbers in a register; every result rounded once to nearest even."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sassir.isa.semantics import bits
from sassir.isa.semantics.bits import F16, F32, F64, as_double, same, select
from sassir.isa.semantics.definition import Binary, Form, Quaternary, Ternary, instruction
from sassir.isa.semantics.rounding import single_to_odd, sum_to_odd, to_bfloat, to_half
from sassir.isa.semantics.single import canonical, minimum_and_maximum, relu, saturate

Part = Callable[..., Any]
"""A function of one half of each operand."""
_SMALLEST = F32(2.0**-14)


def flush(x: Any) -> Any:
    """Numbers that are denormal as halves become zero of the same sign (.FTZ)."""
    return x * (np.abs(x) >= _SMALLEST)


def _packed(form: Form, compute: Part) -> Callable[..., Any]:
    """`compute`, in at least single precision, on both halves; then saturation and rounding to the format."""
    if form.has("BF16_V2"):
        if form.has("FTZ"):
            raise form.refusal("bfloat16 with .FTZ is not modelled")
        argument, store = same, _to_bfloat
    elif form.has("FTZ"):
        argument, store = flush, _to_flushed_half
    else:
        argument, store = same, to_half
    limit = saturate if form.has("SAT") else relu if form.has("RELU") else same

    def evaluate(*operands: Any) -> Any:
        parts = [store(limit(compute(*[argument(o[i]) for o in operands]))) for i in (0, 1)]
        return bits.pack(*parts)

    return evaluate


def _to_bfloat(x: Any) -> Any:
    return to_bfloat(single_to_odd(x) if x.dtype == F64 else x)


def _to_flushed_half(x: Any) -> Any:
    """.FTZ of a result: zero where it would be denormal if rounded to 11 bits with any exponent (docs/semantics.md)."""
    tiny = np.abs((x * 2.0**10).astype(F16)) < F16(2.0**-4)
    return to_half(select(tiny, np.copysign(x.dtype.type(0), x), x))


def _sum(a: Any, b: Any) -> Any:
    # Twice the digits and two more: the single rounds to the right half (S. A. Figueroa, SIGNUM 30(3), 1995).
    return a + b


def _sum_with_single(a: Any, b: Any) -> Any:
    return sum_to_odd(as_double(a), as_double(b))


def _product(a: Any, b: Any) -> Any:
    return as_double(a) * b


def _fused(a: Any, b: Any, c: Any) -> Any:
    return sum_to_odd(as_double(a) * b, as_double(c))


@instruction("HADD2", "u32", "h2 h2", modifiers="FTZ SAT")
@instruction("HADD2.BF16_V2", "u32", "b2 b2", modifiers="SAT")
def hadd2(form: Form) -> Binary:
    """d = a + b"""
    singles = any(".F32" in o.template for o in form.instruction.operands)
    return _packed(form, _sum_with_single if singles else _sum)


@instruction("HADD2.F32", "f32", "h2 h2")
def hadd2_single(form: Form) -> Binary:
    """d = a + b as a single, of the halves that the operands choose"""
    for operand in form.instruction.operands[1:]:
        if operand.is_register and operand.registers[0] != "RZ" and not operand.template.rstrip("|").endswith(("H0_H0", "H1_H1", "F32")):
            raise form.refusal("expected .H0_H0 or .H1_H1")
    return lambda a, b: canonical(a[0] + b[0])


@instruction("HMUL2", "u32", "h2 h2", modifiers="FTZ SAT")
@instruction("HMUL2.BF16_V2", "u32", "b2 b2", modifiers="SAT")
def hmul2(form: Form) -> Binary:
    """d = a * b"""
    return _packed(form, _product)


@instruction("HFMA2", "u32", "h2 h2 h2", modifiers="MMA FTZ SAT RELU")
@instruction("HFMA2.BF16_V2", "u32", "b2 b2 b2", modifiers="MMA SAT RELU")
def hfma2(form: Form) -> Ternary:
    """d = a * b + c"""
    return _packed(form, _fused)


@instruction("HMNMX2", "u32", "h2 h2 p", modifiers="FTZ NAN")
@instruction("HMNMX2.BF16_V2", "u32", "b2 b2 p", modifiers="NAN")
def hmnmx2(form: Form) -> Ternary:
    """d = p ? min(a, b) : max(a, b)"""
    least, most = (_packed(form, f) for f in minimum_and_maximum(form.has("NAN")))
    return lambda a, b, p: bits.either(p, least, most, a, b)


@instruction("VHMNMX", "u32", "h2 h2 h2 p", modifiers="FTZ NAN")
@instruction("VHMNMX.BF16_V2", "u32", "b2 b2 b2 p", modifiers="NAN")
def vhmnmx(form: Form) -> Quaternary:
    """d = p ? min(a, b, c) : max(a, b, c)"""
    least, most = (_packed(form, bits.of_three(f)) for f in minimum_and_maximum(form.has("NAN")))
    return lambda a, b, c, p: bits.either(p, least, most, a, b, c)
