"""Bits: logic of three operands, shifts, fields, counts, permutations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from sassir.isa.semantics import bits
from sassir.isa.semantics.bits import I32, ONES, U32, U64, select, signed, unsigned
from sassir.isa.semantics.definition import Binary, Form, Quaternary, Ternary, Unary, instruction

_NAMED: dict[int, Callable[[Any, Any, Any], Any]] = {
    0x00: lambda a, b, c: a & ~a,
    0x0F: lambda a, b, c: ~a,
    0x33: lambda a, b, c: ~b,
    0x3C: lambda a, b, c: a ^ b,
    0x30: lambda a, b, c: a & ~b,
    0x96: lambda a, b, c: a ^ b ^ c,
    0xC0: lambda a, b, c: a & b,
    0xF8: lambda a, b, c: a | b & c,
    0xFC: lambda a, b, c: a | b,
    0xFE: lambda a, b, c: a | b | c,
}
"""The tables that real code uses most, in fewer steps than the general way."""


def lookup(table: int) -> Callable[[Any, Any, Any], Any]:
    """The bitwise function of three operands whose value for the bits a, b, c is bit 4a + 2b + c of `table`."""
    if table in _NAMED:
        return _NAMED[table]
    if table & 1:
        complement = lookup(~table & 0xFF)
        return lambda a, b, c: ~complement(a, b, c)
    minterms = [i for i in range(8) if table >> i & 1]

    def evaluate(a: Any, b: Any, c: Any) -> Any:
        result = a & ~a
        for i in minterms:
            result = result | (a if i & 4 else ~a) & (b if i & 2 else ~b) & (c if i & 1 else ~c)
        return result

    return evaluate


@instruction("LOP3.LUT ULOP3.LUT", "u32 | p u32", "u32 u32 u32 imm p", modifiers="PAND")
def lop3(form: Form) -> Quaternary:
    """d = any function of the bits of a, b, c; p = d is not 0, or r; with .PAND: and r"""
    function = lookup(form.immediates[0])
    if len(form.writes) == 1:
        return lambda a, b, c, r: function(a, b, c)

    def evaluate(a: Any, b: Any, c: Any, r: Any) -> Any:
        d = function(a, b, c)
        return (d != 0) & r if form.has("PAND") else (d != 0) | r, d

    return evaluate


@instruction("PLOP3.LUT UPLOP3.LUT", "p p", "p p p imm imm")
def plop3(form: Form) -> Ternary:
    """p, q = any two functions of three predicates"""
    first, second = (lookup(table) for table in form.immediates)
    return lambda a, b, c: (first(a, b, c), second(a, b, c))


@instruction("SHF USHF", "u32", "u32 u32 u32", modifiers="L R W U32 S32 U64 S64 HI")
def shf(form: Form) -> Ternary:
    """d = low word, or with .HI high word, of the pair c:a shifted by b; b is clamped to the width, with .W taken modulo it"""
    left, high = form.choose({"L": True, "R": False}), form.has("HI")
    width, is_signed = form.choose({"U32": (32, False), "S32": (32, True), "U64": (64, False), "S64": (64, True)})
    count = _modulo(width) if form.has("W") else _at_most(width)
    shift = _left if left else _right_signed if is_signed else _right
    if left and not high:
        return lambda a, b, c: shift(a, count(b))
    if high and not left:
        return lambda a, b, c: shift(c, count(b))

    def evaluate(a: Any, b: Any, c: Any) -> Any:
        pair = shift(bits.join(a, c), count(b).astype(U64))
        return (pair >> 32).astype(U32) if high else pair.astype(U32)

    return evaluate


def _modulo(width: int) -> Unary:
    return lambda n: n & width - 1


def _at_most(width: int) -> Unary:
    return lambda n: np.minimum(n, U32(width))


def _left(x: Any, n: Any) -> Any:
    return x << n  # numpy, unlike C, shifts all bits out when n is the width


def _right(x: Any, n: Any) -> Any:
    return x >> n


def _right_signed(x: Any, n: Any) -> Any:
    return unsigned(signed(x) >> signed(n))


@instruction("BMSK UBMSK", "u32", "u32 u32", modifiers="W")
def bmsk(form: Form) -> Binary:
    """d = b ones from bit a on; clamped to 32, with .W taken modulo 32"""
    limit = _modulo(32) if form.has("W") else _at_most(32)

    def evaluate(a: Any, b: Any) -> Any:
        ones = (U64(1) << limit(b).astype(U64)) - U64(1)
        return (ones << limit(a).astype(U64)).astype(U32)

    return evaluate


@instruction("SGXT USGXT", "u32", "u32 u32", modifiers="W U32")
def sgxt(form: Form) -> Binary:
    """d = the low b bits of a, sign-extended, or with .U32 zero-extended; .W takes b modulo 32"""
    limit = _modulo(32) if form.has("W") else _at_most(32)
    shift = _right if form.has("U32") else _right_signed

    def evaluate(a: Any, b: Any) -> Any:
        unused = U64(64) - limit(b)
        return shift(a.astype(U64) << unused, unused).astype(U32)

    return evaluate


@instruction("FLO UFLO", "u32", "u32", modifiers="U32 SH")
def flo(form: Form) -> Unary:
    """d = place of the leading one, or for a signed a of the bit that differs from its sign; all ones if there is none.

    .SH counts from the top: how far to shift left.
    """
    is_signed = not form.has("U32")

    def evaluate(a: Any) -> Any:
        x = a ^ unsigned(signed(a) >> 31) if is_signed else a
        place = _leading_one(x)
        return select(x == 0, ONES, 31 - place if form.has("SH") else place)

    return evaluate


def _leading_one(x: Any) -> Any:
    """The place of the leading one; of 0, anything."""
    return (np.frexp(x.astype(np.float64))[1] - 1).astype(I32).view(U32)


@instruction("POPC UPOPC", "u32", "u32")
def popc(form: Form) -> Unary:
    """d = number of ones"""
    return lambda a: np.bitwise_count(a).astype(U32)


@instruction("BREV UBREV", "u32", "u32")
def brev(form: Form) -> Unary:
    """d = a with its bits reversed"""

    def evaluate(a: Any) -> Any:
        for n, low in ((1, 0x55555555), (2, 0x33333333), (4, 0x0F0F0F0F), (8, 0x00FF00FF)):
            a = (a & low) << n | a >> n & low
        return a << 16 | a >> 16

    return evaluate


_MODES = {
    "F4E": (0x3210, 0x4321, 0x5432, 0x6543),
    "B4E": (0x5670, 0x6701, 0x7012, 0x0123),
    "RC8": (0x0000, 0x1111, 0x2222, 0x3333),
    "ECL": (0x3210, 0x3211, 0x3222, 0x3333),
    "ECR": (0x0000, 0x1110, 0x2210, 0x3210),
    "RC16": (0x1010, 0x3232, 0x1010, 0x3232),
}
"""The nibbles that a special mode stands for, by the low two bits of b (PTX ISA, `prmt`)."""


@instruction("PRMT UPRMT", "u32", "u32 u32 u32", modifiers=" ".join(_MODES))
def prmt(form: Form) -> Ternary:
    """d = four bytes of the eight in c:a, chosen by the nibbles of b; bit 3 of a nibble repeats the byte's sign instead"""
    mode = next((_MODES[m] for m in form.modifiers), None)
    if mode is None:
        return _permute
    nibbles = np.array(mode, U32)
    return lambda a, b, c: _permute(a, nibbles[b & 3], c)


def _permute(a: Any, b: Any, c: Any) -> Any:
    if np.ndim(b) == 0:
        chosen = [int(b) >> 4 * i & 15 for i in range(4)]
        return _four([(c if n & 4 else a) >> 8 * (n & 3) & 0xFF for n in chosen], [np.bool_(n & 8) for n in chosen])
    pair = bits.join(a, c)
    chosen = [b >> 4 * i for i in range(4)]
    return _four([(pair >> ((n & 7) << 3)).astype(U32) & 0xFF for n in chosen], [(n & 8) != 0 for n in chosen])


def _four(values: Sequence[Any], signs: Sequence[Any]) -> Any:
    """A word of four bytes, where `signs` holds of their signs."""
    parts = [select(sign, (x >> 7) * U32(0xFF), x) << 8 * i for i, (x, sign) in enumerate(zip(values, signs, strict=True))]
    return parts[0] | parts[1] | parts[2] | parts[3]
