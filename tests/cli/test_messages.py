"""What a user may get wrong, in each command: one line on standard error, exit status 1, no traceback, and no file written."""

from __future__ import annotations

import os
import struct
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from sassir.cli import opt
from sassir.cli.main import main
from sassir.passes import LOADED, PASSES

ROOT = Path(__file__).parents[2]
LAUNCH = (ROOT / "examples" / "saxpy.toml").read_text()
CUBIN = (ROOT / "examples" / "saxpy.sm_90.cubin").read_bytes()
HOST = (ROOT / "tests" / "cubins" / "axpy.so").read_bytes()

READERS = (
    "info FILE", "view FILE", "explain FILE --at 0x0", "time FILE", "optimize FILE", "launch-template FILE", "roundtrip FILE",
    "run FILE --launch good.toml", "verify good.cubin FILE --launch good.toml", "verify FILE good.cubin --launch good.toml",
    "reduce good.cubin FILE --launch good.toml",
)  # fmt: skip
WITH_A_LAUNCH = ("run good.cubin", "verify good.cubin good.cubin", "optimize good.cubin", "time good.cubin", "reduce good.cubin good.cubin")
PIPELINES = {
    "there is no pipeline 'fastest'": None,
    "there is no pipeline 'none.toml'": None,
    "cannot read the pipeline": "version =",
    "expected `version = 1`": "version = 2\npasses = []\n",
    "passes: expected a list of texts": 'version = 1\npasses = "sass-dce"\n',
    "behind: expected a list of texts": "version = 1\npasses = []\nbehind = 3\n",
    "no pass is called sass-magic; `sassir-opt --list-passes` shows": 'version = 1\npasses = ["sass-magic"]\n',
    "pass 'sass-unroll{speed=9}': Provided arguments [\"speed\"] not found": 'version = 1\npasses = ["sass-unroll{speed=9}"]\n',
    "none.py: No such file or directory": 'version = 1\nload = ["none.py"]\npasses = []\n',
}


def unsupported() -> bytes:
    """The cubin with the number of Volta, for which there is no table."""
    (flags,) = struct.unpack_from("<I", CUBIN, 0x30)
    return CUBIN[:0x30] + struct.pack("<I", flags & ~0xFF00 | 70 << 8) + CUBIN[0x34:]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cubin, its launch file, and files that are no cubins."""
    monkeypatch.chdir(tmp_path)
    Path("good.cubin").write_bytes(CUBIN)
    Path("good.toml").write_text(LAUNCH)
    Path("text.cubin").write_text("hello\n")
    Path("cut.cubin").write_bytes(CUBIN[:1000])
    Path("volta.cubin").write_bytes(unsupported())
    Path("folder").mkdir()


def refused(capfd: pytest.CaptureFixture[str], command: str) -> str:
    """The message of a `sassir` command that is refused before it has printed or written anything."""
    there = sorted(os.listdir())
    with warnings.catch_warnings(record=True) as warned:
        assert main(command.split()) == 1
    out, err = capfd.readouterr()
    assert (out, warned) == ("", [])
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert sorted(os.listdir()) == there
    return err


@pytest.mark.parametrize("command", READERS)
def test_a_file_that_is_no_cubin(command: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert "none.cubin: No such file or directory" in refused(capfd, command.replace("FILE", "none.cubin"))
    assert "text.cubin: neither a cubin, a fatbin nor an ELF" in refused(capfd, command.replace("FILE", "text.cubin"))
    assert "cut.cubin: the first section header should be at bytes" in refused(capfd, command.replace("FILE", "cut.cubin"))
    assert "folder: Is a directory" in refused(capfd, command.replace("FILE", "folder"))


@pytest.mark.parametrize("command", [*(c for c in READERS if c.split()[0] in ("view", "explain", "time", "optimize", "run")), "check FILE"])
def test_an_architecture_without_a_table(command: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert "volta.cubin: no encoding table for sm_70; there are tables for sm_75, " in refused(
        capfd, command.replace("FILE", "volta.cubin")
    )


def test_round_trip_of_no_known_architecture(capfd: pytest.CaptureFixture[str]) -> None:
    assert "no encoding table for sm_70" in refused(capfd, "roundtrip volta.cubin")
    assert main(["roundtrip", "volta.cubin", "good.cubin"]) == 0
    assert capfd.readouterr().out.endswith("0 wrong, 0 hidden, 1 cubins of sm_70 skipped\n")


def test_a_host_file_is_no_damaged_cubin(capfd: pytest.CaptureFixture[str]) -> None:
    """One finding, not what the rules for cubins make of it."""
    Path("program").write_bytes(HOST.replace(b".nv_fatbin", b".xx_fatbin"))
    assert main(["check", "program"]) == 1
    assert capfd.readouterr().out.startswith("program: error: ELF machine 62, expected 190 (NVIDIA CUDA); not a cubin [unreadable; ")


@pytest.mark.parametrize("command", WITH_A_LAUNCH)
def test_a_launch_file_that_is_none(command: str, capfd: pytest.CaptureFixture[str]) -> None:
    Path("bad.toml").write_text("[launches\n")
    Path("other.toml").write_text(LAUNCH.replace('kernel = "saxpy"', 'kernel = "other"'))
    assert "none.toml: cannot read the launch file: No such file or directory" in refused(capfd, f"{command} --launch none.toml")
    assert "bad.toml: cannot read the launch file: Expected ']'" in refused(capfd, f"{command} --launch bad.toml")
    assert "good.toml: no launch 'huge'; there are medium, tail, one" in refused(capfd, f"{command} --launch good.toml --case huge")
    assert "no kernel" in (message := refused(capfd, f"{command} --launch other.toml"))
    assert "other" in message


@pytest.mark.parametrize("command", ["view", "explain --at 0x0", "time", "optimize", "launch-template"])
def test_a_kernel_that_is_not_there(command: str, capfd: pytest.CaptureFixture[str]) -> None:
    message = refused(capfd, f"{command} good.cubin --kernel other")
    assert "good.cubin: no kernel" in message
    assert "saxpy" in message


@pytest.mark.parametrize("message", PIPELINES)
def test_a_pipeline_that_cannot_be_run(message: str, capfd: pytest.CaptureFixture[str]) -> None:
    if (text := PIPELINES[message]) is not None:
        Path("p.toml").write_text(text)
    name = "p.toml" if text is not None else message.split("'")[1]
    assert message in refused(capfd, f"optimize good.cubin -p {name}")
    assert message in refused(capfd, f"reduce good.cubin -p {name} --launch good.toml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a pass", "mine.py: SyntaxError: invalid syntax"),
        ("import sys\nimport nothing_of_that_name", "mine.py, line 2: ModuleNotFoundError: No module named 'nothing_of_that_name'"),
        ("\nraise ValueError('no')", "mine.py, line 2: ValueError: no"),
        ("x = 1", "mine.py: no pass; expected a subclass of xdsl.passes.ModulePass"),
    ],
)
def test_a_file_of_passes_that_cannot_be_loaded(text: str, message: str, capfd: pytest.CaptureFixture[str]) -> None:
    Path("mine.py").write_text(text)
    assert opt.main(["good.cubin", "--load-pass", "mine.py"]) == 1
    out, err = capfd.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert message in err


MALFORMED = """
from xdsl.passes import ModulePass
from sassir.dialect.instruction import SassInstruction
from sassir.rewrite.build import instruction
from sassir.rewrite.simplify import put_in_place

