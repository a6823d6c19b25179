"""The semantics against what an H200 gave: two warps of each form that bench/semantics_check.py ran on it.

Kept in bench/results/semantics-nvidia-h200.npz; the script compares all 131072 lanes of each form.
"""

from __future__ import annotations

import importlib
import sys
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sassir.encoders import table
from sassir.isa.semantics.definition import mnemonics

BENCH = Path(__file__).parents[2] / "bench"
RECORDED = BENCH / "results" / "semantics-nvidia-h200.npz"
CUBINS = sorted((BENCH / "cubins").glob("*.sm_90.cubin"))

sys.path.append(str(BENCH))  # a folder of scripts, not a package
forms: Any = importlib.import_module("semantics_forms")
kernel: Any = importlib.import_module("semantics_kernel")
comparison: Any = importlib.import_module("semantics_compare")


@cache
def recorded() -> dict[str, Any]:
    """The words of each form, of the shape (results, warps, 32)."""
    if not RECORDED.exists():
        pytest.skip(f"{RECORDED.name} is missing; bench/semantics_check.py makes it on a GPU")
    return comparison.read_recorded(RECORDED)


TESTED = {name: [*group] for name, group in groupby(sorted(forms.forms(), key=forms.mnemonic), forms.mnemonic)}
"""Forms by mnemonic."""


@pytest.mark.parametrize("name", TESTED)
def test_results_are_those_of_the_hardware(name: str) -> None:
    words = recorded()
    for form in TESTED[name]:
        if form in words:
            test = kernel.probe(form)
            ours = comparison.expected(test, comparison.recorded_warps(form))
            assert comparison.close(test, *[x.reshape(len(ours), -1) for x in (ours, words[form])]).all(), form


def test_a_changed_result_is_noticed() -> None:
    test = kernel.probe("FADD R32, R16, R20")
    ours = comparison.expected(test, np.arange(2)).reshape(1, -1)
    changed = ours.copy()
    changed[0, 17] ^= 1
    assert np.flatnonzero(~comparison.close(test, ours, changed)[0]).tolist() == [17]


def test_results_are_recorded_for_every_form_that_the_hardware_executes() -> None:
    """The list has one form of each rule that it does not execute."""
    assert set(forms.forms()) - set(recorded()) == {
        "IADD3 R32, -R16, -R20, R24",
        "VIMNMX.U32.RELU R32, R16, R20, PT",
        "HADD2.F32 R32, R16.H1_H1, R20.H0_H0",
        "HFMA2.BF16_V2.SAT R32, R16, R20, R24",
    }


def test_every_mnemonic_of_the_architecture_is_tested() -> None:
    """Of UF2FP, nvdisasm names no format on sm_90."""
    assert (set(table(kernel.ARCH).mnemonics) & mnemonics()) - set(TESTED) == {"UF2FP"}


@pytest.mark.parametrize("path", CUBINS, ids=[path.name.split(".")[0] for path in CUBINS])
def test_every_form_in_the_bench_kernels_is_tested(path: Path) -> None:
    assert forms.untested(path.read_bytes()) == {}
