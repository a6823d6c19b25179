"""`sassir verify` and `sassir reduce`: what they print, what they write, how they end."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import pytest

from sassir.asm.assemble import assemble
from sassir.asm.listing import read_listing
from sassir.asm.print import print_listing
from sassir.cli.main import main
from sassir.encoders import table
from sassir.passes import PASSES
from sassir.translate.cubin import read_program, write_cubin

BENCH = Path(__file__).parents[2] / "bench"
POLY, SAXPY = (str(BENCH / "cubins" / f"{kernel}.sm_90.cubin") for kernel in ("poly_strict", "saxpy_gs"))
LAUNCH, SAXPY_LAUNCH = (str(BENCH / "launch" / f"{kernel}.toml") for kernel in ("poly_strict", "saxpy_gs"))

no_gpu = pytest.mark.skipif(find_spec("pycuda") is not None, reason="PyCUDA is installed")


@pytest.fixture
def wrong(tmp_path: Path) -> str:
    """poly_strict with another constant in its loop, and another order of operands, which does not matter."""
    text = print_listing(read_program(Path(POLY).read_bytes()))
    for old, new in (("/*0220*/ FADD R7, R7, 0.5 ;", "FADD R7, R7, 0.75 ;"), ("/*0630*/ FMUL R7, R7, R6 ;", "FMUL R7, R6, R7 ;")):
        assert text.count(old) == 1
        text = text.replace(old, new)
    listing = read_listing(text, "wrong.sass")
    path = tmp_path / "wrong.cubin"
    path.write_bytes(write_cubin(assemble(listing, table("sm_90"))))
    return str(path)


def test_a_line_for_each_layer_and_the_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", SAXPY, SAXPY, "--launch", SAXPY_LAUNCH, "--no-gpu", "--symbolic"]) == 0
    *layers, verdict = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in layers] == [
        ["container", "holds"], ["schedule", "holds"], ["allocation", "holds"], ["emulator", "holds"], ["symbolic", "holds"],
    ]  # fmt: skip
    assert verdict == "holds"


def test_what_differs_where_and_who_wrote_it(wrong: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", POLY, wrong, "--launch", LAUNCH, "--case", "small", "--size", "n=33", "--no-gpu"]) == 1
    *_, emulator, verdict = capsys.readouterr().out.splitlines()
    assert "launch small, as stated: y[" in emulator
    assert "of 33 elements differ" in emulator
    assert "`STG.E desc[UR4][R2.64], R6` at 0x760 of poly_strict, block 0 thread" in emulator
    assert verdict == "fails"


def test_a_certificate_is_written(wrong: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "certificate.json"
    assert main(["verify", POLY, wrong, "--launch", LAUNCH, "--no-gpu", "--json", str(path)]) == 1
    found = json.loads(path.read_text())
    assert (found["verdict"], found["layers"][-1]["name"], found["layers"][-1]["verdict"]) == ("fails", "emulator", "fails")
    assert set(found["launches"]) == {"small", "tail", "one", "special"}


def test_launches_that_a_candidate_is_not_made_for_are_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What `sassir optimize` made for one launch does not fail in the others; its certificate tells."""
    made, elsewhere = tmp_path / "made.cubin", tmp_path / "folder" / "made.cubin"
    assert main(["optimize", POLY, "--launch", LAUNCH, "--case", "tail", "-o", str(made), "--no-gpu"]) == 0
    elsewhere.parent.mkdir()
    elsewhere.write_bytes(made.read_bytes())
    capsys.readouterr()
    assert main(["verify", POLY, str(made), "--launch", LAUNCH, "--no-gpu"]) == 0
    relies, *_, emulator, verdict = capsys.readouterr().out.splitlines()
    assert relies.startswith("poly_strict relies on block, grid, ")
    assert " 4 of 16 inputs give equal results; launch one, as stated: the candidate is made for launches with grid = " in emulator
    assert verdict == "holds"
    assert main(["verify", POLY, str(elsewhere), "--launch", LAUNCH, "--no-gpu"]) == 1
    assert main(["verify", POLY, str(elsewhere), "--launch", LAUNCH, "--no-gpu", "--certificate", str(tmp_path / "made.json")]) == 0
    elsewhere.with_suffix(".json").write_text("{}")
    assert main(["verify", POLY, str(elsewhere), "--launch", LAUNCH, "--no-gpu"]) == 1
    assert capsys.readouterr().err == ""


