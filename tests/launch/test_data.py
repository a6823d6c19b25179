"""Initial contents: the same bits for the same seed, in the range that the name promises, in every element type."""

from __future__ import annotations

import numpy as np
import pytest

from sassir.errors import LaunchError
from sassir.launch.data import GENERATORS, POISON, STORAGE, generate, is_float, load, store

SEED = (1, 2)


ARGUMENTS = {"arange": (3, 2), "uniform": (0, 4), "normal": (60, 1), "integers": (0, 100), "offsets": (0, 3)}


@pytest.mark.parametrize("dtype", STORAGE)
@pytest.mark.parametrize("name", sorted(GENERATORS.keys() - {"nan"}))
def test_every_generator_makes_every_type_reproducibly(name: str, dtype: str) -> None:
    arguments = ARGUMENTS.get(name, ())
    first, second = (generate(name, arguments, dtype, 33, SEED) for _ in range(2))
    assert first.dtype == STORAGE[dtype]
    assert first.shape == (33,)
    assert first.tobytes() == second.tobytes()
    assert generate(name, arguments, dtype, 0, SEED).shape == (0,)


def test_nan_is_for_floats_and_an_unknown_name_is_refused() -> None:
    assert np.isnan(load(generate("nan", (), "bf16", 4, SEED), "bf16")).all()
    with pytest.raises(LaunchError, match="only floats have NaN"):
        generate("nan", (), "i32", 4, SEED)
    with pytest.raises(LaunchError, match="unknown generator 'unifrom'; known: zeros"):
        generate("unifrom", (), "f32", 4, SEED)


def test_another_seed_gives_other_values() -> None:
    assert (generate("uniform", (0, 1), "f32", 100, (1, 2)) != generate("uniform", (0, 1), "f32", 100, (2, 2))).any()


@pytest.mark.parametrize("dtype", ["f32", "f64", "f16", "bf16"])
def test_uniform_stays_in_its_range_and_fills_it(dtype: str) -> None:
    values = load(generate("uniform", (-3, 5), dtype, 10_000, SEED), dtype).astype(np.float64)
    assert -3 <= values.min() < -2.98
    assert 4.98 < values.max() <= 5


def test_integers_exclude_the_upper_bound() -> None:
    assert set(generate("integers", (-5, 6), "i32", 1000, SEED)) == set(range(-5, 6))
    assert set(generate("integers", (0, 256), "u8", 100_000, SEED)) == set(range(256))


def test_offsets_are_row_pointers() -> None:
    offsets = generate("offsets", (1, 9), "i32", 301, SEED)
    rows = np.diff(offsets)
    assert offsets[0] == 0
    assert (rows.min(), rows.max()) == (1, 8)


def test_poison_is_one_byte_repeated() -> None:
    assert set(generate("poison", (), "f64", 5, SEED).tobytes()) == {POISON}


@pytest.mark.parametrize(("dtype", "count"), [("f16", 20), ("bf16", 20), ("f32", 20), ("f64", 20), ("i32", 10), ("u8", 7)])
def test_edges_are_the_values_where_arithmetic_changes(dtype: str, count: int) -> None:
    stored = generate("edges", (), dtype, 5000, SEED)
    assert len(set(stored.view(f"u{stored.itemsize}").tolist())) == count
    if is_float(dtype):
        values = load(stored, dtype).astype(np.float64)
        smallest = 2.0 ** {"f16": -14, "bf16": -126, "f32": -126, "f64": -1022}[dtype]
        assert np.isnan(values).any()
        assert np.isinf(values).any()
        assert {1.0, -1.0, smallest, -smallest} <= set(values)
        assert ((values != 0) & (abs(values) < smallest)).any()


@pytest.mark.parametrize(
    ("value", "bits"),
    [
        (1.0, 0x3F80),
        (1.00390625, 0x3F80),  # halfway, to even
        (1.01171875, 0x3F82),  # halfway, to even
        (1.0039064, 0x3F81),
        (3.4028235e38, 0x7F80),
        (-0.0, 0x8000),
        (float("nan"), 0x7FC0),
    ],
)
def test_bf16_rounds_to_nearest_even(value: float, bits: int) -> None:
    assert int(store(np.array(value, np.float32), "bf16")) == bits


def test_a_nan_with_low_payload_stays_a_nan_in_bf16() -> None:
    nan = np.array([0x7F800001], np.uint32).view(np.float32)
    assert np.isnan(load(store(nan, "bf16"), "bf16")).all()
