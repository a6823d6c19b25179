"""Division by a number that is known: the code of ptxas recognised, and a product with the reciprocal that gives the same."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from sassir.emulator import emulate
from sassir.launch import read_launch_file
from sassir.optimize import Pipeline, Task, optimise_cubin
from sassir.passes.divide import magic
from sassir.translate.cubin import read_program

BENCH = Path(__file__).parents[2] / "bench"
WORDS = 1 << 32


@pytest.mark.parametrize("d", [3, 5, 7, 10, 641, 1000, 6700417, 0x7FFFFFFF, 0x80000001, 0xFFFFFFFF])
@pytest.mark.parametrize("largest", [99, 0x1F3FFFF, WORDS // 2 - 1, WORDS - 1])
def test_the_reciprocal_is_exact_for_every_dividend_that_is_allowed(d: int, largest: int) -> None:
    found = magic(d, largest)
    if found is None:
        assert largest == WORDS - 1, "only the largest dividends need 33 bits"
        return
    m, s = found
    rng = random.Random(d)
    edges = [q * d + k for q in (1, 2, largest // d, largest // d - 1, rng.randrange(largest + 1) // d) for k in (-1, 0, 1)]
    for x in [0, 1, largest, *edges, *[rng.randrange(largest + 1) for _ in range(500)]]:
        if 0 <= x <= largest:
            assert m < WORDS
            assert x * m >> 32 + s == x // d


CASES = [("gelu_bias_f16", "small"), ("fuse2", "small"), ("conv3x3", "wide"), ("lbm_d2q9", "small"), ("cupy_ew3d", "tail")]


@pytest.mark.parametrize(("kernel", "case"), CASES)
def test_the_sequence_of_ptxas_becomes_a_product(kernel: str, case: str) -> None:
    """Of powers of two (gelu), of other numbers, signed and unsigned, of a uniform register (conv3x3), of 64-bit numbers that fit 32."""
    original, file = (BENCH / "cubins" / f"{kernel}.sm_90.cubin").read_bytes(), read_launch_file(BENCH / "launch" / f"{kernel}.toml")
    launch = file.launch(case)
    pipeline = Pipeline("test", 1, ("sass-specialize", "sass-specialize", "sass-divide", "sass-specialize"))
    made = optimise_cubin(Task(original, kernel, pipeline, file.facts, launch))
    assert all(outcome.changed for outcome in made.outcomes), made.outcomes
    before, after = emulate(original, launch), emulate(made.cubin, launch)
    assert all(np.array_equal(before[k].view(np.uint8), after[k].view(np.uint8)) for k in before)
    assert _conversions(made.cubin) < _conversions(original)


def test_a_divisor_that_is_not_known_stays() -> None:
    original = (BENCH / "cubins" / "gelu_bias_f16.sm_90.cubin").read_bytes()
    made = optimise_cubin(Task(original, "gelu_bias_f16", Pipeline("test", 1, ("sass-specialize", "sass-divide"))))
    assert _conversions(made.cubin) == _conversions(original)


def _conversions(cubin: bytes) -> int:
    """The reciprocals of divisions: F2I of their bits."""
    return sum(line.instruction.mnemonic == "F2I" for function in read_program(cubin).functions for line in function.lines)
