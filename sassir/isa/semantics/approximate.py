"""MUFU, the table-driven functions: computed in double precision and rounded, which the hardware's result is close to.

How close, measured on an H200: bench/results, `semantics`, per function the histogram of differences in units of the last place.
Denormal operands and results are zero.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sassir.isa.semantics.bits import F32, F64, U32, U64, join, select
from sassir.isa.semantics.definition import Form, Unary, instruction
from sassir.isa.semantics.rounding import to_half
from sassir.isa.semantics.single import canonical, flush

_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "COS": lambda x: np.cos(_fraction(x) * (2 * np.pi)),
    "SIN": lambda x: np.sin(_fraction(x) * (2 * np.pi)),
    "EX2": np.exp2,
    "LG2": np.log2,
    "RCP": lambda x: 1 / x,
    "RSQ": lambda x: 1 / np.sqrt(x),
    "SQRT": np.sqrt,
    "TANH": np.tanh,
}


def _fraction(turns: Any) -> Any:
    """The angle without whole turns; infinity has none."""
    return turns - np.rint(turns)


@instruction("MUFU", "f32", "f32", modifiers=" ".join(_FUNCTIONS))
def mufu(form: Form) -> Unary:
    """d = f(a); the angle of .SIN and .COS is in turns"""
    function = form.choose(_FUNCTIONS)
    return lambda a: canonical(flush(function(flush(a).astype(F64)).astype(F32)))


@instruction("MUFU.F16", "u32", "h1", modifiers=" ".join(_FUNCTIONS))
def mufu_half(form: Form) -> Unary:
    """d = f(a) as a half, in the low 16 bits"""
    function = form.choose(_FUNCTIONS)
    return lambda a: to_half(function(a.astype(F64)))


_HIGH_WORDS: dict[str, Callable[[Any], Any]] = {"RCP64H": _FUNCTIONS["RCP"], "RSQ64H": _FUNCTIONS["RSQ"]}


@instruction("MUFU.RCP64H MUFU.RSQ64H", "u32", "u32")
def mufu_high(form: Form) -> Unary:
    """d = high word of f(a) for the double whose high word is a"""
    function = form.choose(_HIGH_WORDS)

    def evaluate(a: Any) -> Any:
        x = join(U32(0), a).view(F64)
        x = x * (np.abs(x) >= F64(2.0**-1022))
        result = function(x)
        result = result * (np.abs(result) >= F64(2.0**-1022))
        return select(result != result, U32(0x7FFFFFFF), ((result.view(U64) + U64(1 << 31)) >> 32).astype(U32))

    return evaluate
