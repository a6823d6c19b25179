"""Matrix products of a warp: which element lies in which lane and register. The arithmetic is in `dot`.

Fragments: PTX ISA, "Matrix fragments for mma". Lane l has group l / 4 and place l % 4; elements share a register along k.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sassir.isa.semantics.bits import F16, F32, F64, I32, I64, U32, U64, join, split
from sassir.isa.semantics.definition import Form, Quaternary, instruction
from sassir.isa.semantics.dot import FORMATS, dot
from sassir.isa.semantics.double import fused, with_nan
from sassir.isa.semantics.rounding import to_half

_SHAPES = {"884": (8, 8, 4), "8816": (8, 8, 16), "8832": (8, 8, 32), "1684": (16, 8, 4), "1688": (16, 8, 8)} | {
    f"168{k}": (16, 8, k) for k in (16, 32, 64)
}
_DOUBLE_SHAPES = {"884": (8, 8, 4), "8x8x4": (8, 8, 4), "16x8x4": (16, 8, 4), "16x8x8": (16, 8, 8), "16x8x16": (16, 8, 16)}
"""m, n, k"""
Places = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Row and column of each element, of the shape (elements of a lane, lanes)."""
Product = Callable[[Any, Any, Any], Any]
"""a (m, k, warps) times b (k, n, warps) plus c (m, n, warps)."""
_TOGETHER = 512
"""Warps that are multiplied at a time: few enough that intermediate results stay in the processor's cache."""


