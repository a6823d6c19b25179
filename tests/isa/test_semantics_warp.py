"""Semantics of what the lanes of a warp do together: against loops over the lanes, and against numpy's matrix product."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import and_, or_, xor
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sassir.asm.parse import parse_instruction
from sassir.isa.semantics import Register, semantics

Array = NDArray[Any]
RANDOM = np.random.default_rng(7)
ALL = np.ones((1, 32), np.bool_)


def run(text: str, active: Array = ALL, arch: str = "sm_90", **registers: Array) -> dict[str, list[int]]:
    """The results on one warp, by register, for each lane."""
    evaluator = semantics(parse_instruction(text), arch)
    assert evaluator.warp
    sources = [registers[s.name].reshape(1, 32) for s in evaluator.sources if isinstance(s, Register)]
    results = evaluator.evaluate(active, *sources)
    return {name: np.broadcast_to(x, (1, 32))[0].tolist() for name, x in zip(evaluator.results, results, strict=True)}


def random_words(limit: int = 1 << 32) -> Array:
    return RANDOM.integers(0, limit, 32, dtype=np.uint32)


TARGETS: dict[str, Callable[[int, int, int], int]] = {
    "IDX": lambda lane, b, width: lane // width * width + b % width,
    "UP": lambda lane, b, width: lane - b,
    "DOWN": lambda lane, b, width: lane + b,
    "BFLY": lambda lane, b, width: lane ^ b,
}


@pytest.mark.parametrize("width", [32, 16, 8, 4, 2])
@pytest.mark.parametrize("mode", TARGETS)
def test_shuffle_within_segments(mode: str, width: int) -> None:
    """As CUDA's __shfl functions with a width: a lane keeps its own value if its partner is outside, for xor only behind, its segment."""
    a, b = random_words(), random_words(32)
    control = (32 - width) << 8 | (0 if mode == "UP" else 31)
    found = run(f"SHFL.{mode} P0, R0, R1, R2, {control:#x}", R1=a, R2=b)
    for lane in range(32):
        partner = TARGETS[mode](lane, int(b[lane]), width)
        inside = partner // width <= lane // width if mode == "BFLY" else partner // width == lane // width
        assert (found["P0"][lane], found["R0"][lane]) == (inside, a[partner if inside else lane])


@pytest.mark.parametrize("mode", ["ALL", "ANY", "EQ"])
@pytest.mark.parametrize("lanes", [0xFFFFFFFF, 0x0F0F00F0, 1])
@pytest.mark.parametrize("votes", [0xFFFFFFFF, 0x0F0F00F0, 0x00000010, 0])
def test_votes_count_active_lanes(mode: str, lanes: int, votes: int) -> None:
    bits = np.arange(32)
    active = (lanes >> bits & 1).astype(np.bool_)[None]
    found = run(f"VOTE.{mode} R0, P0, !P1", active, P1=~(votes >> bits & 1).astype(np.bool_))
    voted = lanes & votes
    expected = {"ALL": voted == lanes, "ANY": voted != 0, "EQ": voted in (0, lanes)}[mode]
    assert found["R0"] == [voted] * 32
    assert found["P0"] == [expected] * 32


def test_match_groups_equal_values() -> None:
    a = random_words(4)
    active = np.arange(32) % 5 != 0
    found = run("MATCH.ANY R0, R1", active[None], R1=a)["R0"]
    for lane in np.flatnonzero(active):
        assert found[lane] == sum(1 << other for other in range(32) if active[other] and a[other] == a[lane])
    assert run("MATCH.ALL P0, R0, R1", active[None], R1=np.where(active, 9, a).astype(np.uint32)) == {
        "P0": [True] * 32,
        "R0": [sum(1 << i for i in range(32) if i % 5)] * 32,
    }
    assert run("MATCH.ALL P0, R0, R1", active[None], R1=np.arange(32, dtype=np.uint32)) == {"P0": [False] * 32, "R0": [0] * 32}


REDUCTIONS: dict[str, Callable[[list[int]], int]] = {
    "": lambda x: reduce(and_, x),
    ".OR": lambda x: reduce(or_, x),
    ".XOR": lambda x: reduce(xor, x),
    ".SUM": lambda x: sum(x) & 0xFFFFFFFF,
    ".MIN": min,
    ".MAX": max,
    ".MIN.S32": lambda x: min(x, key=_signed),
    ".MAX.S32": lambda x: max(x, key=_signed),
}


def _signed(x: int) -> int:
    return x - (x >> 31 << 32)


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("count", [32, 7, 1])
def test_reductions(name: str, count: int) -> None:
    a = random_words()
    active = np.arange(32) < count
    assert run(f"REDUX{name} UR4, R1", active[None], R1=a)["UR4"] == [REDUCTIONS[name](a[:count].tolist())] * 32


def test_uniform_register_takes_the_first_active_lane() -> None:
    a = random_words()
    active = np.arange(32) >= 11
    assert run("R2UR UR4, R1", active[None], R1=a)["UR4"] == [int(a[11])] * 32
    elected = run("ELECT P0, UR4, PT", active[None])
    assert elected["UR4"] == [11] * 32
    assert np.flatnonzero(elected["P0"]).tolist() == [11]


