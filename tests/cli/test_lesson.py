"""docs/lesson.md shows what its commands print."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from sassir.cli import main as sassir
from sassir.cli import opt
from sassir.passes import LOADED, PASSES

ROOT = Path(__file__).parents[2]
TOOLS = {"sassir": sassir.main, "sassir-opt": opt.main}
MORE = " …"
"""Where a line is cut."""


def commands() -> Iterator[tuple[str, list[str]]]:
    """Every command of the lesson with the lines that are shown of its output."""
    for block in (ROOT / "docs" / "lesson.md").read_text("utf-8").split("```")[1::2]:
        for text in block.split("\n$ ")[1:]:
            command, *shown = text.splitlines()
            yield command, shown


def plain(line: str) -> str:
    """A line without the time that a layer took, and without padding."""
    return " ".join(re.sub(r"\d+\.\d s  ", "", line).split())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A folder that looks like the root of the repository, and may be written to."""
    for name in ("bench", "examples"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(PASSES, "split-ffma", PASSES["sass-dce"])  # forgotten after the test
    yield
    LOADED.discard("split-ffma")


@pytest.mark.usefixtures("folder")
def test_the_lesson_shows_what_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    seen = 0
    for command, shown in commands():
        name, *arguments = shlex.split(command)
        if name in TOOLS:
            TOOLS[name](arguments)
        else:
            subprocess.run([name, *arguments], check=True)
        printed = iter([plain(line) for line in capfd.readouterr().out.splitlines()])
        for line in map(plain, shown):
            assert any(p == line or (line.endswith(MORE) and p.startswith(line.removesuffix(MORE))) for p in printed), (command, line)
            seen += 1
    assert seen > 15
    assert Path("split.cubin").read_bytes() == (ROOT / "examples" / "saxpy.sm_90.cubin").read_bytes()
    assert sorted(os.listdir()) == [
        "bench", "examples", "hasty.cubin", "racing.cubin", "reduce.sass", "right.npz", "saxpy.sass", "split.cubin", "split.json",
    ]  # fmt: skip
