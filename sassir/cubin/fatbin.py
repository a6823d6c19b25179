"""Fat binaries: several cubins and PTX texts in one container, raw or compressed.

Layout, from files of CUDA 11.8 to 13.5 (the headers' field names are ours; there is no public description): containers, each
aligned to 8 bytes, of a 16-byte header and entries; an entry is a header of at least 64 bytes and the payload.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

import lz4.block  # pyright: ignore[reportMissingTypeStubs] (it has none)
import zstandard

from sassir.cubin.cubin import Cubin
from sassir.cubin.elf import located, take
from sassir.errors import ContainerError

MAGIC = 0xBA55ED50
_CONTAINER = struct.Struct("<IHHQ")  # magic, version, size of this header, size of all entries
_ENTRY = struct.Struct("<HHIQIIHHIIIQQQ")
_LZ4, _ZSTD = 0x2000, 0x8000
_MOST_BYTES = 1 << 30


class EntryKind(Enum):
    """What an entry holds, by the number in its header."""

    PTX = 1
    CUBIN = 2
    MERCURY = 16


class Compression(Enum):
    """How the payload of an entry is stored."""

    RAW = "raw"
    LZ4 = "LZ4"
    ZSTD = "zstd"


_MOST_EXPANSION = {Compression.LZ4: 255, Compression.ZSTD: 1 << 17}
"""Bytes that one compressed byte can become: 255 a length byte (LZ4), a whole block of 128 KiB (zstd)."""


def _raw(stored: bytes, size: int) -> bytes:
    return stored[:size]


def _lz4(stored: bytes, size: int) -> bytes:
    try:
        return lz4.block.decompress(stored, uncompressed_size=size)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    except lz4.block.LZ4BlockError as error:  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        raise ContainerError(f"the LZ4 payload is damaged: {error}") from None  # pyright: ignore[reportUnknownArgumentType]


def _zstd(stored: bytes, size: int) -> bytes:
    # The size in the frame decides how much memory is taken; a damaged one must not.
    try:
        if zstandard.frame_content_size(stored) not in (-1, size):
            raise ContainerError(f"the zstd frame is not of the {size} bytes that the entry states")
        return zstandard.ZstdDecompressor().decompress(stored, max_output_size=size)
    except zstandard.ZstdError as error:
        raise ContainerError(f"the zstd payload is damaged: {error}") from None


_UNPACK = {Compression.RAW: _raw, Compression.LZ4: _lz4, Compression.ZSTD: _zstd}


@dataclass(frozen=True)
class Entry:
    """One device file inside a container. Its payload is unpacked when it is asked for."""

    kind: EntryKind
    number: int
    """Position among all entries of the file, from 1."""
    sm: int
    """SM number in the header: 90 for both sm_90 and sm_90a."""
    name: str
    """The identifier that the header carries; most carry none."""
    compression: Compression
    stored: bytes
    size: int
    """Bytes of `data`."""
    where: str

    @cached_property
    def data(self) -> bytes:
        """The cubin or the PTX text. Raises ContainerError when the payload does not unpack to its stated size."""
        with located(self.where):
            data = _UNPACK[self.compression](self.stored, self.size)
        if len(data) != self.size:
            raise ContainerError(f"{self.where}: unpacked to {len(data)} bytes, expected {self.size}")
        return data

    @cached_property
    def cubin(self) -> Cubin:
        """The entry, read. Raises ContainerError when it is no sound cubin."""
        if self.kind is not EntryKind.CUBIN:
            raise ContainerError(f"{self.where}: the entry is {self.kind.name}, not a cubin")
        return Cubin.read(self.data, self.where)

    @cached_property
    def arch(self) -> str:
        """`sm_90a` for a cubin (its own header tells the letter), `compute_90` for PTX."""
        if self.kind is EntryKind.CUBIN:
            return self.cubin.arch
        return f"compute_{self.sm}" if self.kind is EntryKind.PTX else f"sm_{self.sm}"


def read_fatbin(data: bytes, where: str = "<bytes>", first: int = 1) -> tuple[Entry, ...]:
    """All entries of consecutive containers, numbered from `first`. Raises ContainerError for damage."""
    entries: list[Entry] = []
    position = 0
    while position < len(data):
        if not any(data[position : position + 8]):  # padding between containers
            position += 8
            continue
        magic, version, header, size = _CONTAINER.unpack(take(data, position, _CONTAINER.size, "a fatbin header", where))
        if (magic, version) != (MAGIC, 1):
            raise ContainerError(f"{where}: no fatbin header (version 1) at {position:#x}; found {magic:#010x}, version {version}")
        if header < _CONTAINER.size:
            raise ContainerError(f"{where}: a fatbin header of {header} bytes at {position:#x}, expected at least {_CONTAINER.size}")
        body = take(data, position + header, size, "the entries of a fatbin", where)
        entries += _read_entries(body, where, first + len(entries))
        position += header + size
    return tuple(entries)


def is_fatbin(data: bytes) -> bool:
    """It starts with a fatbin header."""
    return data[:4] == MAGIC.to_bytes(4, "little")


def _read_entries(body: bytes, where: str, first: int) -> Iterator[Entry]:
    position = 0
    number = first
    while position < len(body):
        place = f"{where}: entry {number}"
        fields = _ENTRY.unpack(take(body, position, _ENTRY.size, "the header", place))
        kind, _, header, padded, compressed, _, _, _, sm, name, name_size, flags, _, size = fields
        if header < _ENTRY.size:
            raise ContainerError(f"{place}: a header of {header} bytes, expected at least {_ENTRY.size}")
        if kind not in {k.value for k in EntryKind}:
            raise ContainerError(f"{place}: unknown kind {kind}; known are {', '.join(f'{k.value} {k.name}' for k in EntryKind)}")
        payload = take(body, position + header, padded, "the payload", place)
        compression = Compression.LZ4 if flags & _LZ4 else Compression.ZSTD if flags & _ZSTD else Compression.RAW
        if compression is Compression.RAW:
            stored, size = payload, padded
        else:
            stored = take(payload, 0, compressed, "the compressed payload", place)
            if size > _MOST_BYTES or size > _MOST_EXPANSION[compression] * compressed:
                raise ContainerError(f"{place}: {compressed} bytes cannot unpack to {size}: damaged")
        text = take(body, position + name, name_size, "the name", place).rstrip(b"\0").decode(errors="replace") if name else ""
        yield Entry(EntryKind(kind), number, sm, text, compression, stored, size, f"{place} (sm_{sm})")
        position += header + padded
        number += 1
