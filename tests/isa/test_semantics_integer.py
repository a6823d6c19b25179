"""Integer, logic and predicate semantics against Python's integers, on edge values and random words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sassir.asm.parse import parse_instruction
from sassir.errors import SemanticsError
from sassir.isa.semantics import Register, semantics

M32, M64 = (1 << 32) - 1, (1 << 64) - 1
WORD = st.one_of(st.integers(0, M32), st.sampled_from([0, 1, 31, 32, 33, 63, 64, 0x7FFFFFFF, 0x80000000, 0x80000001, M32]))
FLAG = st.booleans()


def run(text: str, **registers: int | bool) -> dict[str, int]:
    """The results of an instruction on one lane, by register."""
    evaluator = semantics(parse_instruction(text), "sm_90")
    arrays: list[Any] = []
    for source in evaluator.sources:
        assert isinstance(source, Register)
        value = registers[source.name]
        arrays.append(np.array([value], np.bool_ if isinstance(value, bool) else np.uint32))
    results = evaluator.evaluate(*arrays)
    return {name: int(np.broadcast_to(x, (1,))[0]) for name, x in zip(evaluator.results, results, strict=True)}


def s32(x: int) -> int:
    return x - (x >> 31 << 32)


def s64(x: int) -> int:
    return x - (x >> 63 << 64)


def high(x: int) -> int:
    return x >> 32 & M32


CASES: dict[str, Callable[[int, int, int], int]] = {
    "IADD3 R0, R1, R2, R3": lambda a, b, c: a + b + c,
    "IADD3 R0, -R1, R2, -R3": lambda a, b, c: -a + b - c,
    "IADD3 R0, R1, -0x7, R3": lambda a, b, c: a - 7 + c,
    "VIADD R0, R1, -R2": lambda a, b, c: a - b,
    "IMAD R0, R1, R2, -R3": lambda a, b, c: a * b - c,
    "IMAD.HI R0, R1, R2, RZ": lambda a, b, c: high(s32(a) * s32(b)),
    "IMAD.HI.U32 R0, R1, R2, RZ": lambda a, b, c: high(a * b),
    "IABS R0, R1": lambda a, b, c: abs(s32(a)),
    "IMNMX R0, R1, R2, PT": lambda a, b, c: min(s32(a), s32(b)),
    "IMNMX.U32 R0, R1, R2, !PT": lambda a, b, c: max(a, b),
    "VIMNMX3 R0, R1, R2, R3, PT": lambda a, b, c: min(map(s32, (a, b, c))),
    "VIMNMX.RELU R0, R1, R2, PT": lambda a, b, c: max(0, min(s32(a), s32(b))),
    "VIADDMNMX R0, R1, -R2, R3, !PT": lambda a, b, c: max(s32(a - b & M32), s32(c)),
    "VIADDMNMX.U32 R0, R1, R2, R3, PT": lambda a, b, c: min(a + b & M32, c),
    "VABSDIFF.U32 R0, R1, R2, R3": lambda a, b, c: abs(a - b) + c,
    "VABSDIFF R0, R1, R2, R3": lambda a, b, c: abs(s32(a) - s32(b)) + c,
    "LEA R0, R1, R2, 0x5": lambda a, b, c: (a << 5) + b,
    "LEA R0, -R1, R2, 0x5": lambda a, b, c: -(a << 5) + b,
    "LEA.HI R0, -R1, R2, R3, 0x1b": lambda a, b, c: b - high((c << 32 | a) << 27),
    "LEA.HI R0, R1, R2, R3, 0x1b": lambda a, b, c: high((c << 32 | a) << 27) + b,
    "LEA.HI.SX32 R0, R1, R2, 0x1b": lambda a, b, c: high(s32(a) << 27) + b,
    "LOP3.LUT R0, R1, R2, R3, 0xca, !PT": lambda a, b, c: a & b | ~a & c,
    "LOP3.LUT R0, R1, R2, R3, 0xe8, !PT": lambda a, b, c: a & b | b & c | a & c,
    "LOP3.LUT R0, R1, R2, R3, 0x33, !PT": lambda a, b, c: ~b,
    "SHF.L.U32 R0, R1, R2, RZ": lambda a, b, c: a << min(b, 32),
    "SHF.R.U32.HI R0, RZ, R2, R3": lambda a, b, c: c >> min(b, 32),
    "SHF.R.S32.HI R0, RZ, R2, R3": lambda a, b, c: s32(c) >> min(b, 32),
    "SHF.R.U64 R0, R1, R2, R3": lambda a, b, c: (c << 32 | a) >> min(b, 64),
    "SHF.R.S64 R0, R1, R2, R3": lambda a, b, c: s64(c << 32 | a) >> min(b, 64),
    "SHF.L.U64.HI R0, R1, R2, R3": lambda a, b, c: high((c << 32 | a) << min(b, 64) & M64),
    "SHF.L.W.U32.HI R0, R1, R2, R3": lambda a, b, c: high((c << 32 | a) << b % 32),
    "SHF.R.W.U32 R0, R1, R2, R3": lambda a, b, c: (c << 32 | a) >> b % 32,
    "POPC R0, ~R1": lambda a, b, c: (~a & M32).bit_count(),
    "BREV R0, R1": lambda a, b, c: int(f"{a:032b}"[::-1], 2),
    "FLO.U32 R0, R1": lambda a, b, c: a.bit_length() - 1,
    "FLO R0, R1": lambda a, b, c: (a ^ (M32 if a >> 31 else 0)).bit_length() - 1,
    "BMSK R0, R1, R2": lambda a, b, c: ((1 << min(b, 32)) - 1) << min(a, 32),
    "BMSK.W R0, R1, R2": lambda a, b, c: ((1 << b % 32) - 1) << a % 32,
    "SGXT.U32 R0, R1, R2": lambda a, b, c: a & (1 << min(b, 32)) - 1,
    "IDP.4A.U8.S8 R0, R1, R2, R3": lambda a, b, c: sum((a >> i & 255) * (((b >> i & 255) ^ 128) - 128) for i in (0, 8, 16, 24)) + c,
    "I2I.S8.S32.SAT R0, R1": lambda a, b, c: max(-128, min(127, s32(a))),
}


@pytest.mark.parametrize("text", CASES)
@settings(max_examples=60, deadline=None)
@given(a=WORD, b=WORD, c=WORD)
def test_one_result(text: str, a: int, b: int, c: int) -> None:
    assert run(text, R1=a, R2=b, R3=c)["R0"] == CASES[text](a, b, c) & M32


@settings(max_examples=100, deadline=None)
@given(a=WORD, b=WORD, width=st.integers(1, 40))
def test_sign_extension(a: int, b: int, width: int) -> None:
    low = a & (1 << min(width, 32)) - 1
    expected = low - (low >> min(width, 32) - 1 << min(width, 32))
    assert run("SGXT R0, R1, R2", R1=a, R2=width)["R0"] == expected & M32


@settings(max_examples=200, deadline=None)
@given(a=st.integers(0, M64), b=st.integers(0, M64), c=st.integers(0, M64))
def test_carries_make_64_bit_sums_and_differences(a: int, b: int, c: int) -> None:
    low = run("IADD3 R0, P0, P1, R1, R2, R3", R1=a & M32, R2=b & M32, R3=c & M32)
    words = {"R1": high(a), "R2": high(b), "R3": high(c), "P0": bool(low["P0"]), "P1": bool(low["P1"])}
    assert run("IADD3.X R0, R1, R2, R3, P0, P1", **words)["R0"] << 32 | low["R0"] == a + b + c & M64
    low = run("IADD3 R0, P0, R1, -R2, RZ", R1=a & M32, R2=b & M32)
    top = run("IADD3.X R0, R1, ~R2, RZ, P0, !PT", R1=high(a), R2=high(b), P0=bool(low["P0"]))
    assert top["R0"] << 32 | low["R0"] == a - b & M64
    low = run("LEA R0, P0, R1, R2, 0x3", R1=a & M32, R2=b & M32)
    top = run("LEA.HI.X R0, R1, R2, R3, 0x3, P0", R1=a & M32, R2=high(b), R3=high(a), P0=bool(low["P0"]))
    assert top["R0"] << 32 | low["R0"] == (a << 3) + b & M64


@settings(max_examples=200, deadline=None)
@given(a=WORD, b=WORD, c=st.integers(0, M64))
def test_wide_products(a: int, b: int, c: int) -> None:
    words = {"R1": a, "R2": b, "R4": c & M32, "R5": high(c)}
    for text, product in (("IMAD.WIDE.U32", a * b), ("IMAD.WIDE", s32(a) * s32(b))):
        found = run(f"{text} R6, R1, R2, R4", **words)
        assert found["R7"] << 32 | found["R6"] == product + c & M64
    found = run("IMAD.WIDE.U32 R6, P0, R1, R2, R4", **words)
    assert (found["P0"] << 64 | found["R7"] << 32 | found["R6"]) == a * b + c


@settings(max_examples=200, deadline=None)
@given(a=WORD, b=WORD, c=WORD)
def test_byte_permutation(a: int, b: int, c: int) -> None:
    every = [(c << 32 | a) >> 8 * i & 255 for i in range(8)]
    chosen = [every[b >> 4 * i & 7] for i in range(4)]
    expected = [255 * (x >> 7) if b >> 4 * i & 8 else x for i, x in enumerate(chosen)]
    assert run("PRMT R0, R1, R2, R3", R1=a, R2=b, R3=c)["R0"] == sum(x << 8 * i for i, x in enumerate(expected))


MODES: dict[str, Callable[[int, int], int]] = {
    "F4E": lambda n, i: n + i,
    "B4E": lambda n, i: (n - i) % 8,
    "RC8": lambda n, i: n,
    "ECL": max,
    "ECR": min,
    "RC16": lambda n, i: n % 2 * 2 + i % 2,
}
"""Which byte of the eight goes to byte i, for the number n in the second operand (PTX ISA, prmt)."""


@pytest.mark.parametrize("mode", MODES)
@given(a=WORD, b=WORD, c=WORD)
def test_special_modes_of_byte_permutation(mode: str, a: int, b: int, c: int) -> None:
    pair = (c << 32 | a).to_bytes(8, "little")
    expected = bytes(pair[MODES[mode](b % 4, i)] for i in range(4))
    assert run(f"PRMT.{mode} R0, R1, R2, R3", R1=a, R2=b, R3=c)["R0"] == int.from_bytes(expected, "little")


@pytest.mark.parametrize("table", range(256))
def test_every_function_of_three_bits(table: int) -> None:
    found = run(f"LOP3.LUT R0, R1, R2, R3, {table:#x}, !PT", R1=0xF0, R2=0xCC, R3=0xAA)["R0"]
    assert found & 0xFF == table


@settings(max_examples=100, deadline=None)
@given(a=st.integers(0, M64), b=st.integers(0, M64))
def test_minimum_and_maximum_of_64_bits(a: int, b: int) -> None:
    words = {"R2": a & M32, "R3": a >> 32, "UR4": b & M32, "UR5": b >> 32}
    for predicate, expected in (("PT", min(a, b)), ("!PT", max(a, b))):
        found = run(f"IMNMX.U64 PT, PT, R0, R2, UR4, {predicate}, !PT", **words)
        assert found["R1"] << 32 | found["R0"] == expected
    with pytest.raises(SemanticsError, match="expected the predicates PT, PT and !PT, found P0, PT and !PT"):
        run("IMNMX.U64 P0, PT, R0, R2, UR4, !PT, !PT", **words)


@given(a=st.integers(0, M64), b=st.integers(0, M64), n=st.integers(1, 31))
def test_difference_from_a_shifted_number(a: int, b: int, n: int) -> None:
    low = run(f"LEA R0, P0, -R1, R2, {n:#x}", R1=a & M32, R2=b & M32)
    top = run(f"LEA.HI.X R0, ~R1, R2, R3, {n:#x}, P0", R1=a & M32, R2=high(b), R3=high(a), P0=bool(low["P0"]))
    assert top["R0"] << 32 | low["R0"] == b - (a << n) & M64


COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "LT": lambda a, b: a < b,
    "EQ": lambda a, b: a == b,
    "LE": lambda a, b: a <= b,
    "GT": lambda a, b: a > b,
    "NE": lambda a, b: a != b,
    "GE": lambda a, b: a >= b,
}


@pytest.mark.parametrize("name", COMPARISONS)
@settings(max_examples=60, deadline=None)
@given(a=st.integers(0, M64), b=st.integers(0, M64), same=FLAG, r=FLAG)
def test_64_bit_comparison_in_two_steps(name: str, a: int, b: int, same: bool, r: bool) -> None:
    b = b & M32 | a & ~M32 if same else b
    for kind, view in ((".U32", int), ("", s64)):
        low = run(f"ISETP.{name}.U32.AND P0, PT, R1, R2, PT", R1=a & M32, R2=b & M32)
        found = run(f"ISETP.{name}{kind}.AND.EX P0, P1, R1, R2, P2, P3", R1=high(a), R2=high(b), P2=r, P3=bool(low["P0"]))
        holds = COMPARISONS[name](view(a), view(b))
        assert found == {"P0": holds and r, "P1": (not holds) and r}


@given(a=FLAG, b=FLAG, c=FLAG, first=st.integers(0, 255), second=st.integers(0, 255))
def test_any_two_functions_of_three_predicates(a: bool, b: bool, c: bool, first: int, second: int) -> None:
    found = run(f"PLOP3.LUT P0, P1, !P2, P3, P4, {first:#x}, {second:#x}", P2=not a, P3=b, P4=c)
    place = 4 * a + 2 * b + c
    assert found == {"P0": first >> place & 1, "P1": second >> place & 1}


@given(a=WORD, mask=st.integers(1, 127), byte=st.sampled_from(["", ".B1", ".B2", ".B3"]))
def test_predicates_as_bits_of_a_register(a: int, mask: int, byte: str) -> None:
    place = 8 * int(byte[2:] or "0")
    found = run(f"R2P PR, R1{byte}, {mask:#x}", R1=a)
    assert found == {f"P{i}": a >> place + i & 1 for i in range(7) if mask >> i & 1}
    back = run(f"P2R{byte} R0, PR, R1, {mask:#x}", R1=~a & M32, **{name: bool(x) for name, x in found.items()})
    kept = ~a & M32 & ~(mask << place)
    assert back["R0"] == kept | a & mask << place
