"""MUFU, the table-driven functions: computed in double precision and rounded, which the hardware's result is close to.

Denormal operands and results are zero, but for TANH. How close it is was measured on an H200: docs/semantics.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from sassir.asm.instruction import Instruction
from sassir.isa.semantics.bits import F32, F64, U32, U64, join, same, select
from sassir.isa.semantics.definition import Form, Unary, instruction
from sassir.isa.semantics.rounding import to_half
from sassir.isa.semantics.single import canonical, flush


class Deviation(NamedTuple):
    """How far the hardware's result may be from ours: by so many places in the row of all numbers of its format, or by `absolute`."""

    places: int
    absolute: float = 0.0


_DEVIATIONS = {
    "RCP": Deviation(1),
    "RCP64H": Deviation(1),
    "RSQ": Deviation(1),
    "RSQ64H": Deviation(1),
    "SQRT": Deviation(1),
    "EX2": Deviation(2),
    "LG2": Deviation(2, 2.0**-22),
    "SIN": Deviation(0, 2.0**-20.5),
    "COS": Deviation(0, 2.0**-20.5),
    "TANH": Deviation(123, 2.0**-30),
}
"""The greatest of 131072 operands each on an H200 (bench/results, `semantics`); SIN and COS as PTX ISA promises, which holds there.

PTX ISA promises no more than this for rcp, rsqrt, sqrt, ex2, lg2 and tanh .approx.
"""
_HALF_DEVIATIONS = {"EX2": Deviation(1), "TANH": Deviation(1)}


def deviation(instruction: Instruction) -> Deviation | None:
    """How far the hardware's result may be from what the semantics gives; None for an instruction that agrees bit for bit."""
    if instruction.mnemonic != "MUFU":
        return None
    return (_HALF_DEVIATIONS if "F16" in instruction.modifiers else _DEVIATIONS)[instruction.modifiers[0]]


_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "COS": lambda x: np.cos(np.fmod(x, 1) * (2 * np.pi)),
    "SIN": lambda x: np.sin(np.fmod(x, 1) * (2 * np.pi)),
    "EX2": np.exp2,
    "LG2": np.log2,
    "RCP": lambda x: 1 / x,
    "RSQ": lambda x: 1 / np.sqrt(x),
    "SQRT": np.sqrt,
    "TANH": np.tanh,
}


@instruction("MUFU", "f32", "f32", modifiers=" ".join(_FUNCTIONS))
def mufu(form: Form) -> Unary:
    """d = f(a); the angle of .SIN and .COS is in turns"""
    function = form.choose(_FUNCTIONS)
    view = same if form.has("TANH") else flush
    return lambda a: canonical(view(function(view(a).astype(F64)).astype(F32)))


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
