"""LEA: a shifted number plus another, as for addresses."""

from __future__ import annotations

from typing import Any

from sassir.isa.semantics import bits
from sassir.isa.semantics.bits import U32, sign_extended, unsigned
from sassir.isa.semantics.definition import Binary, Form, Quaternary, Ternary, Unary, instruction
from sassir.isa.semantics.integer import with_carries
from sassir.isa.semantics.operands import PREFIXES


@instruction("LEA ULEA", "u32", "raw u32 imm")
def lea(form: Form) -> Binary:
    """d = (a << n) + b"""
    (n,) = form.immediates
    add = PREFIXES["u32", form.prefix(0)]
    return lambda a, b: add(a << n) + b


@instruction("LEA ULEA", "u32 p", "raw c32 imm")
def lea_carry(form: Form) -> Binary:
    """d = (a << n) + b, p = carry"""
    (n,) = form.immediates
    return _shifted_sum(form, lambda a: a << n)


@instruction("LEA.HI ULEA.HI", "u32 | u32 p", "raw c32 u32 imm")
def lea_high(form: Form) -> Ternary:
    """d = high word of (c:a << n) + b"""
    (n,) = form.immediates
    add = _shifted_sum(form, lambda pair: _high(pair, n))
    return lambda a, b, c: add(bits.join(a, c), b)


@instruction("LEA.HI.X ULEA.HI.X", "u32 | u32 p", "raw c32 u32 imm p")
def lea_high_extended(form: Form) -> Quaternary:
    """d = high word of (c:a << n) + b + carry r"""
    (n,) = form.immediates
    add = _shifted_sum(form, lambda pair: _high(pair, n))
    return lambda a, b, c, r: add(bits.join(a, c), b + r)


@instruction("LEA.HI.SX32 ULEA.HI.SX32", "u32 | u32 p", "raw c32 imm")
def lea_high_signed(form: Form) -> Binary:
    """d = high word of (a << n) + b, a sign-extended"""
    (n,) = form.immediates
    return _shifted_sum(form, lambda a: _high(unsigned(sign_extended(a)), n))


@instruction("LEA.HI.X.SX32 ULEA.HI.X.SX32", "u32 | u32 p", "raw c32 imm p")
def lea_high_extended_signed(form: Form) -> Ternary:
    """d = high word of (a << n) + b + carry r, a sign-extended"""
    (n,) = form.immediates
    add = _shifted_sum(form, lambda a: _high(unsigned(sign_extended(a)), n))
    return lambda a, b, r: add(a, b + r)


def _shifted_sum(form: Form, shift: Unary) -> Binary:
    """shift(a) + b with the carry. -a and ~a negate and complement the one word that is shifted out, never the pair before the
    shift: measured on an H200, bench/results, `semantics`.
    """
    prefix = PREFIXES["c32", form.prefix(0)]
    return lambda a, b: with_carries(prefix(shift(a)) + b, form)


def _high(pair: Any, n: int) -> Any:
    return (pair << n >> 32).astype(U32)
