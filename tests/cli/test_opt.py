"""`sassir-opt` from the command line's point of view: files in, files out, and what it says about bad ones."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from sassir.cli.opt import main
from sassir.passes import PASSES

Run = Callable[..., tuple[int, str, str]]
ROOT = Path(__file__).parent.parent.parent
CUBINS = Path(__file__).parent.parent / "cubins"
CUBIN = CUBINS / "axpy.sm_90.cubin"


@pytest.fixture
def opt(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the tool; gives exit status, standard output and standard error."""

    def run(*args: str | Path) -> tuple[int, str, str]:
        try:
            status = main([str(a) for a in args])
        except SystemExit as stop:
            status = int(stop.code or 0)
        out, err = capsys.readouterr()
        return status, out, err

    return run


@pytest.mark.parametrize("path", sorted(CUBINS.glob("*.cubin")), ids=lambda p: p.stem)
def test_a_pipeline_that_changes_nothing_writes_the_same_file(opt: Run, path: Path, tmp_path: Path) -> None:
    assert opt(path, "-p", "sass-check-allocation", "-o", tmp_path / "same.cubin")[0] == 0
    assert (tmp_path / "same.cubin").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("kind", ["mlir", "sass"])
@pytest.mark.parametrize("name", ["axpy.sm_75", "axpy.sm_90", "calls.sm_90", "jump.sm_120", "loop.sm_80"])
def test_text_between_two_cubins(opt: Run, name: str, kind: str, tmp_path: Path) -> None:
    """The extension of -o chooses what is written; every word is encoded from its text."""
    text, again = tmp_path / f"k.{kind}", tmp_path / "again.cubin"
    assert opt(CUBINS / f"{name}.cubin", "-o", text)[0] == 0
    assert opt(text, "-o", again) == (0, "", "")
    assert again.read_bytes() == (CUBINS / f"{name}.cubin").read_bytes()


def test_generic_mlir_between_two_cubins(opt: Run, tmp_path: Path) -> None:
    text, again = tmp_path / "k.mlir", tmp_path / "again.cubin"
    assert opt(CUBIN, "--mlir-print-op-generic", "-o", text)[0] == 0
    assert '"sass.kernel"' in text.read_text()
    assert opt(text, "-o", again)[0] == 0
    assert again.read_bytes() == CUBIN.read_bytes()


def test_prints_the_dialect(opt: Run) -> None:
    status, out, _ = opt(CUBIN)
    assert status == 0
    assert "sass.kernel @axpy" in out
    assert "{-#" in out


def test_listing_on_standard_output(opt: Run) -> None:
    assert ".function axpy" in opt(CUBIN, "-t", "sass")[1]


def test_fields_alone_give_the_same_words(opt: Run, tmp_path: Path) -> None:
    assert opt(CUBIN, "-t", "cubin{from_fields=true}", "-o", tmp_path / "k.cubin")[0] == 0
    assert (tmp_path / "k.cubin").read_bytes() == CUBIN.read_bytes()


@pytest.mark.parametrize("name", ["axpy.zstd.fatbin", "axpy.lz4.fatbin", "axpy.so"])
def test_arch_selects_from_a_file_with_several(opt: Run, name: str, tmp_path: Path) -> None:
    status, _, err = opt(CUBINS / name)
    assert (status, "choose one with --arch" in err) == (1, True)
    assert opt(CUBINS / name, "--arch", "sm_90", "-o", tmp_path / "k.cubin")[0] == 0
    assert (tmp_path / "k.cubin").read_bytes() == CUBIN.read_bytes()


def test_onto_gives_a_foreign_module_its_cubin(opt: Run, tmp_path: Path) -> None:
    text = tmp_path / "k.mlir"
    opt(CUBIN, "-o", text)
    module = text.read_text()
    text.write_text(module[: module.index("{-#")].replace("#sass.container<cubin_", "#sass.container<lost_"))
    status, _, err = opt(text, "-o", tmp_path / "k.cubin")
    assert (status, "give the cubin with --onto FILE" in err) == (1, True)
    assert opt(text, "--onto", CUBIN, "-o", tmp_path / "k.cubin")[0] == 0
    assert (tmp_path / "k.cubin").read_bytes() == CUBIN.read_bytes()
    status, _, err = opt(text, "--onto", CUBINS / "axpy.sm_80.cubin", "-o", tmp_path / "k.cubin")
    assert (status, "a cubin for sm_80" in err) == (1, True)


