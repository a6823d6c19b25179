"""Launching one kernel of a test cubin, on the emulator or on a GPU, with buffers given as arrays."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sassir.emulator import emulate
from sassir.errors import LaunchError
from sassir.gpu.device import describe_device
from sassir.gpu.runner import run as run_on_gpu
from sassir.launch import Buffer, Launch, Scalar
from sassir.launch import Step as LaunchStep
from sassir.launch.records import Dim3

CUBINS = Path(__file__).parents[1] / "cubins"
TYPES = {
    "float16": "f16",
    "float32": "f32",
    "float64": "f64",
    "int32": "i32",
    "uint32": "u32",
    "int64": "i64",
    "uint64": "u64",
    "uint8": "u8",
}

Array = NDArray[Any]
Run = Callable[..., list[Array]]


class GivenBuffer(Buffer):
    """A buffer whose content is given, not generated."""

    content: Array

    def initial(self) -> Array:
        return self.content


def given(name: str, content: Array) -> GivenBuffer:
    buffer = GivenBuffer(name, TYPES[str(content.dtype)], content.shape, "inout", "zeros", (), 1)
    object.__setattr__(buffer, "content", content)
    return buffer


def launch_kernel(
    kernel: str, arguments: tuple[Array | int, ...], grid: Dim3 = (1, 1, 1), block: Dim3 = (32, 1, 1), shared: int = 0
) -> Launch:
    """A launch with arrays as buffers and whole numbers as 32-bit integers."""
    packed = [given(f"b{i}", a) if isinstance(a, np.ndarray) else Scalar("i32", a) for i, a in enumerate(arguments)]
    buffers = tuple([argument for argument in packed if isinstance(argument, Buffer)])
    return Launch("test", {}, buffers, (), (LaunchStep(kernel, grid, block, shared, tuple(packed)),))


def read_cubin(cubin: str | bytes) -> bytes:
    return (CUBINS / cubin).read_bytes() if isinstance(cubin, str) else cubin


@pytest.fixture
def emulated() -> Run:
    """Runs a kernel on the emulator: what each array among the arguments holds after the launch."""

    def run(cubin: str | bytes, kernel: str, *arguments: Array | int, **options: Any) -> list[Array]:
        shape = {key: options.pop(key) for key in ("grid", "block", "shared") if key in options}
        launch = launch_kernel(kernel, arguments, **shape)
        outputs = emulate(read_cubin(cubin), launch, str(cubin)[:60], **options)
        return [outputs[buffer.name] for buffer in launch.buffers]

    return run


@pytest.fixture(params=["emulator", pytest.param("gpu", marks=pytest.mark.gpu)])
def run(request: pytest.FixtureRequest, emulated: Run) -> Run:
    """Like `emulated`; and, where there is a GPU for the cubin, the same there."""
    if request.param == "emulator":
        return emulated
    try:
        device = describe_device()
    except LaunchError as error:
        pytest.skip(str(error))

    def on_gpu(cubin: str, kernel: str, *arguments: Array | int, **shape: Any) -> list[Array]:
        if f".{device.arch}." not in cubin:
            pytest.skip(f"{cubin} is not for {device.arch}")
        launch = launch_kernel(kernel, arguments, **shape)
        outputs = run_on_gpu(read_cubin(cubin), launch)
        return [outputs[buffer.name] for buffer in launch.buffers]

    return on_gpu
