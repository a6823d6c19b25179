"""What the 32 lanes of a warp do together. Arrays have the shape (warps, 32); results that are the same for a warp, (warps, 1)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sassir.isa.semantics.bits import F32, I64, U32, ZERO, select, signed, unsigned
from sassir.isa.semantics.definition import Binary, Form, Quaternary, instruction
from sassir.isa.semantics.single import canonical, minimum_and_maximum

LANES = np.arange(32, dtype=np.int64)
_BITS = U32(1) << LANES.astype(U32)


def ballot(flags: Any) -> Any:
    """The lanes where a flag holds, as bits; shape (warps, 1)."""
    return np.bitwise_or.reduce(select(flags, _BITS, ZERO), axis=-1, keepdims=True)


def _spread(x: Any, active: Any) -> Any:
    """An array for each lane."""
    return np.broadcast_to(x, active.shape)


@instruction("SHFL", "u32 | p u32", "u32 u32 u32", modifiers="IDX UP DOWN BFLY", warp=True)
def shfl(form: Form) -> Quaternary:
    """d = a of another lane, 0 if that one is not active; p = that lane lies in the segment, otherwise d = a.

    c holds the mask of the segments in bits 8-12 and the bound in bits 0-4 (PTX ISA, `shfl`).
    """
    target = form.choose(_TARGETS)

    def evaluate(active: Any, a: Any, b: Any, c: Any) -> Any:
        a, b, c = (_spread(x, active).astype(I64) for x in (a, b & 31, c))
        segment = c >> 8 & 31
        first, bound = LANES & segment, LANES & segment | c & 31 & ~segment
        lane = target(b, first, segment)
        inside = lane >= bound if form.has("UP") else lane <= bound
        source = select(inside, lane, LANES) & 31
        value = np.take_along_axis(select(active, a, I64(0)), source, -1).astype(U32)
        return value if len(form.writes) == 1 else (inside, value)

    return evaluate


_TARGETS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "IDX": lambda b, first, segment: first | b & ~segment,
    "UP": lambda b, first, segment: LANES - b,
    "DOWN": lambda b, first, segment: LANES + b,
    "BFLY": lambda b, first, segment: LANES ^ b,
}


@instruction("VOTE VOTEU", "p | u32 p", "p", modifiers="ALL ANY EQ", warp=True)
def vote(form: Form) -> Binary:
    """d = active lanes where q holds; p = it holds in all of them, any of them, or in all or none"""
    decide = form.choose(_DECISIONS)

    def evaluate(active: Any, q: Any) -> Any:
        lanes, all_lanes = ballot(active & q), ballot(active)
        p = decide(lanes, all_lanes)
        return p if len(form.writes) == 1 else (lanes, p)

    return evaluate


_DECISIONS: dict[str, Callable[[Any, Any], Any]] = {
    "ALL": lambda lanes, all_lanes: lanes == all_lanes,
    "ANY": lambda lanes, all_lanes: lanes != 0,
    "EQ": lambda lanes, all_lanes: (lanes == all_lanes) | (lanes == 0),
}


@instruction("MATCH.ANY", "u32", "u32", warp=True)
@instruction("MATCH.ANY.U64", "u32", "u64", warp=True)
def match_any(form: Form) -> Binary:
    """d = active lanes with the same a"""

    def evaluate(active: Any, a: Any) -> Any:
        a = _spread(a, active)
        same = (a[..., :, None] == a[..., None, :]) & active[..., None, :]
        return ballot(same)[..., 0]

    return evaluate


@instruction("MATCH.ALL", "p u32", "u32", warp=True)
@instruction("MATCH.ALL.U64", "p u32", "u64", warp=True)
def match_all(form: Form) -> Binary:
    """p = all active lanes have the same a; d = those lanes, else 0"""

    def evaluate(active: Any, a: Any) -> Any:
        p = ~np.any(active & (a != first_active(active, a)), axis=-1, keepdims=True)
        return p, select(p, ballot(active), ZERO)

    return evaluate


def first_active(active: Any, a: Any) -> Any:
    """a of the first active lane; shape (warps, 1)."""
    return np.take_along_axis(_spread(a, active), np.argmax(active, axis=-1)[..., None], -1)


@instruction("R2UR", "u32", "u32", warp=True)
def r2ur(form: Form) -> Binary:
    """d = a of the first active lane"""
    return first_active


@instruction("ELECT", "p u32", "p", warp=True)
def elect(form: Form) -> Binary:
    """p = this lane is the first active one where q holds; d = its number"""

    def evaluate(active: Any, q: Any) -> Any:
        lane = np.argmax(active & q, axis=-1)[..., None]
        return active & (lane == LANES), lane.astype(U32)

    return evaluate


@instruction("REDUX", "u32", "u32", modifiers="OR XOR SUM MIN MAX S32", warp=True)
def redux(form: Form) -> Binary:
    """d = sum, minimum, maximum or bits of a over the active lanes; by default all bits"""
    name = next((m for m in form.modifiers if m != "S32"), "AND")
    return _integer_reduction(name, form.has("S32"))


@instruction("CREDUX", "u32", "u32", modifiers="MIN MAX S32", warp=True)
def credux(form: Form) -> Binary:
    """d = minimum or maximum of a over the active lanes"""
    return _integer_reduction(form.choose({"MIN": "MIN", "MAX": "MAX"}), form.has("S32"))


@instruction("CREDUX.F32", "f32", "f32", modifiers="MIN MAX NAN", warp=True)
def credux_single(form: Form) -> Binary:
    """d = minimum or maximum of a over the active lanes"""
    least, most = minimum_and_maximum(form.has("NAN"))
    function = form.choose({"MIN": least, "MAX": most})

    def evaluate(active: Any, a: Any) -> Any:
        values = select(active, a, first_active(active, a))
        result = values[..., :1]
        for lane in range(1, 32):
            result = function(result, values[..., lane : lane + 1])
        return canonical(result.astype(F32))

    return evaluate


_REDUCTIONS: dict[str, tuple[np.ufunc, int]] = {
    "AND": (np.bitwise_and, 0xFFFFFFFF),
    "OR": (np.bitwise_or, 0),
    "XOR": (np.bitwise_xor, 0),
    "SUM": (np.add, 0),
    "MIN": (np.minimum, 0xFFFFFFFF),
    "MAX": (np.maximum, 0),
}
"""Function and neutral element."""
_SIGNED = {"MIN": 0x7FFFFFFF, "MAX": 0x80000000}


def _integer_reduction(name: str, is_signed: bool) -> Binary:
    function, neutral = _REDUCTIONS[name]
    if is_signed and name in _SIGNED:
        neutral = _SIGNED[name]
        return lambda active, a: unsigned(function.reduce(signed(select(active, _spread(a, active), U32(neutral))), axis=-1, keepdims=True))
    return lambda active, a: function.reduce(select(active, _spread(a, active), U32(neutral)), axis=-1, keepdims=True, dtype=U32)


@instruction("MOVM.16.MT88", "u32", "u32", warp=True)
def movm(form: Form) -> Binary:
    """d = a transposed: an 8 × 8 matrix of 16-bit elements, row l / 4 and columns 2 (l % 4), + 1 in lane l"""

    def evaluate(active: Any, a: Any) -> Any:
        elements = np.stack((_spread(a, active) & 0xFFFF, _spread(a, active) >> 16), -1).reshape(*active.shape[:-1], 8, 8)
        turned = np.swapaxes(elements, -1, -2).reshape(*active.shape, 2)
        return turned[..., 0] | turned[..., 1] << 16

    return evaluate