def test_matrix_transposition() -> None:
    matrix = RANDOM.integers(0, 1 << 16, (8, 8), dtype=np.uint32)
    lanes = [(lane // 4, lane % 4 * 2) for lane in range(32)]
    rows = np.array([matrix[r, c] | matrix[r, c + 1] << 16 for r, c in lanes], np.uint32)
    columns = [int(matrix[c, r] | matrix[c + 1, r] << 16) for r, c in lanes]
    assert run("MOVM.16.MT88 R0, R1", R1=rows)["R0"] == columns


# Fragments as the PTX ISA draws them, element by element: lane l, register r, place p in the register.
def left_element(m: int, lane: int, register: int, place: int, each: int) -> tuple[int, int]:
    if m == 8:
        return lane // 4, (lane % 4) * each + place + register * 4 * each
    return lane // 4 + 8 * (register & 1), (lane % 4) * each + place + (register >> 1) * 4 * each


def right_element(lane: int, register: int, place: int, each: int) -> tuple[int, int]:
    return (lane % 4) * each + place + register * 4 * each, lane // 4


def result_element(lane: int, register: int) -> tuple[int, int]:
    return lane // 4 + 8 * (register >> 1), lane % 4 * 2 + (register & 1)


def load(matrix: Array, count: int, each: int, element: Callable[..., tuple[int, int]], first: int) -> dict[str, Array]:
    """The registers of a fragment whose elements have 32 / each bits, given as their bits."""
    width = 32 // each
    return {
        f"R{first + r}": np.array([sum(int(matrix[element(lane, r, p)]) << width * p for p in range(each)) for lane in range(32)], np.uint32)
        for r in range(count)
    }


INTEGER_SHAPES = {"8816": (8, 16, 8), "16816": (16, 16, 8), "16832": (16, 32, 8), "16864": (16, 64, 4)}


@pytest.mark.parametrize("shape", INTEGER_SHAPES)
@pytest.mark.parametrize(("left", "right"), [("S", "S"), ("U", "S"), ("U", "U")])
def test_integer_matrix_product(shape: str, left: str, right: str) -> None:
    m, k, width = INTEGER_SHAPES[shape]
    each = 32 // width
    a, b = RANDOM.integers(0, 1 << width, (m, k)), RANDOM.integers(0, 1 << width, (k, 8))
    c = RANDOM.integers(-(1 << 31), 1 << 31, (m, 8))
    low = {"S": 1 << (width - 1), "U": 0}
    values = [(x ^ low[kind]) - low[kind] for x, kind in ((a, left), (b, right))]
    registers = load(a, m * k // 32 // each, each, lambda lane, r, p: left_element(m, lane, r, p, each), 8)
    registers |= load(b, k * 8 // 32 // each, each, lambda lane, r, p: right_element(lane, r, p, each), 16)
    registers |= load(c & 0xFFFFFFFF, m // 4, 1, lambda lane, r, p: result_element(lane, r), 20)
    found = run(f"IMMA.{shape}.{left}{width}.{right}{width} R4, R8.ROW, R16.COL, R20", **registers)
    expected = values[0] @ values[1] + c
    for lane in range(32):
        for r in range(m // 4):
            assert found[f"R{4 + r}"][lane] == int(expected[result_element(lane, r)]) & 0xFFFFFFFF


def bits_of(kind: str, x: Array) -> Array:
    single = x.astype(np.float32).view(np.uint32)
    return {"F16": x.astype(np.float16).view(np.uint16).astype(np.uint32), "BF16": single >> 16, "TF32": single}[kind]


FLOAT_FORMS = [("1688.F32", "F16", 8), ("16816.F32", "F16", 16), ("16816.F32.BF16", "BF16", 16), ("1688.F32.TF32", "TF32", 8), ("1684.F32.TF32", "TF32", 4)]


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90", "sm_120"])
@pytest.mark.parametrize(("form", "kind", "k"), FLOAT_FORMS)
def test_floating_point_matrix_product_of_small_integers_is_exact(form: str, kind: str, k: int, arch: str) -> None:
    each = 1 if kind == "TF32" else 2
    a, b, c = RANDOM.integers(-9, 10, (16, k)), RANDOM.integers(-9, 10, (k, 8)), RANDOM.integers(-999, 999, (16, 8))
    registers = load(bits_of(kind, a), 16 * k // 32 // each, each, lambda lane, r, p: left_element(16, lane, r, p, each), 8)
    registers |= load(bits_of(kind, b), max(1, k * 8 // 32 // each), each, lambda lane, r, p: right_element(lane, r, p, each), 16)
    registers |= load(bits_of("TF32", c), 4, 1, lambda lane, r, p: result_element(lane, r), 20)
    found = run(f"HMMA.{form} R4, R8, R16, R20", arch=arch, **registers)
    expected = bits_of("TF32", a @ b + c)
    for lane in range(32):
        assert [found[f"R{4 + r}"][lane] for r in range(4)] == [int(expected[result_element(lane, r)]) for r in range(4)]


def test_aligned_addends_are_cut_off() -> None:
    """1 + 2^-24 + 2^-24: sm_90 keeps 25 fraction bits of aligned addends and sees both, but cuts the sum to the digits of a single."""
    zero = np.zeros(32, np.uint32)
    tiny = np.uint32(np.float16(2.0**-12).view(np.uint16))
    pair = tiny | tiny << np.uint32(16)
    registers = {f"R{i}": zero for i in range(8, 18)} | {f"R{20 + r}": zero | np.float32(1).view(np.uint32) for r in range(4)}
    registers |= {"R8": np.where(np.arange(32) % 4 == 0, pair, zero), "R16": np.where(np.arange(32) % 4 == 0, pair, zero)}
    found = run("HMMA.16816.F32 R4, R8, R16, R20", **registers)
    assert np.uint32(found["R4"][0]).view(np.float32) == np.float32(1 + 2.0**-23)
    registers["R16"] = np.where(np.arange(32) % 4 == 0, tiny, zero)
    found = run("HMMA.16816.F32 R4, R8, R16, R20", **registers)
    assert np.uint32(found["R4"][0]).view(np.float32) == np.float32(1)