class Malformed(ModulePass):
    name = "malformed"

    def apply(self, ctx, op):
        for found in [x for x in op.walk() if isinstance(x, SassInstruction) and x.MNEMONIC == "FFMA"]:
            put_in_place(found, instruction("FADD =R, $R, $R", found.reads[:1]))
"""


@pytest.fixture
def malformed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A pass that gives an instruction too few values."""
    monkeypatch.setitem(PASSES, "malformed", PASSES["sass-dce"])  # forgotten after the test
    Path("malformed.py").write_text(MALFORMED)
    yield
    LOADED.discard("malformed")


@pytest.mark.usefixtures("malformed")
def test_what_a_pass_of_the_user_made_is_verified(capfd: pytest.CaptureFixture[str]) -> None:
    Path("p.toml").write_text('version = 1\nload = ["malformed.py"]\npasses = ["malformed"]\n')
    assert main(["optimize", "good.cubin", "-p", "p.toml", "--launch", "good.toml", "--no-gpu", "-o", "made.cubin"]) == 0
    assert "saxpy stays as it was: " in (out := capfd.readouterr().out)
    assert "the template reads 2 values" in out
    assert Path("made.cubin").read_bytes() == CUBIN


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--trace --thread 256", "launch one has threads 0 to 255, not 256"),
        ("--trace --block 1", "launch one has blocks 0 to 0, not 1"),
        ("--watch R1X", "no register is called R1X; expected one such as R4"),
        ("-o none/y.npz", "none/y.npz: No such file or directory"),
        ("-o folder", "folder: Is a directory"),
    ],
)
def test_run_looks_for_what_there_is(options: str, message: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert message in refused(capfd, f"run good.cubin --launch good.toml --case one {options}")


@pytest.mark.parametrize("name", ["none/out", "folder"])
@pytest.mark.parametrize(
    "command",
    [
        "optimize good.cubin -o OUT", "optimize good.cubin --certificate OUT", "launch-template good.cubin -o OUT",
        "verify good.cubin good.cubin --launch good.toml --json OUT", "reduce good.cubin good.cubin --launch good.toml -o OUT",
    ],
)  # fmt: skip
def test_an_output_that_cannot_be_written_is_said_first(command: str, name: str, capfd: pytest.CaptureFixture[str]) -> None:
    message = refused(capfd, command.replace("OUT", name))
    assert message.startswith(f"error: {name}: ")


def test_sassir_opt_names_the_output_that_cannot_be_written(capfd: pytest.CaptureFixture[str]) -> None:
    assert opt.main(["good.cubin", "-o", "none/out.cubin"]) == 1
    assert capfd.readouterr().err == "error: none/out.cubin: No such file or directory\n"


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("verify good.cubin good.cubin --launch good.toml --size n", "argument --size: expected NAME=N, got 'n'"),
        ("explain good.cubin --at here", "argument --at: expected a number such as 0x1f0, got 'here'"),
    ],
)
def test_bad_usage_says_what_was_expected(command: str, message: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(command.split())
    assert stop.value.code == 2
    assert message in capfd.readouterr().err
