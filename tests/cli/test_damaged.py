"""Two hundred damaged inputs: each gives one error, exit status 1, no traceback, and no output file."""

import struct
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from sassir.cli.opt import main

CUBINS = Path(__file__).parent.parent / "cubins"
WHOLE = (CUBINS / "calls.sm_90.cubin").read_bytes()
LISTING = "        /*0000*/                   MOV R1, c[0x0][0x28] ;                       /* 0x00000a0000017a02 */\n"


def truncated() -> Iterator[tuple[str, bytes]]:
    """Cut inside the header, at every section's start and middle, and inside the section table."""
    (shoff,) = struct.unpack_from("<Q", WHOLE, 0x28)
    size, count = struct.unpack_from("<HH", WHOLE, 0x3A)
    cuts = {*range(1, 64, 2), shoff, shoff - 1}
    for i in range(1, count):
        offset, length = struct.unpack_from("<QQ", WHOLE, shoff + size * i + 24)
        cuts |= {offset, offset + length // 2, offset + length - 1, shoff + size * i, shoff + size * i + 33}
    for cut in sorted(c for c in cuts if 0 < c < len(WHOLE)):
        yield f"cut at {cut:#x}", WHOLE[:cut]


def flipped() -> Iterator[tuple[str, bytes]]:
    """Magic, class, byte order, machine, table offsets, entry sizes and section extents with wrong values."""
    (shoff,) = struct.unpack_from("<Q", WHOLE, 0x28)
    size, count = struct.unpack_from("<HH", WHOLE, 0x3A)
    rng = Random(1)
    for at in (0, 1, 2, 3, 4, 5, 0x12, 0x13, 0x3A, 0x3B):
        for bit in rng.sample(range(8), 3):
            yield f"bit {bit} of byte {at:#x} flipped", WHOLE[:at] + bytes([WHOLE[at] ^ 1 << bit]) + WHOLE[at + 1 :]
    for name, at, code in (("section table", 0x28, "<Q"), ("sections", 0x3C, "<H"), ("name table", 0x3E, "<H")):
        for value in (0xFFFF, 0xFFF0):
            yield f"{name} = {value:#x}", WHOLE[:at] + struct.pack(code, value) + WHOLE[at + struct.calcsize(code) :]
    for i in range(1, count):
        for field in (24, 32):
            at = shoff + size * i + field
            if struct.unpack_from("<I", WHOLE, shoff + size * i + 4)[0] != 8:  # not in the file
                yield f"section {i}: huge", WHOLE[:at] + struct.pack("<Q", 1 << 40) + WHOLE[at + 8 :]


def texts() -> Iterator[tuple[str, str, str]]:
    """Listings and modules with something missing."""
    yield "no operand", "sass", "        /*0000*/   FFMA R1, R2 ;\n"
    yield "no architecture", "sass", LISTING
    yield "half an encoding", "sass", "\t.target\tsm_90\n.text.k:\n" + LISTING
    yield "gap", "sass", "\t.target\tsm_90\n.text.k:\n        /*0000*/   NOP ;\n        /*0020*/   NOP ;\n"
    yield "noise", "sass", "hello, world\n"
    yield "unknown operation", "mlir", '"sass.nope"() : () -> ()\n'
    yield "unfinished module", "mlir", "builtin.module {\n"
    yield "no container", "mlir", "builtin.module {\n}\n"
    yield "empty listing", "sass", ""


def damaged() -> list[tuple[str, str, bytes]]:
    """Name, extension and content of every case."""
    cases = [(name, "cubin", data) for name, data in (*truncated(), *flipped())]
    cases += [(name, extension, text.encode()) for name, extension, text in texts()]
    cases += [("empty", "cubin", b""), ("other machine", "cubin", b"\x7fELF" + bytes(60)), ("not an ELF", "cubin", b"MZ" * 200)]
    return cases


def test_there_are_two_hundred() -> None:
    assert len(damaged()) >= 200


@pytest.mark.parametrize(("name", "extension", "data"), damaged(), ids=lambda v: v if isinstance(v, str) else "")
def test_one_error_and_no_output(name: str, extension: str, data: bytes, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source, target = tmp_path / f"in.{extension}", tmp_path / "out.cubin"
    source.write_bytes(data)
    assert main([str(source), "-o", str(target)]) == 1
    out, err = capfd.readouterr()
    assert out == ""
    assert "Traceback" not in err
    assert err.count("error:") == 1
    assert not target.exists()


def test_a_missing_file_is_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "none.cubin")]) == 1
    assert "none.cubin" in capfd.readouterr().err


def test_another_architecture_than_there_is(capfd: pytest.CaptureFixture[str]) -> None:
    assert main([str(CUBINS / "axpy.zstd.fatbin"), "--arch", "sm_80"]) == 1
    assert "sm_75" in capfd.readouterr().err
