"""Reading real cubins of three toolkits and six architectures: what a cubin says, and that nothing is lost."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from sassir.cubin.code import Code, words
from sassir.cubin.cubin import Cubin
from sassir.cubin.nvinfo import read_attributes, write_attributes
from sassir.errors import ContainerError

CUBINS = sorted((Path(__file__).parent.parent / "cubins").glob("*.cubin"))
everywhere = pytest.mark.parametrize("path", CUBINS, ids=lambda path: path.name)


def read(name: str) -> Cubin:
    """A committed cubin."""
    path = next(path for path in CUBINS if path.name == f"{name}.cubin")
    return Cubin.read(path.read_bytes(), path.name)


@everywhere
def test_rebuilding_without_a_change_gives_the_same_bytes(path: Path) -> None:
    data = path.read_bytes()
    cubin = Cubin.read(data)
    same = {s.index: Code(s.data, {i: i for i in range(0, len(s.data), 16)}) for s in cubin.code}
    assert same, "a cubin without code tests nothing"
    assert cubin.rebuild({}) == data
    assert cubin.rebuild(same) == data


@everywhere
def test_nv_info_is_written_as_it_was_read(path: Path) -> None:
    cubin = Cubin.read(path.read_bytes())
    contents = [cubin.elf.content(s) for s in cubin.elf.sections if s.name.startswith((".nv.info", ".nv.compat"))]
    assert any(contents)
    for content in contents:
        assert write_attributes(read_attributes(content)) == content


@everywhere
def test_the_name_of_the_file_tells_the_architecture(path: Path) -> None:
    assert Cubin.read(path.read_bytes()).arch == path.name.split(".")[-2]


@pytest.mark.parametrize(
    ("name", "abi", "tool", "version"),
    [
        ("calls.cuda11.sm_90", 7, "", "11.8"),
        ("calls.cuda12.sm_90", 7, "", "12.9"),
        ("calls.cuda12.sm_100a", 8, "ptxas", "Cuda compilation tools, release 12.9, V12.9.86"),
        ("calls.sm_90", 8, "ptxas", "Cuda compilation tools, release 13.0, V13.0.88"),
    ],
)
def test_the_toolkit_is_named(name: str, abi: int, tool: str, version: str) -> None:
    cubin = read(name)
    assert (cubin.abi, cubin.toolkit.tool, cubin.toolkit.version) == (abi, tool, version)


def test_kernels_and_device_functions_share_a_section() -> None:
    second, first = read("calls.sm_90").code
    assert [(f.name, f.offset, f.size, f.entry) for f in second.functions] == [
        ("second", 0, 0x600, True),
        ("$second$_Z6smoothfi", 0x160, 0x4A0, False),
    ]
    assert (first.name, first.kernel, len(first.data)) == (".text.first", "first", 0x580)
    assert [f.name for f in first.functions] == ["first", "$first$_Z6smoothfi"]


def test_words_are_little_endian_and_128_bits_wide() -> None:
    section = read("axpy.sm_90").code[0]
    assert len(words(section)) == len(section.data) // 16
    assert words(section)[1].to_bytes(16, "little") == section.data[16:32]


def test_a_relocatable_object_lists_its_relocations() -> None:
    cubin = read("hop.sm_90")
    assert cubin.relocatable
    assert not cubin.elf.segments
    hop = next(s for s in cubin.code if s.kernel == "hop")
    calls = {(r.offset, r.type_name, r.symbol_name, r.addend) for r in hop.relocations}
    assert (0x230, "R_CUDA_ABS55_16_34", "_Z9elsewheref", 0) in calls
    assert (0x210, "R_CUDA_ABS32_LO_32", "hop", 0x240) in calls


def renamed(cubin: Cubin, symbol: int) -> bytes:
    """The file with one symbol's name set to the empty one."""
    assert cubin.symbol_section
    data = bytearray(cubin.data)
    struct.pack_into("<I", data, cubin.symbol_section.offset + 24 * symbol, 0)
    return bytes(data)


def test_symbols_are_told_apart_by_section_not_by_name() -> None:
    cubin = read("calls.sm_90")
    data = cubin.data
    for section in cubin.code:
        data = renamed(Cubin.read(data), section.functions[0].symbol)
    second, first = Cubin.read(data).code
    assert (second.functions[0].name, first.functions[0].name) == ("", "")
    assert (second.functions[0].size, first.functions[0].size) == (0x600, 0x580)


def test_an_orphan_nv_info_belongs_to_no_kernel() -> None:
    cubin = read("calls.sm_90")
    info = next(s for s in cubin.elf.sections if s.name == ".nv.info.first")
    data = bytearray(cubin.data)
    struct.pack_into("<I", data, cubin.elf.section_table + 64 * info.index + 44, 0)
    second, first = Cubin.read(bytes(data)).code
    assert first.attributes == ()
    assert second.attributes


@pytest.mark.parametrize(
    ("offset", "patch", "message"),
    [
        (0, b"\x7fEXE", "not an ELF file"),
        (4, b"\x01", "expected a 64-bit little-endian ELF file, found class 1"),
        (8, b"\x09", "ABI version 9"),
        (18, struct.pack("<H", 62), "ELF machine 62, expected 190"),
        (40, bytes(8), "no section headers"),
        (58, struct.pack("<H", 40), "section headers of 40 bytes"),
        (60, struct.pack("<H", 60000), "table of 60000 section headers"),
        (62, struct.pack("<H", 5000), "in section 5000"),
    ],
)
def test_a_wrong_header_field_is_named(offset: int, patch: bytes, message: str) -> None:
    data = read("axpy.sm_90").data
    with pytest.raises(ContainerError, match=f"axpy.cubin: .*{message}"):
        Cubin.read(data[:offset] + patch + data[offset + len(patch) :], "axpy.cubin")


def test_an_empty_file_is_refused() -> None:
    with pytest.raises(ContainerError, match="the file is empty"):
        Cubin.read(b"")


def test_code_of_half_an_instruction_is_refused() -> None:
    cubin = read("axpy.sm_90")
    data = bytearray(cubin.data)
    section = cubin.code[0]
    struct.pack_into("<Q", data, cubin.elf.section_table + 64 * section.index + 32, len(section.data) - 8)
    with pytest.raises(ContainerError, match=r"\.text\.axpy|function axpy"):
        Cubin.read(bytes(data))
