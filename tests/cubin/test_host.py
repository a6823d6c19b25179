"""Fatbins and host files: found by content, unpacked, and one cubin picked or the choices named."""

from __future__ import annotations

import argparse
import json
import struct
from pathlib import Path

import pytest

from sassir.cli import extract, info
from sassir.cubin.fatbin import Compression, EntryKind
from sassir.cubin.host import open_binary, select_cubin
from sassir.errors import ContainerError

FOLDER = Path(__file__).parent.parent / "cubins"


def read(name: str) -> bytes:
    """A committed file."""
    return (FOLDER / name).read_bytes()


@pytest.mark.parametrize(
    ("name", "compression", "kernels"),
    [
        ("axpy.raw.fatbin", Compression.RAW, ["axpy"]),
        ("axpy.lz4.fatbin", Compression.LZ4, ["axpy"]),
        ("axpy.zstd.fatbin", Compression.ZSTD, ["axpy"]),
        ("axpy.so", Compression.ZSTD, ["axpy"]),
        ("hop.o", Compression.ZSTD, ["_Z7half_off", "hop"]),
    ],
)
def test_every_entry_is_found_and_unpacked(name: str, compression: Compression, kernels: list[str]) -> None:
    entries = open_binary(read(name), name)
    assert [(e.number, e.kind, e.arch, e.compression) for e in entries] == [
        (1, EntryKind.CUBIN, "sm_75", compression),
        (2, EntryKind.CUBIN, "sm_90", compression),
        (3, EntryKind.CUBIN, "sm_120", compression),
        (4, EntryKind.PTX, "compute_120", compression),
    ]
    for entry in entries[:3]:
        assert [section.kernel for section in entry.cubin.code] == kernels
    assert b".target sm_120" in entries[3].data


def test_a_cubin_in_a_fatbin_is_the_cubin_of_its_own_file() -> None:
    entries = {e.arch: e.data for e in open_binary(read("axpy.zstd.fatbin"))}
    assert {arch: entries[arch] for arch in ("sm_75", "sm_90")} == {arch: read(f"axpy.{arch}.cubin") for arch in ("sm_75", "sm_90")}


def test_a_cubin_is_its_own_only_entry() -> None:
    (entry,) = open_binary(read("axpy.sm_90a.cubin"))
    assert (entry.kind, entry.arch, entry.sm, entry.data) == (EntryKind.CUBIN, "sm_90a", 90, read("axpy.sm_90a.cubin"))


def test_containers_follow_each_other() -> None:
    fatbin = read("axpy.zstd.fatbin")
    entries = open_binary(fatbin + bytes(8) + fatbin)
    assert [e.number for e in entries] == list(range(1, 9))
    assert entries[0].data == entries[4].data


def test_one_architecture_is_selected() -> None:
    assert select_cubin(read("axpy.so"), "axpy.so", "sm_90").arch == "sm_90"
    assert select_cubin(read("axpy.sm_75.cubin")).arch == "sm_75"


def test_an_architecture_that_is_not_there_is_answered_with_those_that_are() -> None:
    with pytest.raises(ContainerError, match=r"axpy.so: no cubin for sm_80; there are compute_120, sm_120, sm_75, sm_90"):
        select_cubin(read("axpy.so"), "axpy.so", "sm_80")


def test_several_architectures_need_a_choice() -> None:
    with pytest.raises(ContainerError, match=r"3 cubins, for .*; choose one with --arch"):
        select_cubin(read("axpy.so"), "axpy.so")


def test_several_cubins_of_one_architecture_are_listed() -> None:
    twice = read("axpy.raw.fatbin") * 2
    expected = r"(?s)sassir extract --arch sm_90.*does not put them back.*entry 2: axpy\n  entry 6: axpy"
    with pytest.raises(ContainerError, match=expected):
        select_cubin(twice, "twice.fatbin", "sm_90")


