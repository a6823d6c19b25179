"""Kernels through the CUDA driver library itself, since PyCUDA has neither clusters nor cooperative launches nor occupancy.

Everything happens in the context that is current in this thread, see `device.load_driver`. Names and numbers are those of cuda.h.
"""

from __future__ import annotations

import ctypes
from enum import IntEnum
from functools import cache

from sassir.errors import LaunchError
from sassir.launch.records import Dim3

NO_BINARY_FOR_GPU = 209
_BUFFER_POINTER, _BUFFER_SIZE = 1, 2
_COOPERATIVE, _CLUSTER_DIMENSION = 2, 4
STATIC_SHARED_LIMIT = 48 * 1024
"""Dynamic shared memory that needs no opt-in (CUDA C++ Programming Guide, compute capabilities)."""
PORTABLE_CLUSTER = 8
"""Blocks of a cluster that every device with clusters can hold (ibid.)."""


class FunctionAttribute(IntEnum):
    """CUfunction_attribute."""

    SHARED_BYTES = 1
    LOCAL_BYTES = 3
    REGISTERS = 4
    MAX_DYNAMIC_SHARED_BYTES = 8
    NON_PORTABLE_CLUSTER_SIZE_ALLOWED = 14


class _Attribute(ctypes.Structure):
    """CUlaunchAttribute."""

    _fields_ = (("id", ctypes.c_int), ("pad", ctypes.c_char * 4), ("value", ctypes.c_uint * 16))


class _Config(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = (
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(_Attribute)),
        ("count", ctypes.c_uint),
    )


class DriverError(LaunchError):
    """A call of the driver that failed, with its status."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


@cache
def _library() -> ctypes.CDLL:
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise LaunchError(f"the NVIDIA driver cannot be loaded: {error}") from error


def _call(name: str, *arguments: object) -> None:
    status = getattr(_library(), name)(*arguments)
    if status:
        message = ctypes.c_char_p()
        _library().cuGetErrorString(status, ctypes.byref(message))
        raise DriverError(f"{name} failed: {(message.value or b'unknown error').decode()}", status)


class Module:
    """A loaded cubin or fatbin. It stays loaded until `unload`."""

    def __init__(self, image: bytes) -> None:
        """Raises DriverError, with status NO_BINARY_FOR_GPU for another architecture."""
        self._handle = ctypes.c_void_p()
        _call("cuModuleLoadData", ctypes.byref(self._handle), ctypes.c_char_p(image))

    def kernel(self, name: str) -> Kernel:
        """The entry `name`. Raises DriverError."""
        handle = ctypes.c_void_p()
        _call("cuModuleGetFunction", ctypes.byref(handle), self._handle, ctypes.c_char_p(name.encode()))
        return Kernel(handle)

    def symbol(self, name: str) -> tuple[int, int]:
        """Address and size in bytes of a module global or constant. Raises DriverError."""
        address, size = ctypes.c_uint64(), ctypes.c_size_t()
        _call("cuModuleGetGlobal_v2", ctypes.byref(address), ctypes.byref(size), self._handle, ctypes.c_char_p(name.encode()))
        return address.value, size.value

    def unload(self) -> None:
        """Give its memory back; its kernels must not be launched any more."""
        _call("cuModuleUnload", self._handle)


class Kernel:
    """An entry of a module."""

    def __init__(self, handle: ctypes.c_void_p) -> None:
        self._handle = handle

    def attribute(self, which: FunctionAttribute) -> int:
        """An attribute. Raises DriverError."""
        value = ctypes.c_int()
        _call("cuFuncGetAttribute", ctypes.byref(value), ctypes.c_int(which), self._handle)
        return value.value

    def set_attribute(self, which: FunctionAttribute, value: int) -> None:
        """Set an attribute of this kernel, not of the device. Raises DriverError."""
        _call("cuFuncSetAttribute", self._handle, ctypes.c_int(which), ctypes.c_int(value))

    def resident_blocks(self, threads: int, shared: int) -> int:
        """How many blocks of so many threads and bytes of dynamic shared memory run on one multiprocessor at a time."""
        blocks = ctypes.c_int()
        arguments = (ctypes.byref(blocks), self._handle, ctypes.c_int(threads), ctypes.c_size_t(shared))
        _call("cuOccupancyMaxActiveBlocksPerMultiprocessor", *arguments)
        return blocks.value

    def prepare(
        self, grid: Dim3, block: Dim3, parameters: bytes, shared: int = 0, cluster: Dim3 | None = None, cooperative: bool = False
    ) -> PreparedLaunch:
        """A launch with these parameters. Raises DriverError.

        More dynamic shared memory than STATIC_SHARED_LIMIT must have been allowed with MAX_DYNAMIC_SHARED_BYTES.
        """
        if cluster and cluster[0] * cluster[1] * cluster[2] > PORTABLE_CLUSTER:
            self.set_attribute(FunctionAttribute.NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1)
        return PreparedLaunch(self._handle, grid, block, parameters, shared, cluster, cooperative)


class PreparedLaunch:
    """A launch with everything in memory as the driver wants it. Calling it starts the kernel; it does not wait for it."""

    def __init__(
        self, kernel: ctypes.c_void_p, grid: Dim3, block: Dim3, parameters: bytes, shared: int, cluster: Dim3 | None, cooperative: bool
    ) -> None:
        attributes = list[_Attribute]()
        if cluster:
            attributes.append(_Attribute(_CLUSTER_DIMENSION, b"", (*cluster,)))
        if cooperative:
            attributes.append(_Attribute(_COOPERATIVE, b"", (1,)))
        self._kernel = kernel
        self._attributes = (_Attribute * len(attributes))(*attributes)
        self._config = _Config(grid, block, shared, None, self._attributes, len(attributes))
        self._parameters = ctypes.create_string_buffer(parameters, len(parameters))
        self._size = ctypes.c_size_t(len(parameters))
        places = (ctypes.addressof(self._parameters), ctypes.addressof(self._size))
        self._extra = (ctypes.c_void_p * 5)(_BUFFER_POINTER, places[0], _BUFFER_SIZE, places[1], None)

    def __call__(self) -> None:
        """Raises DriverError for a launch that the device cannot do."""
        _call("cuLaunchKernelEx", ctypes.byref(self._config), self._kernel, None, self._extra)
