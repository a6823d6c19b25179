"""What a launch does to the device: order of steps, packed parameters, symbols, shared memory, and every error as LaunchError."""

from __future__ import annotations

import struct
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sassir.errors import LaunchError
from sassir.gpu import runner
from sassir.launch import Launch, read_launch_file
from sassir.launch.data import Array

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
arguments = [{ u32 = "2 * n" }, "t", "y"]
"""


Kernel = Callable[[bytearray, bytes], None]

BASE = 256


class Error(Exception):
    """The error of the driver."""


class Function:
    def __init__(self, driver: FakeDriver, name: str) -> None:
        self.driver, self.name = driver, name

    def set_attribute(self, attribute: str, value: int) -> None:
        self.driver.log.append((attribute, value))

    def prepare(self, formats: list[str]) -> Function:
        self.format = formats
        return self

    def prepared_call(self, grid: tuple[int, ...], block: tuple[int, ...], parameters: bytes, shared_size: int) -> None:
        assert self.format == [f"{len(parameters)}s"]
        self.driver.log.append((self.name, grid, block, shared_size))
        self.driver.kernels[self.name](self.driver.memory, parameters)


class FakeDriver:
    """A stand-in for `pycuda.driver`: device memory as one bytearray, and kernels as Python functions of it."""

    Error = Error

    class function_attribute:
        MAX_DYNAMIC_SHARED_SIZE_BYTES = "max dynamic shared"

    class Context:
        @staticmethod
        def synchronize() -> None:
            """Kernels have ended already."""

    def __init__(self, kernels: dict[str, Kernel], symbols: dict[str, int]) -> None:
        self.kernels, self.log = kernels, list[Any]()
        self.memory = bytearray(BASE)
        self.symbols = {name: (self.mem_alloc(size), size) for name, size in symbols.items()}

    def module_from_buffer(self, cubin: bytes) -> FakeDriver:
        if cubin != b"cubin":
            raise Error("cuModuleLoadDataEx failed: device kernel image is invalid")
        return self

    def get_function(self, name: str) -> Function:
        if name not in self.kernels:
            raise Error("cuModuleGetFunction failed: named symbol not found")
        return Function(self, name)

    def get_global(self, name: str) -> tuple[int, int]:
        return self.symbols[name]

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
    return driver


def test_steps_run_in_order_on_the_same_buffers(fake: FakeDriver, tmp_path: Path) -> None:
    outputs = runner.run(b"cubin", launch(tmp_path))
    assert [*outputs] == ["y"]
    assert np.array_equal(outputs["y"], 4 * np.arange(10, 22, dtype=np.uint32).reshape(6, 2))
    assert fake.log == [("double", (3, 1, 1), (4, 2, 1), 0), ("max dynamic shared", 102400), ("double", (3, 1, 1), (8, 1, 1), 102400)]


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
    with pytest.raises(LaunchError, match="the symbol TABLE holds 64 bytes, its buffer 48"):
        runner.run(b"cubin", launch(tmp_path))


def test_without_pycuda_the_remedy_is_named() -> None:
    if find_spec("pycuda"):
        pytest.skip("PyCUDA is installed")
    with pytest.raises(LaunchError, match=r"pip install sassir\[gpu\]"):
        runner.load_driver()
