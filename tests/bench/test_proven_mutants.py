"""Nothing wrong is proven: of mutants of rebuilt and unrolled kernels, those that are proven equal compute the same."""

from __future__ import annotations

import random
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from sassir.gpu.suite import find_suite
from sassir.optimize import Pipeline, Task, optimise_cubin
from sassir.verify.differential import Original, differential
from sassir.verify.ladder import Pair

pytest.importorskip("z3", reason="z3 is not installed (extra `symbolic`)")
mutations: Any = pytest.importorskip("mutations")
symbolic = import_module("sassir.verify.symbolic")

BENCH = Path(__file__).parents[2] / "bench"
COUNT = 12


@pytest.mark.parametrize(("kernel", "passes"), [("reduce_sum", ()), ("jacobi2d", ()), ("xxh32_rows", ("sass-specialize", "sass-unroll"))])
def test_what_is_proven_computes_the_same(kernel: str, passes: tuple[str, ...], tmp_path: Path) -> None:
    (entry,) = find_suite(BENCH, "sm_90", [kernel])
    original, launch = Original(entry.cubin.read_bytes()), entry.file.small[0]
    made = optimise_cubin(Task(original.cubin, kernel, Pipeline("test", 1, passes), entry.file.facts, launch if passes else None))
    path = tmp_path / entry.cubin.name
    path.write_bytes(made.cubin)
    possible = list(mutations.possible(entry._replace(cubin=path)))
    proven = 0
    for mutant in random.Random(3).sample(possible, COUNT):
        candidate = mutations.build(mutant, made.cubin)
        pair = Pair(original, candidate, (launch,), entry.file.facts, made.assumptions, None)
        if symbolic.SymbolicRung(2)(pair).verdict == "holds":
            proven += 1
            layer = differential(original, candidate, [launch], noalias=entry.file.facts.noalias)
            assert layer.verdict == "holds", f"{mutant.before} became {mutant.after}: {layer.detail}"
    assert proven < COUNT / 2
