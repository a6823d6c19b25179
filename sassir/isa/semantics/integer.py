"""Integer addition, multiplication, minimum and maximum."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sassir.isa.semantics import bits
from sassir.isa.semantics.bits import U32, U64, same, sign_extended, signed, unsigned
from sassir.isa.semantics.definition import Binary, Form, Quaternary, Quinary, Ternary, Unary, instruction


@instruction("IADD3 UIADD3", "u32", "u32 u32 u32")
def iadd3(form: Form) -> Ternary:
    """d = a + b + c"""
    return lambda a, b, c: a + b + c


@instruction("IADD3 UIADD3", "u32 p | u32 p p", "c32 c32 c32")
def iadd3_carry(form: Form) -> Ternary:
    """d = a + b + c; the carries p and q together are what is beyond 32 bits."""
    return lambda a, b, c: with_carries(a + b + c, form)


@instruction("IADD3.X UIADD3.X", "u32 | u32 p | u32 p p", "c32 c32 c32 p p")
def iadd3_extended(form: Form) -> Quinary:
    """d = a + b + c + the carries r and s of the low words"""
    return lambda a, b, c, r, s: with_carries(a + b + c + r + s, form)


def with_carries(total: Any, form: Form) -> Any:
    """The low word of a sum, and for the predicates that the form writes, whether one or two carries came out of it."""
    low, carries = total.astype(U32), total >> 32
    return (low, carries >= 1, carries >= 2)[: len(form.writes)] if len(form.writes) > 1 else low


@instruction("IADD", "u32", "u32 u32")
@instruction("IADD.64", "u64", "u64 u64")
@instruction("VIADD UVIADD", "u32", "u32 u32")
def add(form: Form) -> Binary:
    """d = a + b"""
    return lambda a, b: a + b


@instruction("IADD", "u32 p", "c32 c32")
def add_carry(form: Form) -> Binary:
    """d = a + b, p = carry"""
    return lambda a, b: with_carries(a + b, form)


@instruction("IADD.X", "u32 | u32 p", "c32 c32 p")
def add_extended(form: Form) -> Ternary:
    """d = a + b + carry r"""
    return lambda a, b, r: with_carries(a + b + r, form)


@instruction("IADD3.64 UIADD3.64", "u64", "u64 u64 u64")
def iadd3_64(form: Form) -> Ternary:
    """d = a + b + c"""
    return lambda a, b, c: a + b + c


@instruction("VIADD.16x2 UVIADD.16x2", "u32", "u32 u32")
def add_halves(form: Form) -> Binary:
    """d = a + b in both halves"""

    def evaluate(a: Any, b: Any) -> Any:
        return ((a & 0xFFFF) + (b & 0xFFFF) & 0xFFFF) | ((a & 0xFFFF0000) + (b & 0xFFFF0000))

    return evaluate


@instruction("IMAD UIMAD", "u32", "u32 u32 u32", modifiers="U32 MOV SHL IADD")
def imad(form: Form) -> Ternary:
    """d = a * b + c, low word"""
    return lambda a, b, c: a * b + c


@instruction("IMAD.X UIMAD.X", "u32", "u32 u32 u32 p", modifiers="U32")
def imad_extended(form: Form) -> Quaternary:
    """d = a * b + c + carry r, low word"""
    return lambda a, b, c, r: a * b + c + r


def _zero_extended(x: Any) -> Any:
    return x.astype(U64)


def _sign_extended(x: Any) -> Any:
    return unsigned(sign_extended(x))


def _widened(form: Form) -> Unary:
    return _zero_extended if form.has("U32") else _sign_extended


def _unsigned_only(form: Form) -> Unary:
    if not form.has("U32"):
        raise form.refusal("the carry of a signed product is not modelled")
    return _widened(form)


@instruction("IMAD.WIDE UIMAD.WIDE", "u64", "u32 u32 u64", modifiers="U32")
def imad_wide(form: Form) -> Ternary:
    """d = a * b + c, 64 bits"""
    widen = _widened(form)
    return lambda a, b, c: widen(a) * widen(b) + c


@instruction("IMAD.WIDE UIMAD.WIDE", "u64 p", "u32 u32 u64", modifiers="U32")
def imad_wide_carry(form: Form) -> Ternary:
    """d = a * b + c, p = carry out of 64 bits"""
    widen = _unsigned_only(form)

    def evaluate(a: Any, b: Any, c: Any) -> Any:
        total = widen(a) * widen(b) + c
        return total, total < c

    return evaluate


@instruction("IMAD.WIDE.X UIMAD.WIDE.X", "u64", "u32 u32 u64 p", modifiers="U32")
def imad_wide_extended(form: Form) -> Quaternary:
    """d = a * b + c + carry r, 64 bits"""
    widen = _widened(form)
    return lambda a, b, c, r: widen(a) * widen(b) + c + r


@instruction("IMAD.HI UIMAD.HI", "u32 | u32 p", "u32 u32 u64", modifiers="U32")
def imad_high(form: Form) -> Ternary:
    """d = high word of a * b + c, where c has 64 bits; p = carry out of 64 bits"""
    widen = _widened(form) if len(form.writes) == 1 else _unsigned_only(form)

    def evaluate(a: Any, b: Any, c: Any) -> Any:
        total = widen(a) * widen(b) + c
        high = (total >> 32).astype(U32)
        return (high, total < c) if len(form.writes) > 1 else high

    return evaluate


@instruction("IABS UIABS", "u32", "u32")
def iabs(form: Form) -> Unary:
    """d = |a|"""
    return lambda a: unsigned(np.abs(signed(a)))


_TYPES = "U32 S32 U16x2 S16x2 RELU"


def _minimum_and_maximum(form: Form) -> tuple[Binary, Binary]:
    """The functions of words, by default signed, or of both halves of words; .RELU: at least 0."""
    view, back = {
        "U32": (same, same),
        "S32": (signed, unsigned),
        "U16x2": (_halves, _from_halves),
        "S16x2": (_signed_halves, _from_halves),
    }[form.choose({t: t for t in _TYPES.split() if t != "RELU"}, "S32")]
    clamp = _not_negative if form.has("RELU") else same

    def apply(function: np.ufunc) -> Binary:
        return lambda a, b: back(clamp(function(view(a), view(b))))

    return apply(np.minimum), apply(np.maximum)


def _not_negative(x: Any) -> Any:
    return np.maximum(x, 0)


def _halves(x: Any) -> Any:
    return np.stack((x & 0xFFFF, x >> 16), -1).astype(np.uint16)


def _signed_halves(x: Any) -> Any:
    return _halves(x).view(np.int16)


def _from_halves(x: Any) -> Any:
    both = x.view(np.uint16).astype(U32)
    return bits.pack(both[..., 0], both[..., 1])


@instruction("IMNMX UIMNMX VIMNMX UVIMNMX", "u32", "u32 u32 p", modifiers=_TYPES)
def minimum_or_maximum(form: Form) -> Ternary:
    """d = p ? min(a, b) : max(a, b)"""
    least, most = _minimum_and_maximum(form)
    return lambda a, b, p: bits.either(p, least, most, a, b)


@instruction("IMNMX.U64", "p p u64", "u64 u64 p p")
def minimum_or_maximum_64(form: Form) -> Quaternary:
    """d = p ? min(a, b) : max(a, b); what the other three predicates are for is not known, and code of ptxas does not use them"""
    first, second, *_, last = [operand.text for operand in form.instruction.operands]
    if (first, second, last) != ("PT", "PT", "!PT"):
        raise form.refusal(f"expected the predicates PT, PT and !PT, found {first}, {second} and {last}")
    return lambda a, b, p, _: (True, True, bits.either(p, np.minimum, np.maximum, a, b))


@instruction("VIMNMX3", "u32", "u32 u32 u32 p", modifiers=_TYPES)
def minimum_or_maximum_of_three(form: Form) -> Quaternary:
    """d = p ? min(a, b, c) : max(a, b, c)"""
    least, most = _minimum_and_maximum(form)
    return lambda a, b, c, p: bits.either(p, bits.of_three(least), bits.of_three(most), a, b, c)


@instruction("VIADDMNMX", "u32", "u32 u32 u32 p", modifiers="U32 S32 RELU")
def add_minimum_or_maximum(form: Form) -> Quaternary:
    """d = p ? min(a + b, c) : max(a + b, c)"""
    least, most = _minimum_and_maximum(form)
    return lambda a, b, c, p: bits.either(p, least, most, a + b, c)


@instruction("VABSDIFF", "u32", "u32 u32 u32", modifiers="U32")
def absolute_difference(form: Form) -> Ternary:
    """d = |a - b| + c"""
    widen = _widened(form)
    return lambda a, b, c: np.abs(signed(widen(a) - widen(b))).astype(U32) + c


@instruction("VABSDIFF4", "u32", "u32 u32 u32", modifiers="U8 S8 ACC")
def absolute_difference_of_bytes(form: Form) -> Ternary:
    """d = |a - b| of four bytes, by default signed; .ACC: their sum + c"""
    widen = _byte(form.choose({"U8": False, "S8": True}, True))

    def differences(a: Any, b: Any) -> list[Any]:
        return [np.abs(widen(a, i) - widen(b, i)).astype(U32) for i in range(4)]

    if form.has("ACC"):
        return lambda a, b, c: sum(differences(a, b), c)
    raise form.refusal("only .ACC is modelled")


def _byte(is_signed: bool) -> Callable[[Any, int], Any]:
    """Byte i of a word as an int32."""
    if is_signed:
        return lambda x, i: signed(x << 24 - 8 * i) >> 24
    return lambda x, i: signed(x >> 8 * i & 0xFF)


@instruction("IDP.4A", "u32", "u32 u32 u32", modifiers="U8 S8")
def dot_product(form: Form) -> Ternary:
    """d = sum of the products of four bytes of a and b, + c"""
    kinds = [m for m in form.modifiers if m in ("U8", "S8")]
    if len(kinds) != 2:
        raise form.refusal("expected the types of both factors")
    left, right = (_byte(k == "S8") for k in kinds)
    return lambda a, b, c: sum((unsigned(left(a, i) * right(b, i)) for i in range(4)), c)
