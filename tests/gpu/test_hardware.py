"""On a GPU: a kernel that works, and each way to fail as what it is; after each failure the next launch works."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from sassir.errors import LaunchError
from sassir.gpu import Worker
from sassir.launch import Launch, read_launch_file

pytestmark = pytest.mark.gpu

LAUNCH = """
[launches]
small = { n = 1000 }

[buffers]
y = { dtype = "u32", shape = "n", role = "out" }

[[steps]]
kernel = "KERNEL"
grid = 4
block = 256
shared = SHARED
arguments = ["y", { u32 = "n" }]
"""


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker(timeout=10) as worker:
        try:
            worker.describe_device()
        except LaunchError as error:
            pytest.skip(str(error))
        yield worker


def build(folder: Path, arch: str) -> bytes:
    if shutil.which("nvcc") is None:
        pytest.skip("nvcc is not on PATH")
    source, cubin = Path(__file__).with_name("failures.cu"), folder / f"failures.{arch}.cubin"
    subprocess.run(["nvcc", "-cubin", f"-arch={arch}", "-o", str(cubin), str(source)], check=True)
    return cubin.read_bytes()


@pytest.fixture(scope="module")
def cubin(worker: Worker, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return build(tmp_path_factory.mktemp("native"), worker.describe_device().arch)


def launch(folder: Path, kernel: str, shared: int = 0) -> Launch:
    path = folder / "launch.toml"
    path.write_text(LAUNCH.replace("KERNEL", kernel).replace("SHARED", str(shared)))
    return read_launch_file(path).launch("small")


@pytest.mark.parametrize("shared", [0, 64 * 1024])
def test_it_works(worker: Worker, cubin: bytes, tmp_path: Path, shared: int) -> None:
    assert np.array_equal(worker.run(cubin, launch(tmp_path, "works", shared))["y"], 3 * np.arange(1000))


@pytest.mark.parametrize(
    ("kernel", "shared", "message"),
    [
        ("illegal_address", 0, "illegal memory access"),
        ("misaligned", 0, "misaligned address"),
        ("endless", 0, "no result after 10 s"),
        ("past_the_end", 0, "wrote past the end of the buffer y"),
        ("works", 1 << 20, "launching works: too much shared memory"),
        ("absent", 0, "launching absent: cuModuleGetFunction failed"),
    ],
)
def test_failure(worker: Worker, cubin: bytes, tmp_path: Path, kernel: str, shared: int, message: str) -> None:
    with pytest.raises(LaunchError) as caught:
        worker.run(cubin, launch(tmp_path, kernel, shared))
    assert message in str(caught.value)
    assert worker.run(cubin, launch(tmp_path, "works"))["y"][999] == 2997


def test_a_cubin_of_another_architecture_does_not_load(worker: Worker, tmp_path: Path) -> None:
    other = "sm_80" if worker.describe_device().arch != "sm_80" else "sm_90"
    with pytest.raises(LaunchError, match=rf"loading the cubin: it is for {other}, which this device"):
        worker.run(build(tmp_path, other), launch(tmp_path, "works"))
