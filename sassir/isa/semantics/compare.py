"""Comparisons into predicates, and into masks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sassir.isa.semantics import bits
from sassir.isa.semantics.bits import U32, ZERO, same, select, signed
from sassir.isa.semantics.definition import Form, Quaternary, Ternary, instruction
from sassir.isa.semantics.single import flush

Compare = Callable[[Any, Any], Any]

_FALSE: Compare = lambda a, b: np.zeros(np.broadcast(a, b).shape, np.bool_)  # noqa: E731
_ORDERED: dict[str, Compare] = {
    "LT": np.less,
    "EQ": np.equal,
    "LE": np.less_equal,
    "GT": np.greater,
    "NE": lambda a, b: (a < b) | (a > b),
    "GE": np.greater_equal,
}
INTEGER: dict[str, Compare] = {**_ORDERED, "NE": np.not_equal, "F": _FALSE, "T": lambda a, b: ~_FALSE(a, b)}
FLOAT: dict[str, Compare] = {
    **_ORDERED,
    "NUM": lambda a, b: (a == a) & (b == b),
    "NAN": lambda a, b: (a != a) | (b != b),
    "LTU": lambda a, b: ~(a >= b),
    "EQU": lambda a, b: ~_ORDERED["NE"](a, b),
    "LEU": lambda a, b: ~(a > b),
    "GTU": lambda a, b: ~(a <= b),
    "NEU": np.not_equal,
    "GEU": lambda a, b: ~(a < b),
    "F": _FALSE,
    "T": lambda a, b: ~_FALSE(a, b),
}
"""With U: true where one is NaN."""
COMBINE: dict[str, Compare] = {"AND": np.logical_and, "OR": np.logical_or, "XOR": np.logical_xor}

_COMBINES = " ".join(COMBINE)
_INTEGERS = f"U32 U64 S64 {_COMBINES} {' '.join(INTEGER)}"
_FLOATS = f"FTZ {_COMBINES} {' '.join(FLOAT)}"


def _both(form: Form) -> Callable[[Any, Any], Any]:
    """The two predicates from the comparison and the third operand; the second one has the opposite comparison."""
    combine = form.choose(COMBINE)
    return lambda found, r: (combine(found, r), combine(~found, r))


@instruction("ISETP UISETP", "p p", "u32 u32 p", modifiers=_INTEGERS)
@instruction("ISETP.U64 ISETP.S64 UISETP.U64 UISETP.S64", "p p", "u64 u64 p", modifiers=_INTEGERS)
def isetp(form: Form) -> Ternary:
    """p, q = (a cmp b) op r, not (a cmp b) op r"""
    compare, both = form.choose(INTEGER), _both(form)
    if form.has("U32", "U64") or form.has("EQ", "NE"):
        return lambda a, b, r: both(compare(a, b), r)
    return lambda a, b, r: both(compare(signed(a), signed(b)), r)


@instruction("ISETP.EX UISETP.EX", "p p", "u32 u32 p p", modifiers=_INTEGERS)
def isetp_extended(form: Form) -> Quaternary:
    """The comparison of 64-bit numbers: of their high words, or where these are equal the comparison s of their low words"""
    compare, both = form.choose(INTEGER), _both(form)
    if form.has("F", "T"):
        return lambda a, b, r, s: both(compare(a, b), r)
    view = same if form.has("U32") else signed
    return lambda a, b, r, s: both(select(a == b, s, compare(view(a), view(b))), r)


@instruction("FSETP UFSETP", "p p", "f32 f32 p", modifiers=_FLOATS)
def fsetp(form: Form) -> Ternary:
    """p, q = (a cmp b) op r, not (a cmp b) op r"""
    compare, both = form.choose(FLOAT), _both(form)
    if form.has("FTZ"):
        return lambda a, b, r: both(compare(flush(a), flush(b)), r)
    return lambda a, b, r: both(compare(a, b), r)


@instruction("DSETP", "p p", "f64 f64 p", modifiers=_FLOATS)
def dsetp(form: Form) -> Ternary:
    """p, q = (a cmp b) op r, not (a cmp b) op r"""
    compare, both = form.choose(FLOAT), _both(form)
    return lambda a, b, r: both(compare(a, b), r)


@instruction("FSET.BF", "u32", "f32 f32 p", modifiers=_FLOATS)
def fset(form: Form) -> Ternary:
    """d = 1.0 where (a cmp b) op r, else 0"""
    compare, combine = form.choose(FLOAT), form.choose(COMBINE)
    view = flush if form.has("FTZ") else same
    return lambda a, b, r: select(combine(compare(view(a), view(b)), r), U32(0x3F800000), ZERO)


@instruction("HSETP2", "p p", "h2 h2 p", modifiers=f"H_AND {_FLOATS}")
@instruction("HSETP2.BF16_V2", "p p", "b2 b2 p", modifiers=f"H_AND {_FLOATS}")
def hsetp2(form: Form) -> Ternary:
    """p, q = (a cmp b) op r of the low, the high half; with .H_AND of both halves, and the opposite"""
    compare, combine = form.choose(FLOAT), form.choose(COMBINE)
    view = _half_view(form)

    def evaluate(a: Any, b: Any, r: Any) -> Any:
        low, high = (compare(view(x), view(y)) for x, y in zip(a, b, strict=True))
        if form.has("H_AND"):
            return combine(low & high, r), combine(~(low & high), r)
        return combine(low, r), combine(high, r)

    return evaluate


@instruction("HSET2", "u32", "h2 h2 p", modifiers=f"BF {_FLOATS}")
@instruction("HSET2.BF16_V2", "u32", "b2 b2 p", modifiers=f"BF {_FLOATS}")
def hset2(form: Form) -> Ternary:
    """d = (a cmp b) op r of both halves, as masks or with .BF as 1.0"""
    compare, combine = form.choose(FLOAT), form.choose(COMBINE)
    view = _half_view(form)
    one = U32(0xFFFF if not form.has("BF") else 0x3F80 if form.has("BF16_V2") else 0x3C00)

    def evaluate(a: Any, b: Any, r: Any) -> Any:
        low, high = (one * combine(compare(view(x), view(y)), r) for x, y in zip(a, b, strict=True))
        return bits.pack(low, high)

    return evaluate


def _half_view(form: Form) -> Callable[[Any], Any]:
    """With .FTZ, halves below 2^-14 are zero."""
    if not form.has("FTZ"):
        return lambda x: x
    return lambda x: x * (np.abs(x) >= np.float32(2**-14))
