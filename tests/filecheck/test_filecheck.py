"""Run the RUN and CHECK lines of every .mlir and .sass file below this folder, in this process.

A RUN line is what one would type: `sassir-opt %s -t sass | filecheck %s`, with `not` before a command that has to fail,
and `2>&1` to check its message.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from pathlib import Path

import pytest
from filecheck.finput import FInput
from filecheck.matcher import Matcher
from filecheck.options import Options
from filecheck.parser import Parser

from sassir.cli.opt import main
from sassir.passes import PASSES

HERE = Path(__file__).parent
FILES = sorted(p for p in HERE.rglob("*") if p.suffix in (".mlir", ".sass"))
RUN = re.compile(
    r"// RUN: (?P<fails>not )?sassir-opt (?P<args>[^|]*?)(?P<messages> 2>&1)? \| filecheck %s(?: --check-prefix (?P<prefix>\w+))?"
)


class _Bytes(io.TextIOWrapper):
    """A text stream with a `buffer`, as standard output has."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), write_through=True)

    @property
    def text(self) -> str:
        assert isinstance(self.buffer, io.BytesIO)
        return self.buffer.getvalue().decode()


def _runs(path: Path) -> list[re.Match[str]]:
    """The RUN lines of a file."""
    lines = [line for line in path.read_text().splitlines() if line.startswith("// RUN:")]
    found = [run for line in lines if (run := RUN.fullmatch(line))]
    assert found
    assert len(found) == len(lines), "a RUN line is `sassir-opt … | filecheck %s`"
    return found


def _run(path: Path, run: re.Match[str], arguments: str) -> tuple[bool, str]:
    """Whether all comes out as the file says, and what comes out."""
    output = _Bytes()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output if run["messages"] else io.StringIO()):
        status = main(shlex.split(arguments.replace("%s", str(path)).replace("%S", str(path.parent))))
    if (status != 0) != bool(run["fails"]):
        return False, output.text
    options = Options(match_filename=str(path), check_prefixes=[run["prefix"] or "CHECK"])
    return Matcher(options, FInput("output", output.text), Parser.from_opts(options)).run() == 0, output.text


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(HERE)))
def test_file(path: Path) -> None:
    for run in _runs(path):
        holds, output = _run(path, run, run["args"])
        assert holds, output


def _without(name: str, arguments: str) -> str:
    """A command line without a pass, and without -p if no other is left."""
    rest = re.sub(rf"{name}(\{{.*?\}})?(,|(?=['\s]|$))", "", arguments)
    return re.sub(r"-p (''|$)", "", re.sub(r",(?='| -|$)", "", rest))


@pytest.mark.parametrize("name", sorted(PASSES))
def test_every_pass_has_files_that_fail_without_it(name: str) -> None:
    files = [path for path in FILES if path.parent.name == "passes" and path.stem.startswith(name.removeprefix("sass-").replace("-", "_"))]
    assert files
    for path in files:
        assert not all(_run(path, run, _without(name, run["args"]))[0] for run in _runs(path)), path
