"""Every kernel of the suite computes what its numpy reference does: on the emulator, and on a GPU where there is one."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sassir.emulator import Checks, emulate
from sassir.errors import EmulationError, LaunchError
from sassir.gpu import Worker
from sassir.gpu.suite import Entry, find_suite
from sassir.launch import Launch, Outputs, compare

references: Any = pytest.importorskip("references")

SUITE = find_suite(Path(__file__).parents[2] / "bench", "sm_90")
CASES = [(entry, launch) for entry in SUITE for name, launch in entry.file.launches.items() if name not in entry.file.timed]

every_small_launch = pytest.mark.parametrize(("entry", "launch"), CASES, ids=[f"{e.kernel}-{launch.name}" for e, launch in CASES])


def check(entry: Entry, launch: Launch, outputs: Outputs) -> None:
    tolerance = references.REFERENCES[entry.kernel].tolerance
    difference = compare(launch, references.reference(entry.kernel, launch), outputs, tolerance)
    assert difference is None, str(difference)


@every_small_launch
def test_on_the_emulator(entry: Entry, launch: Launch) -> None:
    # Triton's kernels exchange registers in shuffles that not every lane has written, and ignore what they receive.
    checks = Checks(registers=not entry.kernel.startswith("triton"))
    try:
        outputs = emulate(entry.cubin.read_bytes(), launch, checks=checks)
    except EmulationError as error:
        if "not modelled" in str(error):
            pytest.skip(str(error))
        raise
    check(entry, launch, outputs)


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker(timeout=10) as worker:
        try:
            if worker.describe_device().arch != "sm_90":
                pytest.skip("the cubins of the suite are for sm_90")
        except LaunchError as error:
            pytest.skip(str(error))
        yield worker


@pytest.mark.gpu
@every_small_launch
def test_on_a_gpu(worker: Worker, entry: Entry, launch: Launch) -> None:
    check(entry, launch, worker.run(entry.cubin.read_bytes(), launch))


def test_there_is_a_reference_for_every_kernel_and_a_reason_for_every_tolerance() -> None:
    assert set(references.REFERENCES) == {entry.kernel for entry in SUITE}
    for reference in references.REFERENCES.values():
        exact = reference.tolerance == type(reference.tolerance)()
        assert exact == (not reference.reason)


def test_a_wrong_result_is_found() -> None:
    entry = next(e for e in SUITE if e.kernel == "saxpy_gs")
    launch = entry.file.launch("tail")
    outputs = dict(references.reference(entry.kernel, launch))
    check(entry, launch, outputs)
    outputs["y"] = np.nextafter(outputs["y"], np.float32(np.inf))
    with pytest.raises(AssertionError, match="1000 of 1000 elements differ"):
        check(entry, launch, outputs)


def test_fused_multiply_add_rounds_once() -> None:
    random = np.random.default_rng(1)
    a, b = (random.standard_normal(3000).astype(np.float32) for _ in range(2))
    # Sums that cancel, sums halfway between two numbers but for a trifle, and ordinary ones.
    near = -(a * b).astype(np.float32)
    c = np.concatenate([near[:1000], near[1000:2000] * np.float32(2**24), random.standard_normal(1000).astype(np.float32)])
    found = references.elementwise.fma(a, b, c)
    for x, y, z, result in zip(a.tolist(), b.tolist(), c.tolist(), found, strict=True):
        exact = Fraction(x) * Fraction(y) + Fraction(z)
        neighbours = np.nextafter(result, np.array([-np.inf, np.inf], np.float32))
        assert all(abs(exact - Fraction(float(result))) <= abs(exact - Fraction(float(other))) for other in neighbours)
