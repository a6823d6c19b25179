"""Kernels that compute every element by itself. `b` holds the buffers before the launch, by name, `s` the sizes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from references.arithmetic import F32, flush, fma

Arrays = Mapping[str, Any]
U32 = np.uint32


def saxpy_gs(b: Arrays, s: Arrays) -> Arrays:
    return {"y": fma(1.5, b["x"], b["y"])}


def fuse2(b: Arrays, s: Arrays) -> Arrays:
    column = np.arange(s["n"]) % s["h"]
    v = b["x"] + b["b"][column]
    return {"out": fma(np.where(v > 0, v, F32(0)), b["s"][column], b["r"])}


def cupy_ew3d(b: Arrays, s: Arrays) -> Arrays:
    p, q = b["a"], b["b"][None, None, :]
    return {"out": np.where(p > F32(0.1), p * q, p + q)}


def cupy_where(b: Arrays, s: Arrays) -> Arrays:
    # In double precision: every product is exact, every sum has bits enough (53 of 2 * 24 + 2) to be rounded once more.
    p, q = (flush(b[name]).astype(np.float64) for name in "ab")
    return {"out": np.where(p > 0.5, flush(p * q), flush(p + q))}


def poly_strict(b: Arrays, s: Arrays) -> Arrays:
    v = z = b["x"]
    for _ in range(s["steps"]):
        p = F32(0.00019841)
        for coefficient in (0.00138889, 0.00833333, 0.04166667, 0.16666667, 0.5, 1.0):
            p = p * z + F32(coefficient)
        z = z - (p * z * F32(0.5) - v * F32(0.25)) * F32(0.5)
    return {"y": z}


def rgb2gray_u8(b: Arrays, s: Arrays) -> Arrays:
    red, green, blue = (b["rgb"][..., channel].astype(F32) for channel in range(3))
    return {"out": fma(blue, 0.114, fma(red, 0.299, green * F32(0.587))).astype(np.uint8)}


def transpose_tile(b: Arrays, s: Arrays) -> Arrays:
    return {"out": b["in"].T}


def dbl_literal(b: Arrays, s: Arrays) -> Arrays:
    x, y = b["a"], b["b"]
    for _ in range(4):
        wide = x.astype(np.float64)
        x = (0.5 * (x + y).astype(np.float64) * 1.01 - 0.25 * wide * y).astype(F32)
        y = (y * 0.99 + 0.1 * x / (1.0 + (x * x).astype(np.float64))).astype(F32)
    return {"o": x + y}


def silu(x: Any) -> Any:
    """In double precision."""
    x = x.astype(np.float64)
    return x / (1 + np.exp(-x))


def silu_mul_bf16(b: Arrays, s: Arrays) -> Arrays:
    return {"out": silu(b["g"]) * b["u"]}


def triton_silu_mul(b: Arrays, s: Arrays) -> Arrays:
    return {"o": silu(b["x"]) * b["y"]}


def cupy_silu_f16(b: Arrays, s: Arrays) -> Arrays:
    return {"out": silu(b["x"])}


def gelu_bias_f16(b: Arrays, s: Arrays) -> Arrays:
    v = b["x"].astype(F32) + b["bias"].astype(F32)[np.arange(s["n"]) % s["h"]]
    v = v.astype(np.float64)
    return {"out": 0.5 * v * (1 + np.tanh(0.7978845608 * (v + 0.044715 * v**3))) + b["res"]}


def black_scholes(b: Arrays, s: Arrays) -> Arrays:
    price, strike, years = b["S"], b["X"], b["T"]
    rate, volatility, half = F32(0.02), F32(0.3), F32(0.5)
    root = volatility * np.sqrt(years)
    d1 = (np.log(price / strike) + (rate + half * volatility * volatility) * years) / root
    c1, c2, discounted = _normal(d1), _normal(d1 - root), strike * np.exp(-rate * years)
    return {"call": price * c1 - discounted * c2, "put": discounted * (1 - c2) - price * (1 - c1)}


def _normal(d: Any) -> Any:
    """Abramowitz and Stegun's polynomial for the distribution function."""
    k, polynomial = 1 / (1 + F32(0.2316419) * np.abs(d)), F32(0)
    for coefficient in (1.330274429, -1.821255978, 1.781477937, -0.356563782, 0.31938153):
        polynomial = k * (polynomial + F32(coefficient))
    c = F32(0.39894228) * np.exp(F32(-0.5) * d * d) * polynomial
    return np.where(d > 0, 1 - c, c)


def aes_tconst(b: Arrays, s: Arrays) -> Arrays:
    table, keys, state = b["tab"], b["rk"].reshape(-1, 4), b["in"] ^ b["rk"][:4]
    for round_key in keys[1:]:
        columns = [
            table[state[:, i] >> 24]
            ^ _rotate_right(table[state[:, (i + 1) % 4] >> 16 & 255], 8)
            ^ _rotate_right(table[state[:, (i + 2) % 4] >> 8 & 255], 16)
            ^ _rotate_right(table[state[:, (i + 3) % 4] & 255], 24)
            for i in range(4)
        ]
        state = np.stack(columns, axis=1) ^ round_key
    return {"out": state}


def xxh32_rows(b: Arrays, s: Arrays) -> Arrays:
    p1, p2, p3, seed, length = U32(2654435761), U32(2246822519), U32(3266489917), U32(7), s["len"]
    words = np.ascontiguousarray(b["data"][:, : length // 16 * 16]).view(U32).reshape(s["rows"], -1, 4)
    start = np.array([seed + p1 + p2, seed + p2, seed, seed - p1])
    lanes = np.tile(start, (s["rows"], 1))
    for i in range(words.shape[1]):
        lanes = _rotate_right(lanes + words[:, i] * p2, 19) * p1
    h = sum(_rotate_right(lanes[:, i], 32 - turn) for i, turn in enumerate((1, 7, 12, 18))) + U32(length)
    h = (h ^ h >> 15) * p2
    h = (h ^ h >> 13) * p3
    return {"out": h ^ h >> 16}


def _rotate_right(x: Any, count: int) -> Any:
    return x >> U32(count) | x << U32(32 - count)
