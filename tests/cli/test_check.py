"""`sassir check`: what it prints, in each form, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sassir.cli.main import main

CUBINS = Path(__file__).parents[1] / "cubins"
SOUND = str(CUBINS / "calls.sm_90.cubin")


@pytest.fixture
def damaged(tmp_path: Path) -> str:
    """A cubin whose first EXIT is listed 16 bytes too far."""
    data = (CUBINS / "axpy.sm_90.cubin").read_bytes()
    exits = bytes((4, 0x1C, 8, 0))  # an SVAL attribute of that number, with two offsets
    at = data.index(exits) + 4
    path = tmp_path / "damaged.cubin"
    path.write_bytes(data[:at] + bytes((data[at] + 16,)) + data[at + 1 :])
    return str(path)


def test_a_sound_file_has_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", SOUND]) == 0
    assert capsys.readouterr().out.startswith("1 cubins, 0 errors, 0 warnings (container, ")


def test_every_cubin_of_a_library_is_checked(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(CUBINS / "axpy.so"), str(CUBINS / "axpy.zstd.fatbin")]) == 0
    assert capsys.readouterr().out.startswith("6 cubins, 0 errors")


def test_one_architecture_and_one_layer(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--container", "--arch", "sm_75", str(CUBINS / "axpy.so")]) == 0
    assert capsys.readouterr().out == "1 cubins, 0 errors, 0 warnings (container)\n"


def test_a_finding_says_where_what_and_why(damaged: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", damaged]) == 1
    first, *_, last = capsys.readouterr().out.splitlines()
    assert first.startswith(f"{damaged}: error: axpy+0x")
    assert "EXIT_INSTR_OFFSETS lists `" in first
    assert "[attribute-instruction; holds in all cubins" in first
    assert last.startswith("1 cubins, 2 errors")


def test_json_has_every_field(damaged: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--json", SOUND, damaged]) == 1
    sound, bad = json.loads(capsys.readouterr().out)
    assert sound == {"file": SOUND, "findings": []}
    assert {f["rule"] for f in bad["findings"]} == {"attribute-instruction", "exit-not-listed"}
    assert set(bad["findings"][0]) == {"rule", "kernel", "offset", "message", "evidence", "error"}


def test_sarif_is_a_log_of_one_run(damaged: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--sarif", damaged]) == 1
    log: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    assert {rule["id"] for rule in run["tool"]["driver"]["rules"]} == {result["ruleId"] for result in run["results"]}
    place = run["results"][0]["locations"][0]
    assert place["physicalLocation"]["artifactLocation"]["uri"] == damaged
    assert place["logicalLocations"] == [{"name": "axpy", "kind": "function"}]
    assert run["results"][0]["level"] == "error"


@pytest.mark.parametrize("content", [b"", b"no cubin", b"\x7fELF" + bytes(100)])
def test_what_cannot_be_read_is_a_finding(content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    assert main(["check", str(path)]) == 1
    out, err = capsys.readouterr()
    assert "unreadable" in out
    assert not err


def test_a_missing_file_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "nowhere.cubin"]) == 1
    assert capsys.readouterr().err == "error: nowhere.cubin: No such file or directory\n"
