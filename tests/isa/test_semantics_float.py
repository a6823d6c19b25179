"""Floating-point semantics against exact rational arithmetic: every result is rounded once, in the direction asked for.

The oracle uses Python's fractions alone; no function of the semantics is used to judge it.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest

from sassir.asm.parse import parse_instruction
from sassir.isa.semantics import semantics


class Format(NamedTuple):
    """A binary floating-point format."""

    digits: int
    """Of the significand, with the leading one."""
    least: int
    """Exponent of the smallest normal number."""
    most: int
    """Exponent of the largest numbers."""

    @property
    def fraction(self) -> int:
        return self.digits - 1

    @property
    def sign(self) -> int:
        """The place of the sign bit."""
        return self.fraction + (2 * self.most + 1).bit_length()

    def decode(self, bits: int) -> Fraction | float:
        """The exact value; infinity and NaN as floats."""
        sign = -1 if bits >> self.sign & 1 else 1
        exponent, fraction = bits >> self.fraction & 2 * self.most + 1, bits & (1 << self.fraction) - 1
        if exponent == 2 * self.most + 1:
            return math.nan if fraction else sign * math.inf
        significand = fraction | (1 << self.fraction if exponent else 0)
        return sign * Fraction(significand) * Fraction(2) ** (max(exponent, 1) - self.most - self.fraction)

    def encode(self, value: Fraction, mode: str) -> int:
        """The bits of a number other than 0, rounded once."""
        sign, size = (1, -value) if value < 0 else (0, value)
        exponent = max(self.least, _floor_log2(size))
        unit = Fraction(2) ** (exponent - self.fraction)
        whole, rest = divmod(size, unit)
        up = {"RN": 2 * rest > unit or (2 * rest == unit and whole % 2), "RZ": False, "RP": rest and not sign, "RM": rest and sign}[mode]
        whole += bool(up)
        infinity = (2 * self.most + 1) << self.fraction
        bits = (int(whole) - (1 << self.fraction)) + (exponent + self.most << self.fraction) if whole >> self.fraction else int(whole)
        if bits >= infinity:
            stops = mode == "RZ" or (mode == "RM" and not sign) or (mode == "RP" and sign)
            bits = infinity - stops
        return bits | sign << self.sign


def _floor_log2(x: Fraction) -> int:
    guess = x.numerator.bit_length() - x.denominator.bit_length()
    return guess if Fraction(2) ** guess <= x else guess - 1


SINGLE, DOUBLE, HALF, BFLOAT = Format(24, -126, 127), Format(53, -1022, 1023), Format(11, -14, 15), Format(8, -126, 127)
MODES = ("RN", "RM", "RP", "RZ")
LANES = 400


def words(seed: int, form: Format, near: bool) -> list[int]:
    """Finite numbers: of any exponent, or near each other with few digits, so that sums and products are hard to round."""
    generator = np.random.default_rng(seed)
    result: list[int] = []
    while len(result) < LANES:
        exponent = int(generator.integers(form.most - 3, form.most + 4) if near else generator.integers(0, 2 * form.most + 1))
        fraction = int(generator.integers(0, 1 << min(form.fraction, 62)))
        for _ in range(3 * int(generator.integers(0, 2))):
            fraction &= int(generator.integers(0, 1 << form.fraction))
        result.append(int(generator.integers(0, 2)) << form.sign | exponent << form.fraction | fraction)
    return result


def compute(text: str, *operands: list[int], double: bool = False) -> list[int]:
    """The bits that the instruction gives on registers R4, R8, R12."""
    arrays = [np.array(bits, np.uint64 if double else np.uint32) for bits in operands]
    if double:
        arrays = [half for a in arrays for half in ((a & np.uint64(0xFFFFFFFF)).astype(np.uint32), (a >> np.uint64(32)).astype(np.uint32))]
    results = semantics(parse_instruction(text), "sm_90").evaluate(*arrays)
    if double:
        return [int(low) | int(high) << 32 for low, high in zip(*results, strict=True)]
    return [int(x) for x in results[0]]


def check(form: Format, mode: str, found: list[int], exact: list[Fraction]) -> None:
    """Compare with the rational results; zeros are compared in other tests."""
    for got, value in zip(found, exact, strict=True):
        if value:
            assert hex(got) == hex(form.encode(value, mode)), value


def values(form: Format, bits: list[int]) -> list[Fraction]:
    decoded = [form.decode(b) for b in bits]
    assert all(isinstance(x, Fraction) for x in decoded)
    return [Fraction(x) for x in decoded]


def suffix(mode: str) -> str:
    return "" if mode == "RN" else f".{mode}"


@pytest.mark.parametrize("near", [True, False])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("letter", "form"), [("F", SINGLE), ("D", DOUBLE)])
def test_sum_product_and_fused_are_rounded_once(letter: str, form: Format, mode: str, near: bool) -> None:
    a, b, c = (words(seed, form, near) for seed in (1, 2, 3))
    x, y, z = (values(form, bits) for bits in (a, b, c))
    double = form is DOUBLE
    fused = "FFMA" if letter == "F" else "DFMA"
    check(form, mode, compute(f"{letter}ADD{suffix(mode)} R0, R4, R8", a, b, double=double), [p + q for p, q in zip(x, y, strict=True)])
    check(form, mode, compute(f"{letter}MUL{suffix(mode)} R0, R4, R8", a, b, double=double), [p * q for p, q in zip(x, y, strict=True)])
    found = compute(f"{fused}{suffix(mode)} R0, R4, R8, R12", a, b, c, double=double)
    check(form, mode, found, [p * q + r for p, q, r in zip(x, y, z, strict=True)])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("letter", "form"), [("F", SINGLE), ("D", DOUBLE)])
def test_fused_results_half_way_between_numbers(letter: str, form: Format, mode: str) -> None:
    """c = -(a * b) but for its last digits, and a * b with a tie that a tiny c breaks."""
    a, b = words(4, form, True), words(5, form, True)
    x, y = values(form, a), values(form, b)
    cancel = [form.encode(-p * q, "RZ") for p, q in zip(x, y, strict=True)]
    tiny = [(i & 1) << form.sign | (i % 50 + 1) << form.fraction for i in range(LANES)]
    sparse = [(v >> form.fraction << form.fraction) | (v & 1) | 1 << form.fraction // 2 for v in a]
    name = f"{letter}FMA{suffix(mode)}" if letter == "F" else f"DFMA{suffix(mode)}"
    for left, right, third in ((a, b, cancel), (sparse, sparse[1:] + sparse[:1], tiny), (sparse, b, tiny)):
        exact = [p * q + r for p, q, r in zip(*(values(form, bits) for bits in (left, right, third)), strict=True)]
        check(form, mode, compute(f"{name} R0, R4, R8, R12", left, right, third, double=form is DOUBLE), exact)


@pytest.mark.parametrize("mode", MODES)
def test_denormal_results_of_doubles(mode: str) -> None:
    """Every product lies around the smallest normal number, and so does what is added to it."""
    a, b, c = ([w - (scale << 52) for w in words(seed, DOUBLE, True)] for seed, scale in ((1, 512), (2, 510), (3, 1019)))
    x, y, z = (values(DOUBLE, bits) for bits in (a, b, c))
    check(DOUBLE, mode, compute(f"DMUL{suffix(mode)} R0, R4, R8", a, b, double=True), [p * q for p, q in zip(x, y, strict=True)])
    found = compute(f"DFMA{suffix(mode)} R0, R4, R8, R12", a, b, c, double=True)
    check(DOUBLE, mode, found, [p * q + r for p, q, r in zip(x, y, z, strict=True)])


@pytest.mark.parametrize("near", [True, False])
@pytest.mark.parametrize(("suffixes", "form"), [("", HALF), (".BF16_V2", BFLOAT)])
def test_packed_halves_are_rounded_once(suffixes: str, form: Format, near: bool) -> None:
    low, high = ([words(seed + i, form, near) for seed in (6, 7, 8)] for i in (0, 10))
    packed = [[b << 16 | a for a, b in zip(p, q, strict=True)] for p, q in zip(low, high, strict=True)]
    fused = compute(f"HFMA2{suffixes} R0, R4, R8, R12", *packed)
    products = compute(f"HMUL2{suffixes} R0, R4, R8", *packed[:2])
    sums = compute(f"HADD2{suffixes} R0, R4, -R8", *packed[:2])
    for shift, parts in ((0, low), (16, high)):
        x, y, z = (values(form, bits) for bits in parts)
        check(form, "RN", [f >> shift & 0xFFFF for f in fused], [p * q + r for p, q, r in zip(x, y, z, strict=True)])
        check(form, "RN", [f >> shift & 0xFFFF for f in products], [p * q for p, q in zip(x, y, strict=True)])
        check(form, "RN", [f >> shift & 0xFFFF for f in sums], [p - q for p, q in zip(x, y, strict=True)])


@pytest.mark.parametrize(("mnemonic", "form"), [("FMNMX", SINGLE), ("HMNMX2", HALF), ("HMNMX2.BF16_V2", BFLOAT)])
def test_minimum_and_maximum(mnemonic: str, form: Format) -> None:
    a, b = words(20, form, False), words(21, form, False)
    for predicate, choose in (("PT", min), ("!PT", max)):
        exact = [choose(p, q) for p, q in zip(values(form, a), values(form, b), strict=True)]
        check(form, "RN", [x & (2 << form.sign) - 1 for x in compute(f"{mnemonic} R0, R4, R8, {predicate}", a, b)], exact)


@pytest.mark.parametrize(("mnemonic", "form"), [("FMNMX", SINGLE), ("HMNMX2", HALF), ("HMNMX2.BF16_V2", BFLOAT)])
def test_minimum_and_maximum_of_zeros_and_nan(mnemonic: str, form: Format) -> None:
    minus, one = 1 << form.sign, form.most << form.fraction
    nan = (2 * form.most + 1) << form.fraction | 1
    mask = (2 << form.sign) - 1
    least, most, keep = (compute(f"{mnemonic}{suffix} R0, R4, R8, {p}", [0, minus, nan, one], [minus, 0, one, nan]) for suffix, p in LIMITS)
    assert [x & mask for x in least] == [minus, minus, one, one]
    assert [x & mask for x in most] == [0, 0, one, one]
    assert [x & mask for x in keep[2:]] == [minus - 1, minus - 1]


LIMITS = [("", "PT"), ("", "!PT"), (".NAN", "PT")]


@pytest.mark.parametrize("mode", MODES)
def test_narrowing_conversions(mode: str) -> None:
    wide = words(9, DOUBLE, False)
    wide[300:] = [(0x380 + i % 300 << 52) | w & (1 << 52) - 1 for i, w in enumerate(words(10, DOUBLE, False)[300:])]
    exact = values(DOUBLE, wide)
    evaluator = semantics(parse_instruction(f"F2F.F32.F64{suffix(mode)} R0, R4"), "sm_90")
    low, high = (np.array([w >> s & 0xFFFFFFFF for w in wide], np.uint32) for s in (0, 32))
    check(SINGLE, mode, [int(x) for x in evaluator.evaluate(low, high)[0]], exact)
    singles = [(100 + i % 60) << 23 | w & 0x7FFFFF | (i & 1) << 31 for i, w in enumerate(words(11, SINGLE, False))]
    check(HALF, mode, compute(f"F2F.F16.F32{suffix(mode)} R0, R4", singles), values(SINGLE, singles))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["U64", "S64"])
@pytest.mark.parametrize(("target", "form"), [("", SINGLE), (".F64", DOUBLE)])
def test_long_integers_are_rounded_once(target: str, form: Format, kind: str, mode: str) -> None:
    generator = np.random.default_rng(12)
    bits = [int(generator.integers(0, 1 << 63)) * 2 + 1 >> int(generator.integers(0, 63)) for _ in range(LANES)]
    bits += [(1 << 63) - 1, 1 << 63, (1 << 64) - 1, (1 << 24) + 1, (1 << 53) + 1, 0xFFFFFF7FFFFFFFFF]
    exact = [Fraction(b - (b >> 63 << 64) if kind == "S64" else b) for b in bits]
    low, high = (np.array([b >> s & 0xFFFFFFFF for b in bits], np.uint32) for s in (0, 32))
    results = semantics(parse_instruction(f"I2F{target}.{kind}{suffix(mode)} R0, R4"), "sm_90").evaluate(low, high)
    check(form, mode, [sum(int(w) << 32 * i for i, w in enumerate(lane)) for lane in zip(*results, strict=True)], exact)


ZEROS = {"+": 0, "-": 1 << 31, "1": 0x3F800000, "-1": 0xBF800000}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("a", "b", "sign"), [("+", "+", "+"), ("-", "-", "-"), ("+", "-", "m"), ("1", "-1", "m"), ("-", "+", "m")])
def test_sign_of_a_zero_sum(a: str, b: str, sign: str, mode: str) -> None:
    expected = ZEROS["-" if sign == "-" or (sign == "m" and mode == "RM") else "+"]
    assert compute(f"FADD{suffix(mode)} R0, R4, R8", [ZEROS[a]], [ZEROS[b]]) == [expected]
    assert compute(f"FFMA{suffix(mode)} R0, R4, 1, R8", [ZEROS[a]], [ZEROS[b]]) == [expected]
    double = [[ZEROS[x] >> 31 << 63 | (0x3FF << 52 if x.endswith("1") else 0)] for x in (a, b)]
    assert compute(f"DADD{suffix(mode)} R0, R4, R8", *double, double=True) == [expected >> 31 << 63]
    one = [0x3FF << 52]
    assert compute(f"DFMA{suffix(mode)} R0, R4, R8, R12", double[0], one, double[1], double=True) == [expected >> 31 << 63]
