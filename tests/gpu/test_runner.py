"""What a launch does to the device: order of steps, packed parameters, symbols, shared memory, and every error as LaunchError."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from sassir.errors import LaunchError
from sassir.gpu import DeviceInfo, pair, runner
from sassir.gpu.device import DeviceLimits, load_driver
from sassir.gpu.driver import DriverError, FunctionAttribute
from sassir.launch import Launch, read_launch_file
from sassir.launch.data import Array
from sassir.launch.records import Dim3

LAUNCH = """
[launches]
small = { n = 6 }

[buffers]
x = { dtype = "u32", shape = ["n", 2], role = "in", fill = "arange(10)" }
t = { dtype = "u32", shape = ["n", 2], role = "scratch" }
y = { dtype = "u32", shape = ["n", 2], role = "out" }

[symbols]
TABLE = "x"

[[steps]]
kernel = "double"
grid = 3
block = [4, 2]
arguments = [{ u32 = "2 * n" }, "x", "t"]

[[steps]]
kernel = "double"
grid = 3
block = 8
shared = "100 * 1024"
cluster = 3
cooperative = true
arguments = [{ u32 = "2 * n" }, "t", "y"]
"""


Kernel = Callable[[bytearray, bytes], None]

BASE = 256
LIMIT = 232448
"""Shared memory of a block, of an H200."""


class Error(Exception):
    """The error of the driver."""


class FakeModule:
    """A stand-in for `driver.Module`: kernels are Python functions of the device's memory."""

    def __init__(self, device: FakeDriver, cubin: bytes) -> None:
        if cubin != b"cubin":
            raise DriverError("cuModuleLoadData failed: device kernel image is invalid", 200)
        self.device = device

    def kernel(self, name: str) -> FakeKernel:
        if name not in self.device.kernels:
            raise DriverError("cuModuleGetFunction failed: named symbol not found", 500)
        return FakeKernel(self.device, name)

    def symbol(self, name: str) -> tuple[int, int]:
        return self.device.symbols[name]

    def unload(self) -> None:
        self.device.log.append("unload")


class FakeKernel:
    def __init__(self, device: FakeDriver, name: str) -> None:
        self.device, self.name = device, name

    def attribute(self, which: FunctionAttribute) -> int:
        return 1024

    def set_attribute(self, which: FunctionAttribute, value: int) -> None:
        if value > LIMIT:
            raise DriverError("cuFuncSetAttribute failed: invalid argument", 1)
        self.device.log.append((which.name, value))

    def resident_blocks(self, threads: int, shared: int) -> int:
        return 0 if shared > 48 * 1024 and ("MAX_DYNAMIC_SHARED_BYTES", shared) not in self.device.log else 4

    def prepare(self, grid: Dim3, block: Dim3, parameters: bytes, *more: object) -> Callable[[], None]:
        def launch() -> None:
            self.device.log.append((self.name, grid, block, *more))
            self.device.kernels[self.name](self.device.memory, parameters)

        return launch


class FakeDriver:
    """A stand-in for `pycuda.driver`: device memory as one bytearray."""

    Error = Error

    class device_attribute:
        MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = "limit"

    class Device:
        def __init__(self, number: int) -> None:
            assert number == 0

        def get_attribute(self, attribute: str) -> int:
            return LIMIT

    class Context:
        @staticmethod
        def synchronize() -> None:
            """Kernels have ended already."""

    def __init__(self, kernels: dict[str, Kernel], symbols: dict[str, int]) -> None:
        self.kernels, self.log = kernels, list[Any]()
        self.memory = bytearray(BASE)
        self.symbols = {name: (self.mem_alloc(size), size) for name, size in symbols.items()}

    def mem_alloc(self, size: int) -> int:
        self.memory.extend(bytes(-len(self.memory) % BASE))
        address = len(self.memory)
        self.memory.extend(bytes(size))
        return address

    def memset_d8(self, address: int, value: int, size: int) -> None:
        self.memory[address : address + size] = bytes([value]) * size

    def memcpy_htod(self, address: int, source: Array) -> None:
        self.memory[address : address + source.nbytes] = source.tobytes()

    def memcpy_dtoh(self, target: Array, address: int) -> None:
        target.reshape(-1).view(np.uint8)[:] = np.frombuffer(self.memory, np.uint8, target.nbytes, address)


def double(memory: bytearray, parameters: bytes) -> None:
    count, source, target = struct.unpack("<IxxxxQQ", parameters)
    values = np.frombuffer(memory, np.uint32, count, source) * np.uint32(2)
    memory[target : target + 4 * count] = values.tobytes()


