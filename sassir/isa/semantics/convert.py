"""Conversions between floating-point formats and integers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sassir.isa.semantics import bits, half
from sassir.isa.semantics.bits import F64, I32, I64, U32, U64, as_double, same, select, signed
from sassir.isa.semantics.definition import Binary, Form, Ternary, Unary, instruction
from sassir.isa.semantics.double import fused
from sassir.isa.semantics.rounding import bfloat_towards, half_towards, narrow, sum_to_odd, to_bfloat, to_half
from sassir.isa.semantics.single import canonical, flush, relu

_DIRECTIONS = "RM RP RZ"
_INTEGRAL: dict[str, Callable[[Any], Any]] = {"FLOOR": np.floor, "CEIL": np.ceil, "TRUNC": np.trunc}
_RANGES = {
    "U8": (0, 2**8 - 1),
    "S8": (-(2**7), 2**7 - 1),
    "U16": (0, 2**16 - 1),
    "S16": (-(2**15), 2**15 - 1),
    "U32": (0, 2**32 - 1),
    "S32": (-(2**31), 2**31 - 1),
    "U64": (0, 2**64 - 1),
    "S64": (-(2**63), 2**63 - 1),
}


@instruction("F2F.F64.F32", "f64", "n32", modifiers="FTZ")
def double_from_single(form: Form) -> Unary:
    """d = a as a double"""
    argument = flush if form.has("FTZ") else same
    return lambda a: as_double(argument(a))


@instruction("F2F.F32.F64", "f32", "f64", modifiers=f"FTZ {_DIRECTIONS}")
def single_from_double(form: Form) -> Unary:
    """d = a as a single; of a NaN sign and leading bits are kept"""
    rounding, finish = form.rounding, flush if form.has("FTZ") else same
    return lambda a: finish(narrow(a, rounding))


@instruction("F2F.F16.F32", "u32", "f32", modifiers=f"FTZ {_DIRECTIONS}")
def half_from_single(form: Form) -> Unary:
    """d = a as a half, in the low 16 bits; with .FTZ zero where it is below the smallest normal half before rounding"""
    rounding, argument = form.rounding, half.flush if form.has("FTZ") else same
    return lambda a: half_towards(argument(a), rounding)


@instruction("F2F.F32.F16", "f32", "h1")
def single_from_half(form: Form) -> Unary:
    """d = a as a single"""
    return canonical


@instruction("F2F.BF16.F32", "u32", "f32")
def bfloat_from_single(form: Form) -> Unary:
    """d = a as a bfloat16, in the low 16 bits"""
    return to_bfloat


@instruction("F2FP.PACK_AB F2FP.F16.F32.PACK_AB UF2FP.F16.F32.PACK_AB", "u32", "f32 f32", modifiers="RZ RELU")
@instruction("F2FP.BF16.PACK_AB F2FP.BF16.F32.PACK_AB UF2FP.BF16.F32.PACK_AB", "u32", "f32 f32", modifiers="RZ RELU")
def f2fp(form: Form) -> Binary:
    """d = a in the high half, b in the low half, as halves or bfloat16"""
    store = bfloat_towards if form.has("BF16") else half_towards
    rounding, limit = form.rounding, relu if form.has("RELU") else same

    def convert(x: Any) -> Any:
        return store(limit(x), rounding)

    return lambda a, b: bits.pack(convert(b), convert(a))


@instruction("FRND UFRND", "f32", "f32", modifiers="FTZ FLOOR CEIL TRUNC")
def frnd(form: Form) -> Unary:
    """d = a rounded to an integral value"""
    integral = form.choose(_INTEGRAL, np.rint)
    if form.has("FTZ"):
        return lambda a: canonical(integral(flush(a)))
    return lambda a: canonical(integral(a))


@instruction("FRND.F64", "f64", "f64", modifiers="FLOOR CEIL TRUNC")
def frnd_double(form: Form) -> Unary:
    """d = a rounded to an integral value"""
    return form.choose(_INTEGRAL, np.rint)


@instruction("FRND.F16", "u32", "h1", modifiers="FLOOR CEIL TRUNC")
def frnd_half(form: Form) -> Unary:
    """d = a rounded to an integral value, in the low 16 bits"""
    integral = form.choose(_INTEGRAL, np.rint)
    return lambda a: to_half(integral(a))


_TO_INTEGER = "FTZ NTZ FLOOR CEIL TRUNC"


@instruction("F2I UF2I", "u32", "f32", modifiers=f"{_TO_INTEGER} U8 S8 U16 S16 U32")
@instruction("F2I.F64", "u32", "f64", modifiers=f"{_TO_INTEGER} U8 S8 U16 S16 U32")
@instruction("F2I.F16", "u32", "h1", modifiers=f"{_TO_INTEGER} U8 S8 U16 S16 U32")
@instruction("F2I.U64 F2I.S64", "u64", "f32", modifiers=_TO_INTEGER)
@instruction("F2I.U64.F64 F2I.S64.F64", "u64", "f64", modifiers=_TO_INTEGER)
def f2i(form: Form) -> Unary:
    """d = a as an integer, clamped to its range; NaN becomes 0 with .NTZ, else only the highest bit of its width is set"""
    kind = form.choose({k: k for k in _RANGES}, "S32")
    integral = form.choose(_INTEGRAL, np.rint)
    to_bits = U64 if kind in ("U64", "S64") else U32
    nan = to_bits(0 if form.has("NTZ") else 1 << int(kind[1:]) - 1)
    argument = flush if form.has("FTZ") else same

    def evaluate(a: Any) -> Any:
        whole = integral(as_double(argument(a)))
        return select(whole != whole, nan, _clamped(whole, kind).astype(to_bits))

    return evaluate


def _clamped(whole: Any, kind: str) -> Any:
    """Integral doubles as int64, or uint64 for U64, within the range of `kind`."""
    low, high = _RANGES[kind]
    inside = np.clip(whole, low, np.nextafter(F64(high), 0) if kind in ("U64", "S64") else high)
    large = whole >= F64(high)
    if kind == "U64":
        return select(large, U64(high), inside.astype(U64))
    return select(large, I64(high), inside.astype(I64))


@instruction("F2IP.U8.F32 F2IP.S8.F32", "u32", "f32 f32 u32", modifiers="NTZ TRUNC")
def f2ip(form: Form) -> Ternary:
    """d = a and b as bytes, in front of the low half of c"""
    kind = form.choose({"U8": "U8", "S8": "S8"})
    integral = form.choose(_INTEGRAL, np.rint)
    if not form.has("NTZ"):
        raise form.refusal("without .NTZ it is not modelled")

    def convert(x: Any) -> Any:
        whole = integral(as_double(x))
        return select(whole != whole, U32(0), _clamped(whole, kind).astype(U32) & 0xFF)

    return lambda a, b, c: c << 16 | convert(a) << 8 | convert(b)


@instruction("I2I.SAT", "u32", "u32", modifiers="U8 S8 U16 S16 S32")
def i2i(form: Form) -> Unary:
    """d = a clamped to fewer bits"""
    low, high = _RANGES[form.modifiers[0]]
    return lambda a: np.clip(signed(a), low, high).view(U32)


@instruction("I2IP.U8.S32.SAT I2IP.S8.S32.SAT", "u32", "u32 u32 u32")
def i2ip(form: Form) -> Ternary:
    """d = a and b clamped to bytes, in front of the low half of c"""
    low, high = _RANGES[form.modifiers[0]]

    def convert(x: Any) -> Any:
        return np.clip(signed(x), low, high).view(U32) & 0xFF

    return lambda a, b, c: c << 16 | convert(a) << 8 | convert(b)


_FROM = "U8 S8 U16 S16 U32 S32"
_NARROW = {"U8": (U32, 24), "S8": (I32, 24), "U16": (U32, 16), "S16": (I32, 16), "U32": (U32, 0), "S32": (I32, 0)}


def _double(form: Form) -> Callable[[Any], Any]:
    """The integer in a word as a double, which is exact."""
    kind, unused = form.choose({k: _NARROW[k] for k in _FROM.split()}, (I32, 0))
    if unused:
        return lambda a: ((a << unused).view(kind) >> unused).astype(F64)
    return lambda a: a.view(kind).astype(F64)


@instruction("I2F UI2F", "f32", "bytes", modifiers=f"{_FROM} {_DIRECTIONS}")
@instruction("I2FP.F32 UI2FP.F32", "f32", "u32", modifiers="U32 S32 RZ")
def single_from_integer(form: Form) -> Unary:
    """d = a as a single"""
    double, rounding = _double(form), form.rounding
    return lambda a: narrow(double(a), rounding)


@instruction("I2F.F64", "f64", "bytes", modifiers=f"{_FROM} {_DIRECTIONS}")
def double_from_integer(form: Form) -> Unary:
    """d = a as a double"""
    return _double(form)


@instruction("I2F.F16", "u32", "bytes", modifiers=f"{_FROM} {_DIRECTIONS}")
def half_from_integer(form: Form) -> Unary:
    """d = a as a half, in the low 16 bits"""
    double, rounding = _double(form), form.rounding
    return lambda a: half_towards(double(a), rounding)


def _two_doubles(form: Form) -> Callable[[Any], tuple[Any, Any]]:
    """A 64-bit integer as the sum of two doubles."""
    kind = form.choose({"U64": U64, "S64": I64})
    return lambda a: ((a.view(kind) >> 32).astype(F64) * F64(2.0**32), (a & 0xFFFFFFFF).astype(F64))


@instruction("I2F.U64 I2F.S64", "f32", "u64", modifiers=_DIRECTIONS)
def single_from_long(form: Form) -> Unary:
    """d = a as a single"""
    doubles, rounding = _two_doubles(form), form.rounding
    return lambda a: narrow(sum_to_odd(*doubles(a)), rounding)


@instruction("I2F.F64.U64 I2F.F64.S64", "f64", "u64", modifiers=_DIRECTIONS)
def double_from_long(form: Form) -> Unary:
    """d = a as a double"""
    doubles, rounding = _two_doubles(form), form.rounding

    def evaluate(a: Any) -> Any:
        high, low = doubles(a)
        return fused(high, F64(1), low, rounding)

    return evaluate
