"""What a launch file says, as immutable records: buffers, scalars, kernel steps, facts and tolerance."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from zlib import crc32

import numpy as np

from sassir.errors import LaunchError
from sassir.launch.data import STORAGE, Array, generate, is_float, store

Role = Literal["in", "out", "inout", "scratch"]
Dim3 = tuple[int, int, int]

POINTER_BYTES = 8

WORK: Mapping[str, str] = {
    "bytes": "bytes that must move between the chip and its memory: every input read once, every output written once",
    "f32": "operations in single precision; a fused multiply-add is two",
    "f64": "operations in double precision",
    "tensor": "operations of the tensor cores on 16-bit floats",
}
"""What a launch file may count as the work of a launch."""


@dataclass(frozen=True)
class Buffer:
    """An array in global memory. `in` is only read, `out` and `inout` are results, `scratch` may end with anything."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    role: Role
    generator: str
    generator_arguments: tuple[float, ...]
    seed: int

    @property
    def length(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Number of bytes."""
        return self.length * STORAGE[self.dtype].itemsize

    @property
    def is_output(self) -> bool:
        """The content after the launch is a result."""
        return self.role in ("out", "inout")

    def initial(self) -> Array:
        """The content before the launch: the same bits every time, whatever other buffers there are. Raises LaunchError."""
        seed = (self.seed, crc32(self.name.encode()))
        return generate(self.generator, self.generator_arguments, self.dtype, self.length, seed).reshape(self.shape)


@dataclass(frozen=True)
class Scalar:
    """A kernel argument passed by value."""

    dtype: str
    value: int | float

    def stored(self) -> Array:
        """The value in its element type. Raises LaunchError for a number that the type cannot hold."""
        if is_float(self.dtype):
            return store(np.array(self.value, np.float64), self.dtype)
        limits = np.iinfo(STORAGE[self.dtype])
        if self.value != int(self.value) or not limits.min <= self.value <= limits.max:
            raise LaunchError(f"{self.value} is not a value of {self.dtype} ({limits.min} to {limits.max})")
        return np.array(int(self.value), STORAGE[self.dtype])


Argument = Buffer | Scalar


@dataclass(frozen=True)
class Step:
    """One kernel launch."""

    kernel: str
    grid: Dim3
    block: Dim3
    shared: int
    """Dynamic shared memory in bytes."""
    arguments: tuple[Argument, ...]
    structs: tuple[range, ...] = ()
    """Arguments that together are one kernel parameter, a struct passed by value."""
    cluster: Dim3 | None = None
    """Blocks of a cluster, where the launch chooses it; a kernel built with a cluster needs none here."""
    cooperative: bool = False
    """All blocks run at the same time and may wait for each other."""

    def offsets(self) -> tuple[int, ...]:
        """Byte offset of each argument in the parameter block, and its size at the end: laid out as C does, see `parameters`."""
        offsets = [offset for _, members in self._layout() for offset in members]
        return (*offsets, sum(self.parameters()[-1]) if offsets else 0)

    def parameters(self) -> list[tuple[int, int]]:
        """Byte offset and size of each kernel parameter. Fields are aligned to their own size, a struct to its largest field."""
        return [place for place, _ in self._layout()]

    def _layout(self) -> Iterator[tuple[tuple[int, int], list[int]]]:
        sizes = [POINTER_BYTES if isinstance(argument, Buffer) else STORAGE[argument.dtype].itemsize for argument in self.arguments]
        structs = {struct.start: struct for struct in self.structs}
        first = end = 0
        while first < len(sizes):
            members = structs.get(first, range(first, first + 1))
            alignment = max(sizes[i] for i in members)
            begin = end = _align(end, alignment)
            offsets = list[int]()
            for i in members:
                offsets.append(_align(end, sizes[i]))
                end = offsets[-1] + sizes[i]
            end = _align(end, alignment)
            yield (begin, end - begin), offsets
            first = members.stop

    def pack(self, addresses: Mapping[str, int]) -> bytes:
        """The parameter block, with each buffer at its address in `addresses`."""
        *offsets, size = self.offsets()
        block = bytearray(size)
        for offset, argument in zip(offsets, self.arguments, strict=True):
            if isinstance(argument, Buffer):
                data = addresses[argument.name].to_bytes(POINTER_BYTES, "little")
            else:
                data = argument.stored().tobytes()
            block[offset : offset + len(data)] = data
        return bytes(block)


def _align(offset: int, alignment: int) -> int:
    return -(-offset // alignment) * alignment


@dataclass(frozen=True)
class Tolerance:
    """How far results may differ where a float fact was used; without one they must be equal bit for bit."""

    absolute: float = 0
    relative: float = 0
    """Of the magnitude of the original's element."""
    differing: float = 0
    """Share of the elements that may lie outside."""


@dataclass(frozen=True)
class Facts:
    """What holds for every launch of the file beyond its sizes, and what of float arithmetic may be given up."""

    noalias: bool = False
    """No two pointer arguments reach the same memory."""
    align: int = 1
    """Every pointer argument is a multiple of this many bytes."""
    contract: bool = False
    """A product and a sum may become one fused multiply-add, rounded once."""
    ftz: bool = False
    """Denormals may become zero."""
    approx: bool = False
    """Division, square root and elementary functions may be the hardware's approximations."""


@dataclass(frozen=True)
class Launch:
    """One case of a launch file: sizes chosen, everything evaluated."""

    name: str
    sizes: Mapping[str, int | float] = field(hash=False)
    buffers: tuple[Buffer, ...]
    symbols: tuple[tuple[str, Buffer], ...]
    """Module globals and constants, and the buffer whose initial content they are filled with."""
    steps: tuple[Step, ...]
    work: Mapping[str, int] = field(default_factory=dict[str, int], hash=False)
    """The least that the launch has to do, by the keys of WORK."""

    @property
    def nbytes(self) -> int:
        """Bytes of all buffers together."""
        return sum(buffer.nbytes for buffer in self.buffers)

    @property
    def outputs(self) -> tuple[Buffer, ...]:
        """The buffers that hold results."""
        return tuple(buffer for buffer in self.buffers if buffer.is_output)


@dataclass(frozen=True)
class LaunchFile:
    """All launches of one kernel file."""

    path: Path
    launches: Mapping[str, Launch]
    facts: Facts
    tolerance: Tolerance | None
    timed: tuple[str, ...] = ()
    """The launches that a benchmark times, the most telling one first; the others are there for their results."""

    @property
    def small(self) -> tuple[Launch, ...]:
        """The launches that are there for their results; all where every one is timed."""
        return tuple([launch for name, launch in self.launches.items() if name not in self.timed] or self.launches.values())

    def launch(self, name: str) -> Launch:
        """The launch called `name`. Raises LaunchError."""
        if name not in self.launches:
            raise LaunchError(f"{self.path}: no launch {name!r}; there are {', '.join(self.launches)}")
        return self.launches[name]
