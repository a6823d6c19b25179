"""On a GPU: structs by value, filled globals and constants, cooperative launches and clusters; and a whole measurement."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from sassir.errors import LaunchError
from sassir.gpu import Worker
from sassir.gpu.ceilings import measure_ceilings
from sassir.gpu.pair import Pair, measure
from sassir.launch import read_launch_file
from sassir.launch.data import Array

pytestmark = pytest.mark.gpu

BENCH = Path(__file__).parents[2] / "bench"


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker(timeout=10) as worker:
        try:
            worker.describe_device()
        except LaunchError as error:
            pytest.skip(str(error))
        yield worker


@pytest.fixture(scope="module")
def cubin(worker: Worker, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    arch = worker.describe_device().arch
    if shutil.which("nvcc") is None:
        pytest.skip("nvcc is not on PATH")
    if arch < "sm_90" and len(arch) == 5:
        pytest.skip("clusters need sm_90")
    output = tmp_path_factory.mktemp("features") / "features.cubin"
    subprocess.run(["nvcc", "-cubin", f"-arch={arch}", "-o", str(output), str(Path(__file__).with_name("features.cu"))], check=True)
    return output.read_bytes()


def outputs(worker: Worker, cubin: bytes, folder: Path, text: str) -> Array:
    path = folder / "launch.toml"
    path.write_text(text)
    return worker.run(cubin, read_launch_file(path).launch("only"))["y"]


def test_structs_are_laid_out_as_the_compiler_does(worker: Worker, cubin: bytes, tmp_path: Path) -> None:
    found = outputs(
        worker,
        cubin,
        tmp_path,
        """
        launches.only = {}
        buffers.y = { dtype = "f64", shape = 32, role = "out" }
        [[steps]]
        kernel = "structs"
        grid = 1
        block = 32
        arguments = ["y", [{ i32 = 2 }, { f64 = 0.5 }], { i16 = 3 }, [{ i32 = 4 }, { f64 = 0.25 }]]
        """,
    )
    assert np.array_equal(found, np.full(32, 3003.5))


def test_globals_and_constants_are_filled(worker: Worker, cubin: bytes, tmp_path: Path) -> None:
    found = outputs(
        worker,
        cubin,
        tmp_path,
        """
        launches.only = {}
        symbols = { SCALE = "scale", OFFSET = "offset" }
        [buffers]
        scale = { dtype = "u32", shape = 1, role = "in", fill = "arange(7)" }
        offset = { dtype = "u32", shape = 1, role = "in", fill = "arange(1000)" }
        y = { dtype = "u32", shape = 32, role = "out" }
        [[steps]]
        kernel = "symbols"
        grid = 1
        block = 32
        arguments = ["y"]
        """,
    )
    assert np.array_equal(found, 7 * np.arange(32) + 1000)


def test_cooperative_blocks_wait_for_each_other(worker: Worker, cubin: bytes, tmp_path: Path) -> None:
    found = outputs(
        worker,
        cubin,
        tmp_path,
        """
        launches.only = {}
        [buffers]
        sum = { dtype = "u32", shape = 1, role = "inout", fill = "zeros" }
        y = { dtype = "u32", shape = 64, role = "out" }
        [[steps]]
        kernel = "cooperative"
        grid = 64
        block = 32
        arguments = ["sum", "y"]
        cooperative = true
        """,
    )
    assert np.array_equal(found, np.full(64, 64))


@pytest.mark.parametrize("size", [2, 8, 16])
def test_a_cluster_has_the_size_asked_for(worker: Worker, cubin: bytes, tmp_path: Path, size: int) -> None:
    found = outputs(
        worker,
        cubin,
        tmp_path,
        f"""
        launches.only = {{}}
        buffers.y = {{ dtype = "u32", shape = 32, role = "out" }}
        [[steps]]
        kernel = "cluster"
        grid = 32
        block = 32
        cluster = {size}
        arguments = ["y"]
        """,
    )
    assert np.array_equal(found, 100 * size + np.arange(32) % size)


def test_a_kernel_against_itself_is_the_same(worker: Worker) -> None:
    cubin = BENCH / "cubins" / f"sgemm_tiled.{worker.describe_device().arch}.cubin"
    if not cubin.exists():
        pytest.skip(f"{cubin.name} is not there")
    launch = read_launch_file(BENCH / "launch" / "sgemm_tiled.toml").launch("full")
    pair = Pair("sgemm_tiled", cubin.read_bytes(), cubin.read_bytes())
    result = measure(worker, pair, launch, worker.call(measure_ceilings), seconds=0.4)
    assert result.outcome == "equal"
    assert result.measured is not None
    comparison = result.measured.comparison
    assert comparison.verdict == "same"
    assert abs(comparison.ratio - 1) < 0.01
    assert 0 < comparison.original.minimum <= comparison.original.median
    assert 0 < result.measured.shares["f32"] < 1
