"""Pairs of cubins for the verification tests: real kernels, and the same with edited lines of their listing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from sassir.asm.assemble import assemble
from sassir.asm.listing import read_listing
from sassir.asm.print import print_listing
from sassir.encoders import table
from sassir.launch import LaunchFile, read_launch_file
from sassir.translate.cubin import read_program, write_cubin

ROOT = Path(__file__).parents[2]
TWICE = """
facts.noalias = NOALIAS

[launches]
one = { n = 1, blocks = 1 }
two = { n = 64, blocks = 2 }

[buffers]
x = { dtype = "i32", shape = "n", role = "in", fill = "integers(-9, 9)" }
y = { dtype = "i32", shape = "n", role = "out" }
z = { dtype = "i32", shape = "n", role = "out" }

[[steps]]
kernel = "twice"
grid = "blocks"
block = "n // blocks"
arguments = ["x", "y", "z"]
"""

Edit = Callable[..., bytes]
"""The cubin whose listing has other lines: pairs of old text, which is there once, and new text."""


@pytest.fixture(scope="session")
def edited() -> Edit:
    """See `Edit`."""

    def edit(cubin: bytes, *replacements: tuple[str, str]) -> bytes:
        text = print_listing(read_program(cubin))
        for old, new in replacements:
            assert text.count(old) == 1, f"{old!r} is there {text.count(old)} times"
            text = text.replace(old, new)
        listing = read_listing(text, "edited.sass")
        return write_cubin(assemble(listing, table(listing.arch)))

    return edit


@pytest.fixture(scope="session")
def bench() -> Callable[[str], tuple[bytes, LaunchFile]]:
    """A kernel of the suite and its launch file."""
    folder = ROOT / "bench"
    return lambda name: ((folder / "cubins" / f"{name}.sm_90.cubin").read_bytes(), read_launch_file(folder / "launch" / f"{name}.toml"))


@pytest.fixture(scope="session")
def twice() -> bytes:
    """x is read before and after y is written."""
    return (ROOT / "tests" / "cubins" / "twice.sm_90.cubin").read_bytes()


@pytest.fixture(scope="session")
def once(twice: bytes, edited: Edit) -> bytes:
    """The same with one read, which is right where x and y do not overlap."""
    return edited(
        twice, ("/*00e0*/ LDG.E R13, desc[UR4][R2.64] ;", "NOP ;"), ("STG.E desc[UR4][R6.64], R13 ;", "STG.E desc[UR4][R6.64], R0 ;")
    )


@pytest.fixture(scope="session")
def twice_file(tmp_path_factory: pytest.TempPathFactory) -> Callable[[bool], LaunchFile]:
    """A launch file for `twice`, with or without the fact that nothing overlaps."""

    def read(noalias: bool) -> LaunchFile:
        path = tmp_path_factory.mktemp("twice") / "twice.toml"
        path.write_text(TWICE.replace("NOALIAS", str(noalias).lower()))
        return read_launch_file(path)

    return read
