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


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(HERE)))
def test_file(path: Path) -> None:
    runs = [RUN.fullmatch(line) for line in path.read_text().splitlines() if line.startswith("// RUN:")]
    assert runs
    for run in runs:
        assert run, "a RUN line is `sassir-opt … | filecheck %s`"
        output = _Bytes()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output if run["messages"] else io.StringIO()):
            status = main(shlex.split(run["args"].replace("%s", str(path))))
        assert (status != 0) == bool(run["fails"]), output.text
        options = Options(match_filename=str(path), check_prefixes=[run["prefix"] or "CHECK"])
        assert Matcher(options, FInput("output", output.text), Parser.from_opts(options)).run() == 0, output.text
