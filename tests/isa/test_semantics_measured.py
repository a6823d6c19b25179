"""Rules that only the hardware could tell, docs/semantics.md: each test is one of them on operands that show it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sassir.asm.parse import parse_instruction
from sassir.isa.semantics import semantics
from sassir.isa.semantics.dot import dot

QUIET = 0x7FF80000
NANS = {name: (number, QUIET + number) for number, name in enumerate("abc", 1)}
"""Low and high word of a NaN for each operand."""
ONE = (0, 0x3FF00000)


def compute(text: str, *words: int) -> tuple[int, ...]:
    """The words that the instruction gives for one lane, whose registers hold these words."""
    return tuple(int(x[0]) for x in semantics(parse_instruction(text), "sm_90").evaluate(*[np.array([w], np.uint32) for w in words]))


@pytest.mark.parametrize(
    ("a", "b", "nearest", "down"),
    [
        (0x3F7FFFFF, 0x00800000, 0, 0),  # 2^-126 - 2^-150 has 24 bits: as it is, it would be denormal
        (0x3F7FFFFF, 0x80800000, 0x80000000, 0x80000000),
        (0x3F800001, 0x00800000, 0x00800001, 0x00800001),
    ],
)
def test_a_product_that_is_denormal_before_rounding_is_flushed(a: int, b: int, nearest: int, down: int) -> None:
    assert compute("FMUL.FTZ R0, R4, R8", a, b) == (nearest,)
    assert compute("FMUL.FTZ.RM R0, R4, R8", a, b) == (down,)


def test_a_sum_is_flushed_by_what_it_rounds_to_with_any_exponent() -> None:
    smallest, half = 0x00800000, 0x04000400
    assert compute("FFMA.FTZ R0, R4, R8, R12", 0x1A000000, 0x9A000000, smallest) == (0,)  # 2^-126 - 2^-150
    assert compute("FFMA.FTZ R0, R4, R8, R12", 0x19800000, 0x99800000, smallest) == (smallest,)  # 2^-126 - 2^-152 has 26 bits
    assert compute("FFMA.FTZ.RZ R0, R4, R8, R12", 0x19800000, 0x99800000, smallest) == (0,)
    assert compute("HFMA2.FTZ R0, R4, R8, R12", 0x08000800, 0x8C008400, half) == (0x00000400,)  # minus 2^-25, minus 2^-27


@pytest.mark.parametrize(("present", "wanted"), [("abc", "b"), ("ac", "c"), ("ab", "b"), ("a", "a")])
def test_of_several_nan_the_second_operand_counts_first(present: str, wanted: str) -> None:
    operands = [word for name in "abc" for word in (NANS[name] if name in present else ONE)]
    assert compute("DFMA R0, R4, R8, R12", *operands) == NANS[wanted]
    assert compute("DFMA R0, -R4, R8, -R12", *operands) == NANS[wanted]  # the sign of a NaN stays


def test_nan_in_sums_products_and_conversions() -> None:
    a, b = NANS["a"], NANS["b"]
    for text in ("DADD R0, R4, -R8", "DMUL R0, R4, -R8"):
        assert compute(text, *a, *b) == b
        assert compute(text, *a, *ONE) == a
    assert compute("DADD R0, R4, R8", 5, 0xFFF00000, *ONE) == (5, 0xFFF80000)
    assert compute("F2F.F64.F32 R0, -|R4|", 0x7F800001) == (0x20000000, QUIET)
    assert compute("F2F.F32.F64 R0, -R4", 0xBF800000, QUIET) == (0x7FC00005,)
    assert compute("FSEL.FTZ R0, -R4, R8, PT", 0xFF800001, 0) == (0x7F800001,)
    assert compute("F2FP.BF16.F32.PACK_AB.RZ R0, R4, R8", 0x7F800001, 0xBFFFFFFF) == (0x7FFFBFFF,)


@pytest.mark.parametrize(("kind", "wanted"), [("U8", 0x80), ("S8", 0x80), ("U16", 0x8000), ("S16", 0x8000), ("U32", 1 << 31)])
def test_nan_as_an_integer(kind: str, wanted: int) -> None:
    assert compute(f"F2I.{kind} R0, R4", 0x7FC00000) == (wanted,)
    assert compute(f"F2I.{kind}.NTZ R0, R4", 0x7FC00000) == (0,)


def test_denormal_numbers_that_are_kept_or_flushed() -> None:
    assert compute("MUFU.TANH R0, R4", 0x80000001) == (0x80000001,)
    assert compute("F2F.F16.F32 R0, R4", 0xB6A81AA5) == (0x8054,)
    assert compute("F2F.FTZ.F16.F32 R0, R4", 0xB6A81AA5) == (0x8000,)


def test_always_and_never_do_not_look_at_the_low_words() -> None:
    evaluator = semantics(parse_instruction("ISETP.T.AND.EX P0, PT, R4, R8, PT, P1"), "sm_90")
    words, below = np.array([7, 8], np.uint32), np.array([False, False])
    assert evaluator.evaluate(words, words, below)[0].tolist() == [True, True]
    evaluator = semantics(parse_instruction("ISETP.F.AND.EX P0, PT, R4, R8, PT, P1"), "sm_90")
    assert evaluator.evaluate(words, words, ~below)[0].tolist() == [False, False]


def test_byte_differences_are_signed_by_default() -> None:
    assert compute("VABSDIFF4.ACC R0, R4, R8, R12", 0xFFFFFFF0, 3, 7) == (3 * 1 + 19 + 7,)
    assert compute("VABSDIFF4.U8.ACC R0, R4, R8, R12", 0xFFFFFFF0, 3, 7) == (3 * 255 + 237 + 7,)


def test_a_double_matrix_product_is_a_chain_of_fused_multiply_adds() -> None:
    """All elements of a, b and c are the same NaN of its own: at each step that of b counts."""
    evaluator = semantics(parse_instruction("DMMA.8x8x4 R0, R4, R8, R12"), "sm_90")
    words = [np.full((1, 32), word, np.uint32) for name in "abcc" for word in NANS[name]]
    results = evaluator.evaluate(np.ones((1, 32), np.bool_), *words)
    assert [set(x.ravel().tolist()) for x in results] == [{NANS["b"][0]}, {NANS["b"][1]}] * 2


@pytest.mark.parametrize(
    ("top", "bottom", "slow"),
    [
        *((24, 100, 1), (25, 100, 0), (255, 200, 1)),
        *((100, 1, 1), (100, 2, 0), (200, 251, 0), (200, 252, 1)),
        *((100, 224, 0), (100, 225, 1), (226, 100, 0), (227, 100, 1)),
    ],
)
def test_exponents_of_a_quotient_that_needs_the_slow_path(top: int, bottom: int, slow: int) -> None:
    assert compute("FCHK P0, R4, R8", top << 23 | 1 << 31, bottom << 23 | 0x123456) == (slow,)


def test_a_shuffle_from_a_lane_that_is_not_active_gives_zero() -> None:
    active = np.arange(32)[None] % 4 != 1
    evaluator = semantics(parse_instruction("SHFL.BFLY P0, R0, R4, 0x1, 0x1f"), "sm_90")
    inside, found = evaluator.evaluate(active, np.arange(100, 132, dtype=np.uint32)[None])
    assert inside[active].all()
    assert found[active].tolist() == [0 if lane % 4 == 0 else 100 + (lane ^ 1) for lane in np.flatnonzero(active[0])]


def _dot(a: list[float], b: list[float], c: float, kind: str, wide: bool) -> Any:
    row, column, start = (np.array(x, np.float32) for x in ([a], [[x] for x in b], [[c]]))
    return dot(row, column, start, kind, wide, "sm_90")[0, 0]


@pytest.mark.parametrize("kind", ["F16", "BF16", "TF32"])
def test_zero_factors_do_not_align_the_other_addends(kind: str) -> None:
    assert _dot([0, 0], [2.0**15, 1], 2.0**-140, kind, True) == 2.0**-140


def test_matrix_products_that_round_to_zero_are_positive() -> None:
    assert not np.signbit(_dot([2.0**-100], [-(2.0**-60)], 0, "BF16", True))
    assert not np.signbit(_dot([2.0**-14], [-(2.0**-14)], 0, "F16", False))


def test_small_addends_are_aligned_to_a_least_exponent() -> None:
    """2^-149 minus little: cut off to a single it is 0, unless that little is itself cut off."""
    assert _dot([2.0**-75, 2.0**-75], [2.0**-74, -(2.0**-79)], 0, "BF16", True) == 0
    assert _dot([2.0**-75, 2.0**-75], [2.0**-74, -(2.0**-85)], 0, "BF16", True) == 2.0**-149
