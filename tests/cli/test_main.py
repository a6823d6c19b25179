"""The subcommands of `sassir`, as a user calls them."""

import json
from pathlib import Path

import pytest

from sassir.cli.main import COMMANDS, main

CUBINS = Path(__file__).parent.parent / "cubins"


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["--help"])
    assert exit_.value.code == 0
    out = capsys.readouterr().out
    assert all(name in out for name in COMMANDS)


def test_bad_usage_exits_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["roundtrip"])
    assert exit_.value.code == 2
    assert "FILE" in capsys.readouterr().err


def test_round_trip_counts(capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(CUBINS / f"axpy.sm_{sm}.cubin") for sm in (75, 80, 90, 100, 120)]
    assert main(["roundtrip", "--json", *files]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["files"] == result["cubins"] == 5
    assert result["exact"] == result["instructions"] > 100
    assert result["opaque"] == result["wrong"] == 0


def test_round_trip_of_a_fatbin_covers_all_its_cubins(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["roundtrip", "--json", str(CUBINS / "axpy.zstd.fatbin")]) == 0
    assert json.loads(capsys.readouterr().out)["cubins"] == 3


def test_round_trip_lists_what_no_table_describes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A planted word: kept, counted and named with its place."""
    data = bytearray((CUBINS / "axpy.sm_90.cubin").read_bytes())
    from sassir.cubin.cubin import Cubin

    section = Cubin.read(bytes(data), "axpy").code[0]
    at = data.index(section.data)
    data[at + 16 : at + 18] = b"\xff\x7f"
    (file := tmp_path / "planted.cubin").write_bytes(data)
    assert main(["roundtrip", "--json", str(file)]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["opaque"] == 1
    assert result["exact"] == result["instructions"] - 1
    assert "+0x10" in result["misses"][0]["where"]


def test_no_such_architecture(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["roundtrip", "--arch", "sm_86", str(CUBINS / "axpy.sm_90.cubin")]) == 1
    assert "no cubin for sm_86" in capsys.readouterr().err


def test_view_is_plain_when_piped(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["view", str(CUBINS / "axpy.sm_90.cubin")]) == 0
    out = capsys.readouterr().out
    assert "\x1b[" not in out
    assert "EXIT" in out
    assert "stall" in out


def test_info_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", "--json", str(CUBINS / "calls.sm_120.cubin")]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["arch"] == "sm_120"
    assert result["kernels"][0]["registers"] > 0


def test_extract_writes_cubins(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["extract", str(CUBINS / "axpy.lz4.fatbin"), "-o", str(tmp_path), "--arch", "sm_90"]) == 0
    (file,) = tmp_path.glob("*.cubin")
    assert file.read_bytes()[:4] == b"\x7fELF"
    assert main(["roundtrip", str(file)]) == 0
    assert capsys.readouterr().err == ""
