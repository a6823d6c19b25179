"""Conversions to integers and integral values, and the table-driven functions, against exact rational numbers and Python's floats."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from sassir.asm.parse import parse_instruction
from sassir.isa.semantics import deviation, semantics

CODES = {"": "<f", ".F64": "<d", ".F16": "<e"}
"""How `struct` reads each source type."""
ROUNDINGS: dict[str, Callable[[Fraction], int]] = {"": round, ".FLOOR": math.floor, ".CEIL": math.ceil, ".TRUNC": math.trunc}
"""`round` takes the even neighbour of a half."""
NARROW, WIDE = ("U8", "S8", "U16", "S16", "U32", "S32"), ("U64", "S64")
CONVERSIONS = [(source, target) for source in CODES for target in (NARROW if source == ".F16" else NARROW + WIDE)]
INTERESTING = (0.0, -0.0, 0.3, -0.3, 0.5, -0.5, 1.5, 2.5, -2.5, 126.5, 127.5, 128.0, -128.5, 255.5, 256.0, 32767.5, -32769.0, 65504.0)
LARGE = (2147483520.0, 2147483648.0, -2147483648.0, 4294967040.0, 4294967296.0, -4294967296.0, 9.2e18, 1.9e19, -1e19, 3e38)


def numbers(source: str) -> list[float]:
    """Values of a source type, some of them beyond every integer."""
    generator = np.random.default_rng(3)
    sizes = np.exp2(generator.uniform(-3, 15 if source == ".F16" else 70, 200)) * generator.choice([-1, 1], 200)
    wanted = [*INTERESTING, *(() if source == ".F16" else LARGE), *sizes.tolist(), *(np.trunc(sizes) + 0.5).tolist()]
    code = CODES[source]
    return [struct.unpack(code, struct.pack(code, x))[0] for x in wanted]


def compute(text: str, inputs: list[float], source: str) -> list[int]:
    """The bits of the results, low word first."""
    bits = [int.from_bytes(struct.pack(CODES[source], x), "little") for x in inputs]
    words = [np.array([b >> shift & 0xFFFFFFFF for b in bits], np.uint32) for shift in ((0, 32) if source == ".F64" else (0,))]
    results = semantics(parse_instruction(text), "sm_90").evaluate(*words)
    return [sum(int(w) << 32 * i for i, w in enumerate(lane)) for lane in zip(*results, strict=True)]


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize(("source", "target"), CONVERSIONS)
def test_integers_are_rounded_and_clamped(source: str, target: str, rounding: str) -> None:
    width, is_signed = int(target[1:]), target[0] == "S"
    low, high = (-(1 << width - 1), (1 << width - 1) - 1) if is_signed else (0, (1 << width) - 1)
    inputs = numbers(source)
    name = "" if target == "S32" else f".{target}"
    found = compute(f"F2I{name}{source}{rounding} R0, R4", inputs, source)
    register = (1 << max(width, 32)) - 1
    assert found == [max(low, min(high, ROUNDINGS[rounding](Fraction(x)))) & register for x in inputs]


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("source", CODES)
def test_integral_values_keep_their_sign(source: str, rounding: str) -> None:
    inputs = numbers(source)
    found = compute(f"FRND{source}{rounding} R0, R4", inputs, source)
    exact = [math.copysign(ROUNDINGS[rounding](Fraction(x)), x) for x in inputs]
    assert found == [int.from_bytes(struct.pack(CODES[source], x), "little") for x in exact]


def test_denormals_are_zero_with_ftz() -> None:
    assert compute("F2I.CEIL R0, R4", [1e-40], "") == [1]
    assert compute("F2I.FTZ.CEIL R0, R4", [1e-40], "") == [0]
    assert compute("FRND.CEIL R0, R4", [1e-40], "") == [0x3F800000]
    assert compute("FRND.FTZ.CEIL R0, R4", [1e-40], "") == [0]


FUNCTIONS: dict[str, Callable[[float], float]] = {
    "RCP": lambda x: 1 / x,
    "RSQ": lambda x: 1 / math.sqrt(x),
    "SQRT": math.sqrt,
    "EX2": lambda x: 2.0**x,
    "LG2": math.log2,
    "SIN": lambda x: math.sin(2 * math.pi * x),
    "COS": lambda x: math.cos(2 * math.pi * x),
    "TANH": math.tanh,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_table_driven_functions(name: str) -> None:
    inputs = [struct.unpack("<f", struct.pack("<f", x))[0] for x in np.random.default_rng(4).uniform(0.01, 8, 500)]
    text = f"MUFU.{name} R0, R4"
    allowed = deviation(parse_instruction(text))
    assert allowed is not None
    for x, bits in zip(inputs, compute(text, inputs, ""), strict=True):
        (found,), exact = struct.unpack("<f", struct.pack("<I", bits)), FUNCTIONS[name](x)
        assert abs(found - exact) <= max(abs(exact) * 2.0**-23 * max(allowed.places, 1), allowed.absolute)


INF, NAN = math.inf, 0x7FFFFFFF
SPECIAL: dict[str, list[tuple[float, float | int]]] = {
    "RCP": [(0.0, INF), (-0.0, -INF), (INF, 0.0), (-INF, -0.0), (1e-40, INF), (3e38, 0.0)],
    "RSQ": [(0.0, INF), (-0.0, -INF), (INF, 0.0), (-1.0, NAN), (1e-40, INF)],
    "SQRT": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-1.0, NAN), (1e-40, 0.0)],
    "EX2": [(0.0, 1.0), (-INF, 0.0), (INF, INF), (1e-40, 1.0), (-127.0, 0.0), (128.0, INF)],
    "LG2": [(1.0, 0.0), (0.0, -INF), (-0.0, -INF), (INF, INF), (-1.0, NAN), (1e-40, -INF)],
    "SIN": [(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN)],
    "COS": [(0.0, 1.0), (INF, NAN)],
    "TANH": [(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0)],
}
"""PTX ISA, the tables of rcp, rsqrt, sqrt, ex2, lg2, sin, cos, tanh .approx.ftz; an int stands for the bits of NaN."""


@pytest.mark.parametrize("name", SPECIAL)
def test_special_values_of_table_driven_functions(name: str) -> None:
    inputs, wanted = zip(*SPECIAL[name], strict=True)
    bits = [x if isinstance(x, int) else int.from_bytes(struct.pack("<f", x), "little") for x in wanted]
    assert compute(f"MUFU.{name} R0, R4", [*inputs], "") == bits
