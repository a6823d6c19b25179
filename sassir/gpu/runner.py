"""One launch on the GPU, in this process. A kernel that fails leaves the process's CUDA context unusable: see `worker`."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import numpy as np

from sassir.cubin.cubin import Cubin
from sassir.errors import LaunchError
from sassir.gpu.device import describe_device, load_driver
from sassir.gpu.driver import NO_BINARY_FOR_GPU, STATIC_SHARED_LIMIT, DriverError, FunctionAttribute, Kernel, Module, PreparedLaunch
from sassir.launch import POISON, Buffer, Launch, Outputs
from sassir.launch.data import STORAGE, Array

GUARD_BYTES = 256
"""Poison kept behind every buffer; a kernel that changes it wrote past the end."""


def run(cubin: bytes, launch: Launch) -> Outputs:
    """Load `cubin`, fill symbols and buffers, run all steps, and return the content of the output buffers, bit for bit.

    Raises LaunchError for anything the driver reports (another architecture, an illegal address, too much shared memory, …)
    and for a write past the end of a buffer.
    """
    cuda = load_driver()
    module = load(cubin, launch)
    with doing(launch, "allocating the buffers"):
        buffers = DeviceBuffers(launch)
    for start in bind(module, launch, buffers):
        with doing(launch, "launching"):
            start()
    with doing(launch, f"running {', '.join(step.kernel for step in launch.steps)}"):
        cuda.Context.synchronize()
        outputs = buffers.read()
        module.unload()
        return outputs


@contextmanager
def doing(launch: Launch, what: str) -> Generator[None]:
    """Errors of the driver inside become LaunchErrors that say what was being done."""
    try:
        yield
    except (LaunchError, load_driver().Error) as error:
        raise LaunchError(f"launch {launch.name!r}: {what}: {error}") from error


def load(cubin: bytes, launch: Launch) -> Module:
    """The cubin loaded, its globals and constants filled as the launch says. Raises LaunchError."""
    load_driver()  # a fresh process has no context yet
    with doing(launch, "loading the cubin"):
        try:
            module = Module(cubin)
        except DriverError as error:
            if error.status != NO_BINARY_FOR_GPU:
                raise
            raise LaunchError(f"it is for {Cubin.read(cubin).arch}, which this device ({describe_device().arch}) does not run") from error
    for name, buffer in launch.symbols:
        with doing(launch, f"filling the symbol {name}"):
            address, size = module.symbol(name)
            content = initial(buffer)
            if size != content.nbytes:
                raise LaunchError(f"the symbol holds {size} bytes, its buffer {content.nbytes}")
            load_driver().memcpy_htod(address, content)
    return module


def bind(module: Module, launch: Launch, buffers: DeviceBuffers) -> list[PreparedLaunch]:
    """One launch for each step, in order, with the addresses of `buffers`. Raises LaunchError."""
    prepared = list[PreparedLaunch]()
    for step in launch.steps:
        with doing(launch, f"launching {step.kernel}"):
            kernel = module.kernel(step.kernel)
            parameters = step.pack(buffers.addresses)
            allow_shared(kernel, step.shared)
            prepared.append(kernel.prepare(step.grid, step.block, parameters, step.shared, step.cluster, step.cooperative))
    return prepared


def allow_shared(kernel: Kernel, dynamic: int) -> None:
    """Let `kernel` have so many bytes of dynamic shared memory. Raises LaunchError where a block cannot have them."""
    if dynamic <= STATIC_SHARED_LIMIT:
        return
    try:
        kernel.set_attribute(FunctionAttribute.MAX_DYNAMIC_SHARED_BYTES, dynamic)
    except DriverError as error:
        cuda = load_driver()
        limit = cuda.Device(0).get_attribute(cuda.device_attribute.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)
        static = kernel.attribute(FunctionAttribute.SHARED_BYTES)
        need = f"{static} bytes static and {dynamic} dynamic, but a block has at most {limit}"
        raise LaunchError(f"too much shared memory: {need} ({error})") from error


@lru_cache(maxsize=16)
def initial(buffer: Buffer) -> Array:
    """`buffer.initial()`: original and candidate start from the same data, made once."""
    return buffer.initial()


class DeviceBuffers:
    """One set of a launch's buffers in device memory, initialised, each with poison behind it. Raises the errors of PyCUDA."""

    def __init__(self, launch: Launch) -> None:
        self._launch = launch
        self._memory = {buffer.name: load_driver().mem_alloc(buffer.nbytes + GUARD_BYTES) for buffer in launch.buffers}
        self.addresses = {name: int(allocation) for name, allocation in self._memory.items()}
        self.reset()

    def reset(self) -> None:
        """Give every buffer its initial content and poison behind it."""
        cuda = load_driver()
        for buffer in self._launch.buffers:
            address = self.addresses[buffer.name]
            if buffer.nbytes:
                cuda.memcpy_htod(address, initial(buffer))
            cuda.memset_d8(address + buffer.nbytes, POISON, GUARD_BYTES)

    def read(self) -> Outputs:
        """The content of the output buffers. Raises LaunchError when a kernel wrote past the end of any buffer."""
        for buffer in self._launch.buffers:
            guard = _copy(self.addresses[buffer.name] + buffer.nbytes, np.empty(GUARD_BYTES, np.uint8))
            if (guard != POISON).any():
                raise LaunchError(f"the kernel wrote past the end of the buffer {buffer.name} ({buffer.nbytes} bytes)")
        return {b.name: _copy(self.addresses[b.name], np.empty(b.shape, STORAGE[b.dtype])) for b in self._launch.outputs}


def _copy(address: int, content: Array) -> Any:
    if content.nbytes:
        load_driver().memcpy_dtoh(content, address)
    return content
