"""The arithmetic of the tensor cores for half precision, bfloat16 and tf32.

Products are exact. All addends of a chunk of k, the accumulator among them, are aligned to the largest exponent and cut off
below a fixed number of fraction bits; their sum is exact, and is then cut off to a single or rounded to a half. Models and
numbers: P. Xie, Y. Wang, F. Yang, M. Yang, "MMA-Sim: Bit-Accurate Reference Model of Tensor Cores and Matrix Cores",
arXiv 2511.10909; F. Khattak, M. Mikaitis, "Accurate Models of NVIDIA Tensor Cores", arXiv 2512.07004; first seen by M. Fasi,
N. Higham, M. Mikaitis, S. Pranesh, "Numerical behavior of NVIDIA tensor cores", PeerJ Computer Science 7:e330, 2021.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from sassir.asm.instruction import Instruction
from sassir.errors import SemanticsError
from sassir.isa.semantics.bits import F16, F32, F64, I64, U32, as_double, as_single, select
from sassir.isa.semantics.rounding import narrow
from sassir.isa.semantics.single import canonical


class Format(NamedTuple):
    """A format of the factors."""

    width: int
    """Bits in a register."""
    least_exponent: int
    """Of normal numbers; denormal ones have it too."""


FORMATS = {"F16": Format(16, -14), "BF16": Format(16, -126), "TF32": Format(32, -126)}


class Unit(NamedTuple):
    """The tensor core of an architecture."""

    fraction: int
    """Fraction bits that are kept of aligned addends."""
    chunk_bytes: int
    """How much of a row of a is added at once."""


_UNITS = {"sm_75": Unit(24, 16), "sm_80": Unit(24, 16), "sm_86": Unit(24, 16), "sm_87": Unit(24, 16), "sm_89": Unit(24, 16)} | {
    arch: Unit(25, 32) for arch in ("sm_90", "sm_100", "sm_103", "sm_120", "sm_121")
}


_LEAST_ALIGNMENT = np.int16(-133)
"""To this exponent addends are aligned if all of them are smaller. That of an H200 is one of -134 to -129 (docs/semantics.md)."""
_ZERO_EXPONENT = np.int16(-2000)


def dot(a: Any, b: Any, c: Any, kind: str, wide: bool, arch: str) -> Any:
    """a (m, k, …) times b (k, n, …) plus c (m, n, …), all singles that hold values of the format `kind`.

    Axes behind the matrices are for many products at a time. The result holds singles, or with `wide` false halves. Raises
    SemanticsError for an architecture whose unit is not known.
    """
    unit = _UNITS.get(arch.rstrip("af"))
    if unit is None:
        raise SemanticsError(f"the tensor core of {arch} is not modelled")
    if kind == "TF32":
        a, b = ((x.view(U32) & 0xFFFFE000).view(F32) for x in (a, b))
    step = unit.chunk_bytes * 8 // FORMATS[kind].width
    for start in range(0, len(b), step):
        chunk = slice(start, start + step)
        c = _add_chunk(a[:, chunk], b[chunk], c, FORMATS[kind].least_exponent, wide, unit.fraction)
    return c


def _add_chunk(a: Any, b: Any, c: Any, least: int, wide: bool, fraction: int) -> Any:
    left, right = _exponents(a, least), _exponents(b, least)
    highest = np.maximum(_exponents(c, -126 if wide else -14), _LEAST_ALIGNMENT)
    exponent = np.empty_like(highest)
    for i in range(len(b)):
        np.add(left[:, i, None], right[None, i], out=exponent)
        np.maximum(highest, exponent, out=highest)
    scale = ((fraction + 1023 - highest.astype(I64)) << 52).view(F64)
    total = np.trunc(c * scale)
    a, b, product = as_double(a), as_double(b), np.empty_like(scale)
    for i in range(len(b)):
        np.multiply(a[:, i, None], b[None, i], out=product)
        product *= scale
        total += np.trunc(product, out=product)
    result = total / scale
    infinite = np.abs(result) >= 2.0**128
    rounded = select(infinite, as_single(result), narrow(result, "RZ")) if wide else as_single(result.astype(F16))
    return canonical(rounded + F32(0))  # -0 becomes 0


def _exponents(x: Any, least: int) -> Any:
    """The exponent of each number, where a denormal one has the least of its format, and zero none that counts."""
    field = (x.view(U32) >> 23).astype(np.int16) & 0xFF
    return np.maximum(field - np.int16(127), np.int16(least)) + (x == 0) * _ZERO_EXPONENT


def hgmma(instruction: Instruction, arch: str, a: Any, b: Any, c: Any) -> Any:
    """The matrix product of a warpgroup: a (64, k, …) times b (k, n, …) plus c (64, n, …), see `dot`.

    All are singles that hold values of the instruction's formats, and so is the result; the caller reads shared memory and
    registers. Raises SemanticsError for a form that is not modelled.
    """
    kinds = [m for m in instruction.modifiers if m in ("BF16", "TF32")]
    known = {"F32", "F16", "BF16", "TF32", *(m for m in instruction.modifiers if m.startswith("64x"))}
    if unknown := set(instruction.modifiers) - known:
        raise SemanticsError(f"`{instruction.text}` on {arch}: the modifier .{unknown.pop()} is not modelled")
    with np.errstate(all="ignore"):
        return dot(a, b, c, kinds[0] if kinds else "F16", "F32" in instruction.modifiers, arch)