def test_mercury_entries_are_named_but_not_read() -> None:
    fatbin = bytearray(read("axpy.raw.fatbin"))
    struct.pack_into("<H", fatbin, 16, EntryKind.MERCURY.value)
    entry = open_binary(bytes(fatbin))[0]
    assert (entry.kind, entry.arch) == (EntryKind.MERCURY, "sm_75")
    with pytest.raises(ContainerError, match="the entry is MERCURY, not a cubin"):
        _ = entry.cubin


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "empty"),
        (b"!<arch>\nwhatever", "static library; unpack it with `ar x`"),
        (b".version 8.0\n.target sm_90\n", "neither a cubin, a fatbin nor an ELF"),
    ],
)
def test_other_files_are_refused(data: bytes, message: str) -> None:
    with pytest.raises(ContainerError, match=message):
        open_binary(data)


def test_a_host_file_without_device_code_is_refused() -> None:
    renamed = read("axpy.so").replace(b".nv_fatbin\0", b".nv_fatbxn\0")
    with pytest.raises(ContainerError, match="without device code"):
        open_binary(renamed)


def call(command: object, *arguments: str) -> int:
    """Run a command as `sassir` does."""
    assert command in (extract, info)
    parser = argparse.ArgumentParser()
    module = extract if command is extract else info
    module.add_arguments(parser)
    return module.run(parser.parse_args(arguments))


def test_extract_writes_one_file_for_each_cubin(tmp_path: Path) -> None:
    assert call(extract, str(FOLDER / "axpy.so"), "-o", str(tmp_path / "out")) == 0
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["axpy.sm_120.cubin", "axpy.sm_75.cubin", "axpy.sm_90.cubin"]
    assert (tmp_path / "out" / "axpy.sm_90.cubin").read_bytes() == read("axpy.sm_90.cubin")


def test_extract_numbers_several_of_one_architecture(tmp_path: Path) -> None:
    (tmp_path / "twice.fatbin").write_bytes(read("axpy.zstd.fatbin") * 2)
    call(extract, str(tmp_path / "twice.fatbin"), "--arch", "sm_90", "-o", str(tmp_path))
    assert sorted(path.name for path in tmp_path.glob("*.cubin")) == ["twice.2.sm_90.cubin", "twice.6.sm_90.cubin"]


def test_extract_lists_without_writing(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    call(extract, str(FOLDER / "hop.o"), "--list")
    assert capsys.readouterr().out.splitlines()[1].split() == ["2", "CUBIN", "sm_90", "5808", "bytes", "zstd", "_Z7half_off,", "hop"]
    assert not list(tmp_path.iterdir())


def test_extract_writes_nothing_when_nothing_matches(tmp_path: Path) -> None:
    with pytest.raises(ContainerError, match="no cubin for sm_86"):
        call(extract, str(FOLDER / "axpy.so"), "--arch", "sm_86", "-o", str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_a_missing_file_is_an_error_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(ContainerError, match=r"none\.cubin: No such file"):
        call(info, str(tmp_path / "none.cubin"))


def test_info_as_json_can_be_read_again(capsys: pytest.CaptureFixture[str]) -> None:
    call(info, str(FOLDER / "calls.sm_90.cubin"), "--json")
    summary = json.loads(capsys.readouterr().out)
    assert (summary["arch"], [k["name"] for k in summary["kernels"]]) == ("sm_90", ["second", "first"])
    assert summary["kernels"][0]["parameters"][2] == {"ordinal": 2, "offset": 16, "size": 4}


def test_info_prints_a_line_for_each_kernel(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """However narrow the terminal is, nothing is cut."""
    monkeypatch.setenv("COLUMNS", "30")
    call(info, str(FOLDER / "axpy.so"), "--arch", "sm_120")
    out = capsys.readouterr().out
    assert "sm_120, ABI 8 ptxas" in out
    assert "kernel  registers  shared  stack  barriers  code  bank 0  block\n" in out
    assert "axpy: parameters (offset: size) 0x0: 4, 0x4: 4, 0x8: 8, 0x10: 8\n" in out