def test_the_certificate_of_another_cubin_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "certificate.json"
    assert main(["verify", SAXPY, SAXPY, "--launch", SAXPY_LAUNCH, "--no-gpu", "--json", str(path)]) == 0
    assert main(["verify", POLY, POLY, "--launch", LAUNCH, "--no-gpu", "--certificate", str(path)]) == 1
    assert capsys.readouterr().err == f"error: {path}: the certificate of another cubin\n"


@no_gpu
def test_a_gpu_may_be_required(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", SAXPY, SAXPY, "--launch", SAXPY_LAUNCH, "--gpu"]) == 1
    assert "pip install sassir[gpu]" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--case", "huge"], "no launch 'huge'; there are full, medium"),
        (["--case", "tail", "--size", "rows=3"], "launch 'tail' has no size 'rows'; it has n, blocks"),
    ],
)
def test_what_the_launch_file_does_not_have_is_named(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", SAXPY, SAXPY, "--launch", SAXPY_LAUNCH, "--no-gpu", *arguments]) == 1
    assert message in capsys.readouterr().err


def test_a_failure_is_reduced_to_one_thread_and_one_instruction(wrong: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "reduced.cubin"
    assert main(["reduce", POLY, wrong, "--launch", LAUNCH, "-o", str(path)]) == 0
    launch, change, result = capsys.readouterr().out.splitlines()
    assert launch == "launch:  launch small, as stated (--case small --size n=1 --size steps=4)"
    assert change == "change:  poly_strict+0x220: `FADD R7, R7, 0.5` became `FADD R7, R7, 0.75`"
    assert "1 of 1 elements differ" in result
    assert main(["verify", POLY, str(path), "--launch", LAUNCH, "--no-gpu", "--case", "small", "--size", "n=1", "--size", "steps=4"]) == 1


def test_passes_are_reduced_with_the_facts_of_each_launch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A pipeline that is right has nothing to reduce."""
    (tmp_path / "p.toml").write_text('version = 1\npasses = ["sass-specialize", "sass-dce"]\n')
    assert main(["reduce", SAXPY, "-p", str(tmp_path / "p.toml"), "--launch", SAXPY_LAUNCH, "--case", "tail"]) == 1
    assert capsys.readouterr().out == "nothing to reduce: both compute the same in the emulator\n"


WRONG_PASS = """
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from sassir.dialect.instruction import SassInstruction
from sassir.rewrite.build import arguments_of, name_of, rewritten

class HalfIsThreeQuarters(ModulePass):
    name = "half-is-three-quarters"

    def apply(self, ctx, op):
        for found in [x for x in op.walk() if isinstance(x, SassInstruction) and "0.5" in arguments_of(x)]:
            texts = ["0.75" if text == "0.5" else text for text in arguments_of(found)]
            Rewriter.replace_op(found, rewritten(found, name_of(found), texts, found.reads))
"""


def test_a_wrong_pass_is_found_among_right_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PASSES, "half-is-three-quarters", PASSES["sass-dce"])  # forgotten after the test
    (tmp_path / "wrong.py").write_text(WRONG_PASS)
    passes = ["sass-gvn", "sass-dce", "half-is-three-quarters", "sass-schedule", "sass-dce"]
    (tmp_path / "p.toml").write_text(f'version = 1\nload = ["wrong.py"]\npasses = {json.dumps(passes)}\n')
    assert main(["reduce", POLY, "-p", str(tmp_path / "p.toml"), "--launch", LAUNCH, "-o", str(tmp_path / "reduced.cubin")]) == 0
    launch, chosen, *_, result = capsys.readouterr().out.splitlines()
    assert launch == "launch:  launch small, as stated (--case small --size n=1 --size steps=1)"
    assert chosen == "passes:  1 of 5: half-is-three-quarters"
    assert "1 of 1 elements differ" in result
    smallest = ["--launch", LAUNCH, "--no-gpu", "--case", "small", "--size", "n=1", "--size", "steps=1"]
    assert main(["verify", POLY, str(tmp_path / "reduced.cubin"), *smallest]) == 1


def test_a_candidate_or_a_pipeline_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reduce", SAXPY, "--launch", SAXPY_LAUNCH]) == 1
    assert "give either a candidate B or the --pipeline that makes it" in capsys.readouterr().err