def test_passes_are_listed_with_what_they_do(opt: Run) -> None:
    own = ROOT / "examples" / "plain_moves.py"
    status, out, _ = opt("--load-pass", own, "--list-passes")
    lines = out.splitlines()
    assert (status, len(lines)) == (0, len(PASSES))
    assert "plain-moves              Replaces every IMAD.MOV of a general register that no guard keeps from executing." in lines
    (unroll,) = [line for line in lines if line.startswith("sass-unroll ")]
    assert unroll.endswith(" [factor: int | None] [partial: bool] [remainder: bool]")


def test_ir_between_passes(opt: Run) -> None:
    twice = "builtin.module(sass-check-allocation,sass-check-allocation)"
    out = opt(CUBIN, f"--pass-pipeline={twice}", "--print-between-passes", "-t", "sass")[1]
    assert out.count("IR after sass-check-allocation:") == 1


@pytest.mark.parametrize(
    ("args", "status", "message"),
    [
        (["-p", "no-such-pass"], 2, "no-such-pass"),
        (["-p", "sass-check-allocation{speed=9}"], 2, "speed"),
        (["-p", "a{"], 2, "error"),
        (["--pass-pipeline=dce"], 2, "expected builtin.module("),
        (["-t", "bf16"], 2, "invalid choice: 'bf16'"),
        (["-f", "mlir", "--arch", "sm_90"], 2, "--arch chooses a part of a cubin or listing"),
        (["--arch", "sm_80"], 1, "no cubin for sm_80"),
        (["-f", "mlir"], 1, "error"),
        (["--onto", "missing.cubin"], 1, "missing.cubin: No such file"),
    ],
)
def test_bad_usage_and_bad_input(opt: Run, args: list[str], status: int, message: str, tmp_path: Path) -> None:
    found, out, err = opt(CUBIN, *args, "-o", tmp_path / "out.x")
    assert (found, out) == (status, "")
    assert message in err
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == []


UNVERIFIED = b"""
"sass.kernel"() <{function = "k"}> ({
  %a = "sass.mov"() <{template = #sass.template<"=R, $R">}> : () -> !sass.r
  "sass.end"() : () -> ()
}) : () -> ()
"""
UNALLOCATED = b"""
builtin.module attributes {sass.arch = "sm_90"} {
  sass.kernel @k {
    %a = sass.mov "=R, 0x1"()
    sass.exit ""()
  }
}
"""


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("empty.cubin", b"", "empty.cubin"),
        ("short.cubin", CUBIN.read_bytes()[:300], "short.cubin"),
        ("noise.cubin", b"\x7fELF" + b"\xff" * 100, "noise.cubin"),
        ("odd.xyz", b"hello", "unknown kind of file; name it with -f"),
        ("bad.mlir", b"builtin.module { sass.nop }", "^"),
        ("cut.mlir", b'builtin.module attributes {a = "a string that the end of the file cuts in half', "not closed"),
        ("escape.mlir", b'builtin.module attributes {a = "a string with an escape \\q that MLIR lacks"} {}', "unknown escape"),
        ("binary.mlir", b"\xff\xfe\x00", "binary.mlir"),
        ("bad.sass", b".arch sm_90\n\n.function k\n[B------:R-:W-:-:S04] FOO BAR BAZ ;\n", "bad.sass:4"),
        ("binary.sass", b"\xff\xfe\x00", "no UTF-8 text"),
        ("unverified.mlir", UNVERIFIED, "the template reads 1 values"),
        ("unallocated.mlir", UNALLOCATED, "allocate registers first"),
    ],
    ids=lambda value: value if isinstance(value, str) and "." in value and len(value) < 20 else "",
)  # fmt: skip
def test_damaged_files(opt: Run, name: str, data: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(data)
    status, out, err = opt(tmp_path / name, "-t", "sass", "-o", tmp_path / "out.sass")
    assert (status, out) == (1, "")
    assert message in err
    assert "Traceback" not in err
    assert not (tmp_path / "out.sass").exists()


def test_an_output_that_was_there_stays_when_something_fails(opt: Run, tmp_path: Path) -> None:
    (tmp_path / "out.cubin").write_bytes(b"precious")
    assert opt(CUBIN, "--arch", "sm_75", "-o", tmp_path / "out.cubin")[0] == 1
    assert (tmp_path / "out.cubin").read_bytes() == b"precious"
    assert len(list(tmp_path.iterdir())) == 1


def python(*args: str | Path, path: tuple[Path, ...] = (), input: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    """Run another Python with this checkout."""
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(p) for p in (ROOT, *path)])}
    return subprocess.run([sys.executable, "-P", *args], input=input, capture_output=True, env=env, check=False)


def test_standard_input_and_output() -> None:
    """A cubin goes in through a pipe and comes out of one."""
    done = python("-m", "sassir.cli.opt", "-t", "cubin", input=CUBIN.read_bytes())
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == CUBIN.read_bytes()


