"""One launch on the GPU, in this process. A kernel that fails leaves the process's CUDA context unusable: see `worker`."""

from __future__ import annotations

import atexit
import importlib
import shutil
import subprocess
from collections.abc import Mapping
from functools import cache, lru_cache
from importlib.metadata import version as package_version
from typing import Any, NamedTuple

import numpy as np

from sassir.errors import LaunchError
from sassir.launch import POISON, Buffer, Launch, Outputs, Step
from sassir.launch.data import STORAGE, Array

GUARD_BYTES = 256
"""Poison kept behind every buffer; a kernel that changes it wrote past the end."""
STATIC_SHARED_LIMIT = 48 * 1024
"""Dynamic shared memory that needs no opt-in (CUDA C++ Programming Guide, compute capabilities)."""




class DeviceInfo(NamedTuple):
    """Where a measurement was made."""

    name: str
    """As the driver calls it, `NVIDIA H200`."""
    arch: str
    """`sm_90`."""
    cuda: str
    """Newest CUDA version that the driver supports, `13.0`."""
    driver: str | None
    """Release of the driver, `580.159.04`; None where nvidia-smi, which comes with it, is not on PATH."""
    pycuda: str


@cache
def load_driver() -> Any:
    """PyCUDA's driver module, with the primary context of the first device current. Raises LaunchError without PyCUDA or a GPU."""
    try:
        cuda = importlib.import_module("pycuda.driver")
    except ImportError as error:
        raise LaunchError(f"PyCUDA cannot be imported ({error}); install it with `pip install sassir[gpu]`") from error
    try:
        cuda.init()
        context = cuda.Device(0).retain_primary_context()
        context.push()
    except cuda.Error as error:
        raise LaunchError(f"no usable GPU: {error}") from error
    atexit.register(context.pop)  # PyCUDA aborts a process that ends with a context on its stack.
    return cuda


def describe_device() -> DeviceInfo:
    """The device that `run` uses. Raises LaunchError without PyCUDA or a GPU."""
    cuda = load_driver()
    device, version = cuda.Device(0), cuda.get_driver_version()
    major, minor = device.compute_capability()
    supported = f"{version // 1000}.{version % 1000 // 10}"
    return DeviceInfo(device.name(), f"sm_{major}{minor}", supported, _driver_release(), package_version("pycuda"))


def _driver_release() -> str | None:
    if shutil.which("nvidia-smi") is None:
        return None
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    return subprocess.run(query, capture_output=True, text=True, check=True).stdout.split()[0]


def run(cubin: bytes, launch: Launch) -> Outputs:
    """Load `cubin`, fill symbols and buffers, run all steps, and return the content of the output buffers, bit for bit.

    Raises LaunchError for anything the driver reports (another architecture, an illegal address, too much shared memory, …)
    and for a write past the end of a buffer.
    """
    cuda = load_driver()
    doing = "loading the cubin"
    try:
        module = cuda.module_from_buffer(cubin)
        for symbol, buffer in launch.symbols:
            doing = f"filling the symbol {symbol}"
            _fill_symbol(cuda, module, symbol, _initial(buffer))
        doing = "allocating the buffers"
        memory = {buffer.name: _allocate(cuda, buffer) for buffer in launch.buffers}
        addresses = {name: int(allocation) for name, allocation in memory.items()}
        for step in launch.steps:
            doing = f"launching {step.kernel}"
            _start(cuda, module, step, addresses)
        doing = f"running {', '.join(step.kernel for step in launch.steps)}"
        cuda.Context.synchronize()
        for buffer in launch.buffers:
            _check_guard(cuda, addresses[buffer.name], buffer)
        return {buffer.name: _read(cuda, addresses[buffer.name], buffer) for buffer in launch.outputs}
    except cuda.Error as error:
        raise LaunchError(f"launch {launch.name!r}: {doing}: {error}") from error


@lru_cache(maxsize=8)
def _initial(buffer: Buffer) -> Array:
    # Original and candidate start from the same data: made once.
    return buffer.initial()


def _fill_symbol(cuda: Any, module: Any, symbol: str, content: Array) -> None:
    address, size = module.get_global(symbol)
    if size != content.nbytes:
        raise LaunchError(f"the symbol {symbol} holds {size} bytes, its buffer {content.nbytes}")
    cuda.memcpy_htod(address, content)


def _allocate(cuda: Any, buffer: Buffer) -> Any:
    allocation = cuda.mem_alloc(buffer.nbytes + GUARD_BYTES)
    if buffer.nbytes:
        cuda.memcpy_htod(allocation, _initial(buffer))
    cuda.memset_d8(int(allocation) + buffer.nbytes, POISON, GUARD_BYTES)
    return allocation


def _start(cuda: Any, module: Any, step: Step, addresses: Mapping[str, int]) -> None:
    function = module.get_function(step.kernel)
    if step.shared > STATIC_SHARED_LIMIT:
        function.set_attribute(cuda.function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES, step.shared)
    parameters = step.pack(addresses)
    function.prepare([f"{len(parameters)}s"]).prepared_call(step.grid, step.block, parameters, shared_size=step.shared)


def _check_guard(cuda: Any, address: int, buffer: Buffer) -> None:
    guard = np.empty(GUARD_BYTES, np.uint8)
    cuda.memcpy_dtoh(guard, address + buffer.nbytes)
    if (guard != POISON).any():
        raise LaunchError(f"the kernel wrote past the end of the buffer {buffer.name} ({buffer.nbytes} bytes)")


def _read(cuda: Any, address: int, buffer: Buffer) -> Array:
    content = np.empty(buffer.shape, STORAGE[buffer.dtype])
    if content.nbytes:
        cuda.memcpy_dtoh(content, address)
    return content