def double_one_too_many(memory: bytearray, parameters: bytes) -> None:
    count, source, target = struct.unpack("<IxxxxQQ", parameters)
    double(memory, struct.pack("<IxxxxQQ", count + 1, source, target))


def launch(tmp_path: Path, text: str = LAUNCH) -> Launch:
    (tmp_path / "test.toml").write_text(text)
    return read_launch_file(tmp_path / "test.toml").launch("small")


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    driver = FakeDriver({"double": double}, {"TABLE": 48})
    monkeypatch.setattr(runner, "load_driver", lambda: driver)
    monkeypatch.setattr(runner, "Module", partial(FakeModule, driver))
    return driver


def test_steps_run_in_order_on_the_same_buffers(fake: FakeDriver, tmp_path: Path) -> None:
    outputs = runner.run(b"cubin", launch(tmp_path))
    assert [*outputs] == ["y"]
    assert np.array_equal(outputs["y"], 4 * np.arange(10, 22, dtype=np.uint32).reshape(6, 2))
    first, second = ("double", (3, 1, 1), (4, 2, 1), 0, None, False), ("double", (3, 1, 1), (8, 1, 1), 102400, (3, 1, 1), True)
    assert fake.log == [("MAX_DYNAMIC_SHARED_BYTES", 102400), first, second, "unload"]


def test_occupancy_is_that_of_a_kernel_that_may_have_its_shared_memory(
    fake: FakeDriver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def summary(cubin: bytes) -> SimpleNamespace:
        return SimpleNamespace(kernels=[SimpleNamespace(name="double", instructions=64)])

    monkeypatch.setattr(pair, "Cubin", SimpleNamespace(read=bytes))
    monkeypatch.setattr(pair, "summarise", summary)
    monkeypatch.setattr(pair, "device_limits", lambda: DeviceLimits(132, 50 << 20, warps=64, warp_threads=32))
    small, large = pair.read_resources(b"cubin", launch(tmp_path))
    assert (small.shared, large.shared) == (1024, 1024 + 100 * 1024)
    assert small.occupancy == large.occupancy == 4 / 64


def test_symbols_are_filled(fake: FakeDriver, tmp_path: Path) -> None:
    runner.run(b"cubin", launch(tmp_path))
    address, size = fake.symbols["TABLE"]
    assert np.array_equal(np.frombuffer(fake.memory, np.uint32, size // 4, address), np.arange(10, 22))


def test_a_write_past_the_end_is_an_error(fake: FakeDriver, tmp_path: Path) -> None:
    fake.kernels["double"] = double_one_too_many
    with pytest.raises(LaunchError, match=r"the kernel wrote past the end of the buffer t \(48 bytes\)"):
        runner.run(b"cubin", launch(tmp_path))


def test_errors_of_the_driver_say_what_was_being_done(fake: FakeDriver, tmp_path: Path) -> None:
    with pytest.raises(LaunchError, match=r"launch 'small': loading the cubin: .*image is invalid"):
        runner.run(b"not a cubin", launch(tmp_path))
    with pytest.raises(LaunchError, match=r"launch 'small': launching triple: .*named symbol not found"):
        runner.run(b"cubin", launch(tmp_path, LAUNCH.replace('"double"', '"triple"', 1)))
    fake.symbols["TABLE"] = (0, 64)
    with pytest.raises(LaunchError, match="filling the symbol TABLE: the symbol holds 64 bytes, its buffer 48"):
        runner.run(b"cubin", launch(tmp_path))


def test_too_much_shared_memory_is_explained(fake: FakeDriver, tmp_path: Path) -> None:
    need = r"too much shared memory: 1024 bytes static and 307200 dynamic, but a block has at most 232448"
    with pytest.raises(LaunchError, match=need):
        runner.run(b"cubin", launch(tmp_path, LAUNCH.replace('"100 * 1024"', '"300 * 1024"')))


def test_another_architecture_is_named(fake: FakeDriver, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse(cubin: bytes) -> None:
        raise DriverError("cuModuleLoadData failed: no kernel image is available", 209)

    monkeypatch.setattr(runner, "Module", refuse)
    monkeypatch.setattr(runner, "describe_device", lambda: DeviceInfo("GPU", "sm_90", "13.0", None, "1"))
    cubin = Path(__file__).parents[1] / "cubins" / "axpy.sm_80.cubin"
    with pytest.raises(LaunchError, match=r"loading the cubin: it is for sm_80, which this device \(sm_90\) does not run"):
        runner.run(cubin.read_bytes(), launch(tmp_path))


def test_without_pycuda_the_remedy_is_named() -> None:
    if find_spec("pycuda"):
        pytest.skip("PyCUDA is installed")
    with pytest.raises(LaunchError, match=r"pip install sassir\[gpu\]"):
        load_driver()