IMPORTED = """
import sys, sassir.cli.opt
try:
    sassir.cli.opt.main(["--help"])
except SystemExit:
    heavy = ("sassir.dialect", "sassir.translate", "lark", "elftools", "numpy", "zstandard")
    print([m for m in sys.modules if m.startswith(heavy)], file=sys.stderr)
"""


def test_help_starts_fast() -> None:
    """Of sassir, --help imports the registry alone. The limit is many times what that takes."""
    start = time.perf_counter()
    done = python("-c", IMPORTED)
    assert done.stderr.strip() == b"[]"
    assert b"--onto FILE" in done.stdout
    assert time.perf_counter() - start < 5


def test_stock_xdsl_opt_knows_the_dialect(tmp_path: Path) -> None:
    """Through the entry point `xdsl.universe` of the installed package; here a metadata folder stands for the installation."""
    info = tmp_path / "sassir-0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: sassir\nVersion: 0\n")
    (info / "entry_points.txt").write_text("[xdsl.universe]\nsassir = sassir.universe:SASSIR\n")
    done = python("-c", "from xdsl.tools.xdsl_opt import main; main()", CUBIN, "-t", "sass", path=(tmp_path,))
    assert (done.returncode, done.stderr) == (0, b"")
    assert b".function axpy" in done.stdout


def test_a_pass_of_ones_own_needs_one_file(opt: Run, tmp_path: Path) -> None:
    kernel = CUBINS / "aes_tconst.sm_90.cubin"
    _, before, _ = opt(kernel, "-p", "sass-virtualise")
    status, after, _ = opt(kernel, "--load-pass", ROOT / "examples" / "plain_moves.py", "-p", "sass-virtualise,plain-moves")
    assert status == 0
    assert after.count('sass.mov "=R, $R"') - before.count('sass.mov "=R, $R"') == before.count('"=R, RZ, RZ, $R"') > 0
    (tmp_path / "empty.py").write_text("x = 1")
    assert "no pass; expected a subclass" in opt(kernel, "--load-pass", tmp_path / "empty.py")[2]


def test_facts_are_those_of_files_of_text_and_of_a_launch(opt: Run, tmp_path: Path) -> None:
    saxpy, toml = ROOT / "examples" / "saxpy.sm_90.cubin", tmp_path / "facts.toml"
    toml.write_text('["*"]\nnoalias = true\n[saxpy]\nparameters = { 0 = { min = 1, max = 9 }, 3 = { align = 16 } }\n')
    stated = "word 0x210 in [1, 9], pointer 0x220 align 16, noalias"
    assert f"#sass.facts<block = [64, 1, 1], {stated}>" in opt(saxpy, "--facts", toml, "--facts", "block = [64, 1, 1]")[1]
    launch = ROOT / "examples" / "saxpy.toml"
    assert "#sass.facts<block = [256, 1, 1], grid = [40, 1, 1], shared = 0, word 0x210 = 0x2710" in opt(saxpy, "--facts-from", launch)[1]
    one = opt(saxpy, "--facts-from", f"{launch}:one", "--facts", toml)[1]
    assert "grid = [1, 1, 1], shared = 0, word 0x210 = 0x1, word 0x214 = 0x3fc00000, pointer 0x218" in one
    status, out, err = opt(saxpy, "--facts-from", launch, "--facts", toml)
    assert (status, out) == (1, "")
    assert err == "error: kernel saxpy: word 0x210 is said to be in [10000, 10000], and in [1, 9]\n"


def test_a_pipeline_uses_the_facts(opt: Run) -> None:
    saxpy = ROOT / "examples" / "saxpy.sm_90.cubin"
    passes = ("-p", "sass-virtualise,sass-specialize")
    text = "block = [256, 1, 1], grid = [4, 1, 1], word 0x210 in [{}, 4096]"
    enough, less = (opt(saxpy, "--facts", text.format(least), *passes)[1] for least in (1024, 1023))
    assert "sass.isetp" not in enough
    assert 'sass.used_facts = ["block", "grid", "range 0x210"]' in enough
    assert "sass.isetp" in less
    assert 'sass.used_facts = ["block", "grid"]' in less


def test_a_listing_has_no_parameters_to_state_facts_of(opt: Run, tmp_path: Path) -> None:
    toml, listing = tmp_path / "facts.toml", ROOT / "tests" / "filecheck" / "passes" / "state_facts.sass"
    toml.write_text("[k]\nparameters.0 = 1\n")
    expected = f"error: {toml}: k: parameters.0: there is no such parameter; the kernel has no parameters, as far as the file says\n"
    assert opt(listing, "--facts", toml) == (1, "", expected)
