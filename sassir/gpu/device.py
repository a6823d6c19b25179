"""The device that everything runs on: the first one, in its primary context, as it is found; no setting is ever changed."""

from __future__ import annotations

import atexit
import importlib
import shutil
import subprocess
from functools import cache
from importlib.metadata import version as package_version
from typing import Any, NamedTuple

from sassir.errors import LaunchError


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


class DeviceLimits(NamedTuple):
    """What measuring and explaining need to know of the device."""

    multiprocessors: int
    l2_bytes: int
    warps: int
    """Resident warps of a multiprocessor."""
    warp_threads: int


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
    """The device that kernels run on. Raises LaunchError without PyCUDA or a GPU."""
    cuda = load_driver()
    device, version = cuda.Device(0), cuda.get_driver_version()
    major, minor = device.compute_capability()
    supported = f"{version // 1000}.{version % 1000 // 10}"
    return DeviceInfo(device.name(), f"sm_{major}{minor}", supported, _driver_release(), package_version("pycuda"))


def device_limits() -> DeviceLimits:
    """Its sizes. Raises LaunchError without PyCUDA or a GPU."""
    cuda = load_driver()
    device, attribute = cuda.Device(0), cuda.device_attribute
    threads, warp = device.get_attribute(attribute.MAX_THREADS_PER_MULTIPROCESSOR), device.get_attribute(attribute.WARP_SIZE)
    l2 = device.get_attribute(attribute.L2_CACHE_SIZE)
    return DeviceLimits(device.get_attribute(attribute.MULTIPROCESSOR_COUNT), l2, threads // warp, warp)


def _driver_release() -> str | None:
    if shutil.which("nvidia-smi") is None:
        return None
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    return subprocess.run(query, capture_output=True, text=True, check=True).stdout.split()[0]
