"""What this device reaches at most, measured in the same run as the kernels that are held against it: see probes.cu."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from sassir.gpu.device import describe_device, device_limits, load_driver
from sassir.gpu.driver import Module, PreparedLaunch

COPY_BYTES = 1 << 30
"""What is copied, where memory allows: far beyond every L2 cache."""
TIMES = 8
"""Launches of each probe; the fastest counts."""
ROUNDS = 1024
BLOCK, BLOCKS_PER_MULTIPROCESSOR = 128, 8

_STEPS, _CHAINS, _WARPS = 8, 16, BLOCK // 32
_MULTIPLY_ADDS = 2 * BLOCK * _CHAINS * _STEPS
_WARP_PRODUCTS = 2 * 16 * 8 * 16 * _WARPS * _STEPS
_WARP_GROUP_PRODUCTS = 2 * 64 * 128 * 16 * _STEPS
"""Operations of a block in one round."""


@cache
def probes() -> Module:
    """The kernels of probes.cu, loaded. Raises LaunchError."""
    load_driver()
    return Module(files("sassir.gpu").joinpath("probes.fatbin").read_bytes())


def delay(nanoseconds: int) -> PreparedLaunch:
    """A launch that keeps the device busy for so long, so that what is queued behind it runs without gaps."""
    return probes().kernel("wait").prepare((1, 1, 1), (1, 1, 1), struct.pack("<Q", nanoseconds))


def measure_ceilings() -> Mapping[str, float]:
    """Work per second by the keys of `sassir.launch.records.WORK`: bytes copied (read and written), operations of each unit."""
    cuda = load_driver()
    size = min(COPY_BYTES, cuda.mem_get_info()[0] // 4) // 16 * 16
    source, target = cuda.mem_alloc(size), cuda.mem_alloc(size)
    cuda.memset_d32(int(source), 0x3F9E3779, size // 4)
    tensor = _WARP_GROUP_PRODUCTS if describe_device().arch == "sm_90" else _WARP_PRODUCTS
    operations = {"f32": ("fma_f32", _MULTIPLY_ADDS), "f64": ("fma_f64", _MULTIPLY_ADDS), "tensor": ("mma_f16", tensor)}
    ceilings = {"bytes": 2 * size / _fastest("copy", struct.pack("<QQQ", int(source), int(target), size // 16))}
    for key, (kernel, per_round) in operations.items():
        ceilings[key] = _blocks() * ROUNDS * per_round / _fastest(kernel, struct.pack("<Qi", int(target), ROUNDS))
    return ceilings


def _blocks() -> int:
    return device_limits().multiprocessors * BLOCKS_PER_MULTIPROCESSOR


def _fastest(kernel: str, parameters: bytes) -> float:
    """Seconds of the fastest of several launches."""
    cuda = load_driver()
    launch = probes().kernel(kernel).prepare((_blocks(), 1, 1), (BLOCK, 1, 1), parameters)
    launch()
    seconds = list[float]()
    for _ in range(TIMES):
        begin, end = cuda.Event(), cuda.Event()
        begin.record()
        launch()
        end.record()
        end.synchronize()
        seconds.append(begin.time_till(end) * 1e-3)
    return min(seconds)
