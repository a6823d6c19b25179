"""Semantics of what the lanes of a warp do together: against loops over the lanes, and against numpy's matrix product."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sassir.asm.parse import parse_instruction
from sassir.isa.semantics import Register, semantics

Array = NDArray[Any]
RANDOM = np.random.default_rng(7)
ALL = np.ones((1, 32), np.bool_)


def run(text: str, active: Array = ALL, arch: str = "sm_90", /, **registers: Array) -> dict[str, list[int]]:
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
    "": lambda x: reduce(lambda p, q: p & q, x),
    ".OR": lambda x: reduce(lambda p, q: p | q, x),
    ".XOR": lambda x: reduce(lambda p, q: p ^ q, x),
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


Element = Callable[[int, int, int], tuple[int, int]]
"""Row and column of an element by lane, register and place in the register, as the PTX ISA draws the fragments."""


def left_element(m: int, each: int) -> Element:
    def find(lane: int, register: int, place: int) -> tuple[int, int]:
        down, along = (register & 1, register >> 1) if m == 16 else (0, register)
        return lane // 4 + 8 * down, (lane % 4) * each + place + along * 4 * each

    return find


def right_element(each: int) -> Element:
    return lambda lane, register, place: ((lane % 4) * each + place + register * 4 * each, lane // 4)


def result_element(lane: int, register: int, place: int = 0) -> tuple[int, int]:
    return lane // 4 + 8 * (register >> 1), lane % 4 * 2 + (register & 1)


def load(matrix: Array, each: int, element: Element, first: int) -> dict[str, Array]:
    """The registers from `first` on of a fragment whose elements have 32 / each bits, given as their bits."""
    width = 32 // each

    def word(lane: int, register: int) -> int:
        return sum(int(matrix[element(lane, register, place)]) << width * place for place in range(each))

    count = matrix.size // 32 // each
    return {f"R{first + r}": np.array([word(lane, r) for lane in range(32)], np.uint32) for r in range(count)}


def stored(found: dict[str, list[int]], m: int) -> Array:
    """The result matrix in registers from R4 on."""
    matrix = np.empty((m, 8), np.uint32)
    for lane in range(32):
        for register in range(m // 4):
            matrix[result_element(lane, register)] = found[f"R{4 + register}"][lane]
    return matrix


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
    registers = load(a, each, left_element(m, each), 8) | load(b, each, right_element(each), 16)
    registers |= load(c & 0xFFFFFFFF, 1, result_element, 20)
    found = run(f"IMMA.{shape}.{left}{width}.{right}{width} R4, R8.ROW, R16.COL, R20", **registers)
    assert (stored(found, m) == (values[0] @ values[1] + c).astype(np.uint32)).all()


def bits_of(kind: str, x: Array) -> Array:
    single = x.astype(np.float32).view(np.uint32)
    return {"F16": x.astype(np.float16).view(np.uint16).astype(np.uint32), "BF16": single >> 16, "TF32": single}[kind]


def product(form: str, kind: str, a: Array, b: Array, c: Array, arch: str = "sm_90") -> Array:
    """a * b + c on the tensor core, as the bits of singles."""
    each = 1 if kind == "TF32" else 2
    registers = load(bits_of(kind, a), each, left_element(16, each), 8) | load(bits_of(kind, b), each, right_element(each), 16)
    registers |= load(bits_of("TF32", c), 1, result_element, 20)
    return stored(run(f"HMMA.{form} R4, R8, R16, R20", ALL, arch, **registers), 16)


FLOAT_FORMS = [
    ("1688.F32", "F16", 8),
    ("16816.F32", "F16", 16),
    ("16816.F32.BF16", "BF16", 16),
    ("1688.F32.TF32", "TF32", 8),
    ("1684.F32.TF32", "TF32", 4),
]


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90", "sm_120"])
@pytest.mark.parametrize(("form", "kind", "k"), FLOAT_FORMS)
def test_floating_point_matrix_product_of_small_integers_is_exact(form: str, kind: str, k: int, arch: str) -> None:
    a, b, c = RANDOM.integers(-9, 10, (16, k)), RANDOM.integers(-9, 10, (k, 8)), RANDOM.integers(-999, 999, (16, 8))
    assert (product(form, kind, a, b, c, arch) == bits_of("TF32", a @ b + c)).all()


def test_aligned_addends_are_cut_off() -> None:
    """1 + 2^-24 + 2^-24: sm_90 keeps 25 fraction bits of aligned addends and sees both, but cuts the sum to the digits of a single."""
    tiny, one = np.zeros((16, 16)), np.ones((16, 8))
    tiny[:, :2] = 2.0**-12
    assert (product("16816.F32", "F16", tiny, tiny.T[:, :8], one) == bits_of("TF32", one + 2.0**-23)).all()
    tiny[:, 1] = 0
    assert (product("16816.F32", "F16", tiny, tiny.T[:, :8], one) == bits_of("TF32", one)).all()


@pytest.mark.parametrize(("arch", "fraction", "chunk"), [("sm_80", 24, 8), ("sm_90", 25, 16)])
def test_sums_of_aligned_addends(arch: str, fraction: int, chunk: int) -> None:
    """Element by element in rational numbers: products and accumulator cut off below the largest exponent, their sum cut to a single."""
    a, b, c = (RANDOM.choice([-1, 1], shape) * np.exp2(RANDOM.uniform(-6, 6, shape)) for shape in ((16, 16), (16, 8), (16, 8)))
    a, b, c = a.astype(np.float16), b.astype(np.float16), c.astype(np.float32)
    found = product("16816.F32", "F16", a, b, c, arch).view(np.float32)
    for i, j in np.ndindex(16, 8):
        total = Fraction(float(c[i, j]))
        for start in range(0, 16, chunk):
            pairs = [(float(a[i, k]), float(b[k, j])) for k in range(start, start + chunk)]
            highest = max(exponent(float(total)), *(exponent(x) + exponent(y) for x, y in pairs))
            unit = Fraction(2) ** (highest - fraction)
            total = unit * sum(math.trunc(x / unit) for x in (total, *(Fraction(x) * Fraction(y) for x, y in pairs)))
            digit = Fraction(2) ** (exponent(float(total)) - 23)
            total = digit * math.trunc(total / digit)
        assert found[i, j] == float(total)


def exponent(x: float) -> int:
    return math.frexp(x)[1] - 1
