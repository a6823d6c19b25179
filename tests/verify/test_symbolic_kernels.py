"""Proofs of whole kernels: what passes make is proven equal, mutants never, and the reason is named."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from xdsl.context import Context

from sassir.cubin.cubin import Cubin
from sassir.dialect.facts import KernelFacts
from sassir.errors import SassirWarning
from sassir.launch import Facts, LaunchFile
from sassir.optimize import Pipeline, Task, optimise_cubin
from sassir.passes.allocate_registers import AllocateRegisters
from sassir.passes.assign_control import AssignControl
from sassir.passes.virtualise import Virtualise
from sassir.translate.cubin import read_module, write_cubin
from sassir.translate.emit import emit_program
from sassir.verify.assumptions import Assumption, Assumptions
from sassir.verify.differential import Original
from sassir.verify.ladder import Pair
from sassir.verify.report import Layer

pytest.importorskip("z3", reason="z3 is not installed (extra `symbolic`)")
symbolic = import_module("sassir.verify.symbolic")

Bench = Callable[[str], tuple[bytes, LaunchFile]]
Edit = Callable[..., bytes]


def prove(
    original: bytes, candidate: bytes, launches: Any = (), stated: Facts | None = None, assumptions: Assumptions | None = None
) -> Layer:
    return symbolic.SymbolicRung(10)(Pair(Original(original), candidate, tuple(launches), stated or Facts(), assumptions, None))


@pytest.mark.parametrize(
    ("cubin", "section"),
    [
        ("bench/cubins/aes_tconst", ".nv.constant3"),
        ("bench/cubins/triton_attention", ".nv.global.init"),
        ("tests/cubins/jump", ".nv.constant2.jump"),
    ],
)
def test_equal_code_with_other_data_is_not_equal(cubin: str, section: str) -> None:
    data = (Path(__file__).parents[2] / f"{cubin}.sm_90.cubin").read_bytes()
    place = next(s for s in Cubin.read(data).elf.sections if s.name == section).offset
    other = data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
    assert prove(data, data).verdict == "holds"
    layer = prove(data, other)
    assert layer.verdict == "undecided"
    assert "start with other content" in layer.detail


def test_a_load_is_dropped_only_where_nothing_overlaps(twice: bytes, once: bytes, twice_file: Callable[[bool], LaunchFile]) -> None:
    for noalias, expected in ((True, "holds"), (False, "undecided")):
        file = twice_file(noalias)
        assert prove(twice, once, file.small, file.facts).verdict == expected
    unused = {"twice": Assumption(KernelFacts(), ())}
    assert prove(twice, once, twice_file(True).small, twice_file(True).facts, unused).verdict == "undecided"


@pytest.fixture(scope="module")
def reallocated() -> Callable[[bytes], bytes]:
    """The cubin with its registers chosen anew."""

    def make(cubin: bytes) -> bytes:
        module = read_module(cubin)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SassirWarning)
            for step in (Virtualise(), AllocateRegisters(), AssignControl()):
                step.apply(Context(), module)
        return write_cubin(emit_program(module))

    return make


@pytest.mark.parametrize("kernel", ["saxpy_gs", "reduce_sum", "sgemm_tiled", "cupy_l2norm", "softmax_rows", "su3_spill"])
def test_kernels_with_other_registers_are_proven_equal(bench: Bench, reallocated: Callable[[bytes], bytes], kernel: str) -> None:
    """Loops, barriers, shuffles, subroutines and spills included."""
    cubin, _ = bench(kernel)
    candidate = reallocated(cubin)
    assert candidate != cubin
    layer = prove(cubin, candidate)
    assert layer.verdict == "holds", layer.detail
    assert "pairs of places" in layer.checks[0].detail


@pytest.mark.parametrize(
    ("kernel", "passes"),
    [
        ("cupy_l2norm", "sass-gvn"),
        ("black_scholes", "sass-dce"),
        ("sgemm_tiled", "sass-schedule"),
        ("softmax_rows", "sass-schedule"),
        ("sgemm_tiled", "sass-specialize,sass-unroll"),
        ("xxh32_rows", "sass-specialize,sass-unroll"),
    ],
)
def test_what_passes_make_is_proven_equal(bench: Bench, kernel: str, passes: str) -> None:
    """Loops of a length that the facts of a launch tell, unrolled, and other orders of instructions."""
    cubin, file = bench(kernel)
    case = file.small[0] if "specialize" in passes else None
    made = optimise_cubin(Task(cubin, kernel, Pipeline("test", 1, tuple(passes.split(","))), file.facts, case))
    assert [outcome.reason for outcome in made.outcomes] == [""]
    if "unroll" in passes:
        before, after = made.outcomes[0].instructions
        assert after > 1.5 * before
    layer = prove(cubin, made.cubin, file.small, file.facts, made.assumptions)
    assert layer.verdict == "holds", layer.detail
    assert "pairs of places" in layer.checks[0].detail


@pytest.mark.parametrize(
    ("kernel", "old", "new", "reason"),
    [
        ("saxpy_gs", "IADD3 R0, R0, UR4, RZ ;", "IADD3 R0, R0, UR5, RZ ;", "@!P0 BRA"),
        ("saxpy_gs", "LDG.E R11, desc[UR6][R4.64] ;", "NOP ;", "global memory is not proven equal"),
        ("saxpy_gs", "@!P0 BRA `(.L0) ;", "@P0 BRA `(.L0) ;", "control differs"),
        ("silu_mul_bf16", "MOV R4, 0x230 ;", "MOV R4, 0x231 ;", "does not go back to its call"),
        ("reduce_sum", "@!P1 FADD R4, R4, R5 ;", "@!P1 FADD R4, R4, -R5 ;", "shared memory is not proven equal"),
    ],
)
def test_what_is_not_proven_is_named(bench: Bench, edited: Edit, kernel: str, old: str, new: str, reason: str) -> None:
    cubin, _ = bench(kernel)
    layer = prove(cubin, edited(cubin, (old, new)))
    assert layer.verdict == "undecided"
    assert reason in layer.detail