@cache
def left_places(m: int, k: int, each: int) -> Places:
    """Where the elements of a (m × k) lie, `each` of them to a register."""
    element, lane = _grid(m * k // 32)
    register, inner = element // each, element % each
    down, along = (register % 2, register // 2) if m == 16 else (0, register)
    return lane // 4 + down * 8, lane % 4 * each + inner + along * 4 * each


@cache
def right_places(k: int, each: int) -> Places:
    """Where the elements of b (k × 8) lie, `each` of them to a register."""
    element, lane = _grid(8 * k // 32)
    return lane % 4 * each + element % each + element // each * 4 * each, lane // 4


@cache
def result_places(m: int) -> Places:
    """Where the elements of c and d (m × 8) lie."""
    element, lane = _grid(m * 8 // 32)
    return lane // 4 + element // 2 * 8, lane % 4 * 2 + element % 2


def _grid(count: int) -> Places:
    element, lane = np.mgrid[0:count, 0:32]
    return element, lane


def gather(elements: Any, places: Places, rows: int, columns: int) -> Any:
    """The matrices (rows, columns, warps) from the elements (elements of a lane, lanes, warps)."""
    matrix = np.empty((rows, columns, elements.shape[-1]), elements.dtype)
    matrix[places] = elements
    return matrix


def registers(words: tuple[Any, ...], active: Any) -> Any:
    """The registers of a fragment, (registers, lanes, warps): the warps last, so that numpy's loops run over them."""
    return np.stack([np.broadcast_to(word, active.shape).T for word in words])


def elements(words: Any, kind: str, width: int) -> Any:
    """The elements of `width` bits in registers: singles, or int32 where `kind` is `S8`, `U4`, …"""
    if width == 32:
        return words.view(F32)
    parts = np.stack([words >> width * i for i in range(32 // width)], 1).reshape(-1, *words.shape[1:])
    if kind == "F16":
        return parts.astype(np.uint16).view(F16).astype(F32)
    if kind == "BF16":
        return (parts << 16).view(F32)
    unused = 32 - width
    return ((parts << unused).view(I32 if kind[0] == "S" else U32) >> unused).view(I32)


def _words(array: Any) -> tuple[Any, ...]:
    """The registers, each (warps, lanes), of a fragment (registers, lanes, warps)."""
    return tuple([np.ascontiguousarray(each.T) for each in array])


def _multiplier(form: Form, kinds: tuple[str, ...], width: int) -> Callable[[Product, Any, Any, Any], Any]:
    """The way from the registers of a and b and the elements of c, by a product of matrices, to the elements of d."""
    m, n, k = form.choose(_SHAPES)
    each = 32 // width

    def multiply(product: Product, a: Any, b: Any, start: Any) -> Any:
        left = gather(elements(a, kinds[0], width), left_places(m, k, each), m, k)
        right = gather(elements(b, kinds[1], width), right_places(k, each), k, n)
        total = gather(start, result_places(m), m, n)
        for first in range(0, total.shape[-1], _TOGETHER):
            some = np.s_[..., first : first + _TOGETHER]
            total[some] = product(left[some], right[some], total[some])
        return total[result_places(m)]

    return multiply


@instruction("HMMA", "fragment", "fragment fragment fragment", modifiers="1684 1688 16816 F16 F32 BF16 TF32", warp=True)
def hmma(form: Form) -> Quaternary:
    """d = a * b + c in half precision, bfloat16 or tf32; accumulated in single or half precision"""
    kind, wide = form.choose({"BF16": "BF16", "TF32": "TF32"}, "F16"), form.has("F32")
    multiply = _multiplier(form, (kind, kind), FORMATS[kind].width)

    def evaluate(active: Any, a: Any, b: Any, c: Any) -> Any:
        start = elements(registers(c, active), "F16", 32 if wide else 16)
        total = multiply(lambda x, y, z: dot(x, y, z, kind, wide, form.arch), registers(a, active), registers(b, active), start)
        if wide:
            return _words(total.view(U32))
        halves = to_half(total)
        return _words(halves[::2] | halves[1::2] << 16)

    return evaluate


@instruction("IMMA", "fragment", "fragment fragment fragment", modifiers="8816 8832 16816 16832 16864 U8 S8 U4 S4 SAT", warp=True)
def imma(form: Form) -> Quaternary:
    """d = a * b + c of integers, modulo 2^32 or with .SAT clamped"""
    kinds = tuple([m for m in form.modifiers if m in ("U8", "S8", "U4", "S4")])
    if len(kinds) != 2 or kinds[0][1] != kinds[1][1]:
        raise form.refusal("expected two types of equal width")
    multiply = _multiplier(form, kinds, int(kinds[0][1]))

    def evaluate(active: Any, a: Any, b: Any, c: Any) -> Any:
        start = registers(c, active).view(I32).astype(I64)
        total = multiply(_integer_dot, registers(a, active), registers(b, active), start)
        if form.has("SAT"):
            total = np.clip(total, -(2**31), 2**31 - 1)
        return _words(total.astype(U32))

    return evaluate


def _integer_dot(a: Any, b: Any, c: Any) -> Any:
    """a * b + c of integers; at most 64 products below 2^16, so that their sum fits into an int32."""
    return c + sum(a[:, i, None] * b[None, i] for i in range(len(b)))


@instruction("DMMA", "fragment", "fragment fragment fragment", modifiers=f"RM RP RZ {' '.join(_DOUBLE_SHAPES)}", warp=True)
def dmma(form: Form) -> Quaternary:
    """d = a * b + c in double precision: one fused multiply-add after the other along k"""
    m, n, k = form.choose(_DOUBLE_SHAPES)
    places, rounding = result_places(m), form.rounding

    def doubles(words: Any, active: Any) -> Any:
        each = registers(words, active)
        return join(each[::2], each[1::2]).view(F64)

    def evaluate(active: Any, a: Any, b: Any, c: Any) -> Any:
        left = gather(doubles(a, active), left_places(m, k, 1), m, k)
        right = gather(doubles(b, active), right_places(k, 1), k, n)
        total = gather(doubles(c, active), places, m, n)
        for i in range(k):
            x, y = np.broadcast_arrays(left[:, i, None], right[None, i])
            total = with_nan(fused(x, y, total, rounding), y, total, x)
        return tuple([word for pair in _words(total[places].view(U64)) for word in split(pair)])

    return evaluate
