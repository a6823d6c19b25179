"""Element types of buffers and scalars, and the named generators of a buffer's initial content.

Every generator is a pure function of its seed, element type and length, so that emulator, GPU and reference start from the same
bits. bf16, which numpy lacks, is stored as uint16 and rounded to nearest even.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sassir.errors import LaunchError

Array = NDArray[Any]
Generator = Callable[..., Array]

POISON = 0xCD
"""The byte that memory nobody has written holds; as a float it is an unlikely finite number."""

STORAGE: Mapping[str, np.dtype[Any]] = {
    "bf16": np.dtype(np.uint16),
    "f16": np.dtype(np.float16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    **{f"{sign}{bits}": np.dtype(f"{sign}{bits // 8}") for sign in "iu" for bits in (8, 16, 32, 64)},
}
"""Element type to the numpy type that stores it."""


def is_float(dtype: str) -> bool:
    """The element type is a floating-point type."""
    return dtype in ("bf16", "f16", "f32", "f64")


def store(values: Array, dtype: str) -> Array:
    """`values` converted to the element type; a float that does not fit becomes infinity."""
    if dtype == "bf16":
        return _to_bf16(values.astype(np.float32, copy=False))
    with np.errstate(over="ignore"):
        return values.astype(STORAGE[dtype], copy=False)


def bits_of(stored: Array) -> Array:
    """The elements as whole numbers, to compare them bit by bit."""
    return stored.view(f"u{stored.dtype.itemsize}")


def load(stored: Array, dtype: str) -> Array:
    """The values that `stored` stands for: float32 for bf16, else `stored` itself."""
    return (stored.astype(np.uint32) << 16).view(np.float32) if dtype == "bf16" else stored


def _to_bf16(values: Array) -> Array:
    bits = np.atleast_1d(values).view(np.uint32)
    rounded = (bits + (0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)
    nan = np.isnan(np.atleast_1d(values))
    rounded[nan] = (bits[nan] >> 16 | 0x40).astype(np.uint16)
    return rounded.reshape(values.shape)


def generate(name: str, arguments: tuple[float, ...], dtype: str, length: int, seed: tuple[int, ...]) -> Array:
    """`length` elements of type `dtype` made by the generator `name`. Raises LaunchError for an unknown one or wrong arguments."""
    if name not in GENERATORS:
        raise LaunchError(f"unknown generator {name!r}; known: {', '.join(GENERATORS)}")
    random = np.random.default_rng(seed)
    try:
        return GENERATORS[name](random, dtype, length, *arguments)
    except (TypeError, ValueError, OverflowError) as error:
        raise LaunchError(f"generator {name}{arguments} cannot make {length} elements of {dtype}: {error}") from error


def _zeros(random: np.random.Generator, dtype: str, length: int) -> Array:
    return np.zeros(length, STORAGE[dtype])


def _ones(random: np.random.Generator, dtype: str, length: int) -> Array:
    return store(np.ones(length, np.float32), dtype)


def _poison(random: np.random.Generator, dtype: str, length: int) -> Array:
    return np.full(length * STORAGE[dtype].itemsize, POISON, np.uint8).view(STORAGE[dtype])


def _nan(random: np.random.Generator, dtype: str, length: int) -> Array:
    if not is_float(dtype):
        raise ValueError("only floats have NaN")
    return store(np.full(length, np.nan, np.float32), dtype)


def _arange(random: np.random.Generator, dtype: str, length: int, start: float = 0, step: float = 1) -> Array:
    return store(start + step * np.arange(length, dtype=np.float64 if is_float(dtype) else np.int64), dtype)


def _uniform(random: np.random.Generator, dtype: str, length: int, low: float, high: float) -> Array:
    values = random.random(length, dtype=_working_type(dtype))
    values *= high - low
    values += low
    return store(values, dtype)


def _normal(random: np.random.Generator, dtype: str, length: int, mean: float = 0, deviation: float = 1) -> Array:
    values = random.standard_normal(length, dtype=_working_type(dtype))
    values *= deviation
    values += mean
    return store(values, dtype)


def _integers(random: np.random.Generator, dtype: str, length: int, low: int, high: int) -> Array:
    if is_float(dtype):
        return store(random.integers(low, high, length), dtype)
    return random.integers(low, high, length, dtype=STORAGE[dtype])


def _bits(random: np.random.Generator, dtype: str, length: int) -> Array:
    storage = STORAGE[dtype]
    return np.frombuffer(random.bytes(length * storage.itemsize), storage)


def _offsets(random: np.random.Generator, dtype: str, length: int, low: int, high: int) -> Array:
    steps = random.integers(low, high, max(length - 1, 0))
    return store(np.concatenate(([0], np.cumsum(steps)))[:length], dtype)


def _edges(random: np.random.Generator, dtype: str, length: int) -> Array:
    return random.choice(_edge_values(dtype), length)


def _edge_values(dtype: str) -> Array:
    storage = STORAGE[dtype]
    if not is_float(dtype):
        limits = np.iinfo(storage)
        half = limits.max // 2
        values = {limits.min, limits.min + 1, -1, 0, 1, 2, half, half + 1, limits.max - 1, limits.max}
        return np.array(sorted(values - {-1} if limits.min == 0 else values), storage)
    # Exponent all zeros: denormals; exponent all ones: infinity and NaN. The bit patterns are the same in every width.
    bits = storage.itemsize * 8
    fraction = {"bf16": 7, "f16": 10, "f32": 23, "f64": 52}[dtype]
    one = ((1 << bits - fraction - 2) - 1) << fraction
    infinity = ((1 << bits - fraction - 1) - 1) << fraction
    smallest = 1 << fraction
    positive = [0, 1, smallest - 1, smallest, one - 1, one, one + 1, infinity - 1, infinity, infinity | smallest >> 1]
    return np.array(positive + [value | 1 << bits - 1 for value in positive], f"u{bits // 8}").view(storage)


def _working_type(dtype: str) -> type[np.float32] | type[np.float64]:
    return np.float64 if dtype == "f64" or not is_float(dtype) else np.float32


GENERATORS: Mapping[str, Generator] = {
    "zeros": _zeros,
    "ones": _ones,
    "poison": _poison,
    "nan": _nan,
    "arange": _arange,
    "uniform": _uniform,
    "normal": _normal,
    "integers": _integers,
    "bits": _bits,
    "offsets": _offsets,
    "edges": _edges,
}
