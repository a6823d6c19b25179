"""Floating-point immediates: the bits decide, the text is nvdisasm's."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sassir.encoders.floats import WIDTHS, format_float, parse_float


@pytest.mark.parametrize(
    ("kind", "bits", "text"),
    [
        ("f32", 0x3F800000, "1"),
        ("f32", 0x3DCCCCCD, "0.10000000149011611938"),
        ("f32", 0x4E6E6B28, "1.00000000000000000000e+09"),
        ("f32", 0x80000000, "-0.0"),
        ("f32", 0xFF800000, "-INF"),
        ("f32", 0x7FC00000, "+QNAN(0x7fc00000)"),
        ("f32", 0xFF800001, "-SNAN(0xff800001)"),
        ("f64", 0x3FF80000, "1.5"),
        ("f16", 0x3C00, "1"),
        ("bf16", 0x3F80, "1"),
    ],
)
def test_text_is_nvdisasms(kind: str, bits: int, text: str) -> None:
    assert format_float(kind, bits) == text


@given(st.sampled_from(sorted(WIDTHS)), st.integers(0, (1 << 32) - 1))
def test_every_pattern_of_bits_comes_back(kind: str, bits: int) -> None:
    bits &= (1 << WIDTHS[kind]) - 1
    assert parse_float(kind, format_float(kind, bits)) == bits


@pytest.mark.parametrize(("kind", "text"), [("f16", "0.1"), ("bf16", "65537"), ("f16", "1e6"), ("f32", "R1"), ("f32", "+QNAN")])
def test_what_the_format_cannot_hold_is_refused(kind: str, text: str) -> None:
    """0.1 is no half; a NaN without payload could be any of millions."""
    assert parse_float(kind, text) is None
