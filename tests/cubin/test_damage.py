"""Damaged files: one ContainerError, or a file that still makes sense; never anything else, and never much memory."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from sassir.cubin.code import Code
from sassir.cubin.cubin import Cubin
from sassir.cubin.elf import HEADER, SECTION_HEADER, Elf
from sassir.cubin.fatbin import EntryKind
from sassir.cubin.host import open_binary
from sassir.cubin.summary import summarise
from sassir.errors import ContainerError

FOLDER = Path(__file__).parent.parent / "cubins"
NAMES = ("calls.cuda11.sm_90.cubin", "jump.sm_120.cubin", "hop.sm_75.cubin", "print.sm_90.cubin")
CONTAINERS = ("axpy.raw.fatbin", "axpy.lz4.fatbin", "axpy.zstd.fatbin", "axpy.so", "hop.o")


def use(data: bytes) -> bool:
    """Do everything that reads or moves a file; whether it was accepted."""
    rebuilt: list[bytes] = []
    message = ""
    try:
        for entry in open_binary(data, "the file"):
            assert len(entry.data) == entry.size
            if entry.kind is EntryKind.CUBIN:
                summarise(entry.cubin)
                code = {s.index: Code(s.data + bytes(16), {i: i for i in range(0, len(s.data), 16)}) for s in entry.cubin.code}
                rebuilt.append(entry.cubin.rebuild(code))
    except ContainerError as error:
        message = str(error)
    assert not message or message.startswith("the file"), "the message does not say where"
    for file in rebuilt:
        Cubin.read(file)
    return not message


def boundaries(data: bytes) -> Iterator[int]:
    """Every offset where a part of the file begins or ends."""
    elf = Elf.read(data)
    yield from (0, HEADER.size, elf.section_table, elf.segment_table)
    for section in elf.sections:
        yield from (section.offset, section.end, elf.section_table + SECTION_HEADER.size * section.index)


@pytest.mark.parametrize("name", [*NAMES, "axpy.so", "hop.o"])
def test_a_truncated_file_is_refused(name: str) -> None:
    data = (FOLDER / name).read_bytes()
    end = max(boundaries(data))
    cuts = {cut + by for cut in boundaries(data) for by in (-1, 0, 1) if 0 <= cut + by < end}
    assert len(cuts) > 30
    for cut in sorted(cuts):
        assert not use(data[:cut]), f"cut at {cut:#x}"


@pytest.mark.parametrize("name", NAMES)
def test_flipped_header_bits_give_one_clear_error_or_a_readable_file(name: str) -> None:
    data = (FOLDER / name).read_bytes()
    elf = Elf.read(data)
    table = range(elf.section_table, elf.section_table + SECTION_HEADER.size * len(elf.sections))
    names = (".symtab", ".nv.info", ".rela", ".rel.", ".debug_frame", ".debug_line", ".note", ".nv.compat")
    tables = [i for s in elf.sections if s.name.startswith(names) for i in range(s.offset, s.end)]
    rng = random.Random(190)
    refused = 0
    for places in (range(HEADER.size), table, tables):
        for _ in range(60):
            damaged = bytearray(data)
            damaged[rng.choice(places)] ^= 1 << rng.randrange(8)
            refused += not use(bytes(damaged))
    assert refused > 20


@pytest.mark.parametrize("name", CONTAINERS)
def test_a_damaged_fatbin_gives_one_clear_error_or_a_readable_file(name: str) -> None:
    data = (FOLDER / name).read_bytes()
    start = data.index(b"\x50\xed\x55\xba")
    rng = random.Random(55)
    refused = 0
    for i in range(80):
        damaged = bytearray(data)
        place = start + i if i < 80 else rng.randrange(start, len(data))
        damaged[place] ^= 1 << rng.randrange(8)
        refused += not use(bytes(damaged))
    assert refused > 10


def test_absurd_sizes_cost_no_memory() -> None:
    data = bytearray((FOLDER / "axpy.zstd.fatbin").read_bytes())
    data[16 + 0x38 : 16 + 0x40] = (1 << 40).to_bytes(8, "little")
    tracemalloc.start()
    with pytest.raises(ContainerError, match="cannot unpack to 1099511627776"):
        open_binary(bytes(data))
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()
