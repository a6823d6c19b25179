"""The format of launch files, by one small example, and the message for each way to get it wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sassir.errors import LaunchError
from sassir.launch import LaunchFile, Scalar, read_launch_file

EXAMPLE = """
seed = 7
timed = ["full"]

[launches]
full = { n = 1000, blocks = 4 }
one = { n = 1, blocks = 2 }

[sizes]
padded = "256 * blocks"

[buffers]
x = { dtype = "f32", shape = ["n", 2], role = "in", fill = "uniform(-1, 1)" }
table = { dtype = "u32", shape = 256, role = "in", fill = "bits" }
y = { dtype = "bf16", shape = "padded", role = "out" }

[symbols]
T0 = "table"

[[steps]]
kernel = "first"
grid = "blocks"
block = [32, 8]
shared = "4 * 16"
arguments = [{ i32 = "n" }, "x", { u8 = 3 }, "y", { f64 = "n / 4" }]

[[steps]]
kernel = "second"
grid = ["blocks", 2]
block = 64
cluster = [2, 2]
cooperative = true
arguments = ["y"]

[fill.one]
x = "edges"

[work]
bytes = "8 * n"

[facts]
noalias = true
align = 16

[tolerance]
relative = 1e-3
"""


def read(tmp_path: Path, text: str) -> LaunchFile:
    path = tmp_path / "example.toml"
    path.write_text(text)
    return read_launch_file(path)


def test_everything_is_evaluated(tmp_path: Path) -> None:
    file = read(tmp_path, EXAMPLE)
    launch = file.launch("full")
    assert [*file.launches] == ["full", "one"]
    assert launch.sizes == {"n": 1000, "blocks": 4, "padded": 1024}
    assert [(b.name, b.dtype, b.shape, b.role, b.nbytes) for b in launch.buffers] == [
        ("x", "f32", (1000, 2), "in", 8000),
        ("table", "u32", (256,), "in", 1024),
        ("y", "bf16", (1024,), "out", 2048),
    ]
    first, second = launch.steps
    x, table, y = launch.buffers
    assert (first.kernel, first.grid, first.block, first.shared) == ("first", (4, 1, 1), (32, 8, 1), 64)
    assert first.arguments == (Scalar("i32", 1000), x, Scalar("u8", 3), y, Scalar("f64", 250.0))
    assert (second.grid, second.block, second.shared) == ((4, 2, 1), (64, 1, 1), 0)
    assert launch.symbols == (("T0", table),)
    assert (file.facts.noalias, file.facts.align, file.facts.ftz) == (True, 16, False)
    assert file.tolerance is not None
    assert (file.tolerance.relative, file.tolerance.absolute) == (1e-3, 0)


def test_results_start_as_poison_and_a_launch_may_fill_otherwise(tmp_path: Path) -> None:
    file = read(tmp_path, EXAMPLE)
    x, _, y = file.launch("one").buffers
    assert set(y.initial().tobytes()) == {0xCD}
    assert (x.generator, x.initial().shape) == ("edges", (1, 2))


def test_content_depends_on_seed_and_name_only(tmp_path: Path) -> None:
    content = read(tmp_path, EXAMPLE).launch("full").buffers[0].initial()
    without = EXAMPLE.replace('table = { dtype = "u32", shape = 256, role = "in", fill = "bits" }\n', "").replace('T0 = "table"\n', "")
    assert np.array_equal(read(tmp_path, without).launch("full").buffers[0].initial(), content)
    assert not np.array_equal(read(tmp_path, EXAMPLE.replace("seed = 7", "seed = 8")).launch("full").buffers[0].initial(), content)


def test_parameter_block_is_naturally_aligned(tmp_path: Path) -> None:
    step = read(tmp_path, EXAMPLE).launch("full").steps[0]
    assert step.offsets() == (0, 8, 16, 24, 32, 40)
    block = step.pack({"x": 0x7F0000001000, "y": 0x7F0000002000})
    assert block.hex(" ", 8) == "e803000000000000 001000000" "07f0000 0300000000000000 002000000" "07f0000 0000000000406f40"


def test_a_struct_is_one_parameter_aligned_to_its_largest_field(tmp_path: Path) -> None:
    arguments = 'arguments = [{ u8 = 1 }, [{ i32 = 2 }, "x", { u16 = 3 }], { i32 = 4 }, [{ u8 = 5 }, { u8 = 6 }], "y"]'
    text = EXAMPLE.replace('arguments = [{ i32 = "n" }, "x", { u8 = 3 }, "y", { f64 = "n / 4" }]', arguments)
    step = read(tmp_path, text).launch("full").steps[0]
    assert step.parameters() == [(0, 1), (8, 24), (32, 4), (36, 2), (40, 8)]
    assert step.offsets() == (0, 8, 16, 24, 32, 36, 37, 40, 48)
    assert step.structs == (range(1, 4), range(5, 7))
    assert step.pack({"x": 1 << 40, "y": 0})[8:26].hex() == "02000000" + "0" * 8 + "0000000000010000" + "0300"


def test_clusters_cooperation_work_and_what_is_timed(tmp_path: Path) -> None:
    file = read(tmp_path, EXAMPLE)
    first, second = file.launch("full").steps
    assert (first.cluster, first.cooperative) == (None, False)
    assert (second.cluster, second.cooperative) == ((2, 2, 1), True)
    assert file.launch("full").work == {"bytes": 8000}
    assert file.timed == ("full",)
    assert read(tmp_path, EXAMPLE.replace('timed = ["full"]', "")).timed == ("full", "one")


WRONG = [
    ("[launches]", "[lunches]", "the key 'launches' is missing"),
    ("seed = 7", "sede = 7", "unknown key 'sede'; known: buffers"),
    ("seed = 7", "seed =", "cannot read the launch file"),
    ('dtype = "bf16"', 'dtype = "bf61"', "launches.full: buffers.y: dtype: unknown element type 'bf61'; known: bf16"),
    ('role = "out"', 'role = "output"', "buffers.y: role: unknown role 'output'; known: in, out, inout, scratch"),
    (', fill = "bits"', "", "buffers.table: fill: a buffer that is read needs one"),
    ('"uniform(-1, 1)"', '"unifrom(-1, 1)"', "buffers.x: fill: unknown generator 'unifrom'; known: zeros"),
    ('shape = "padded"', 'shape = "n / 3"', "buffers.y: shape: 'n / 3' is 333.3"),
    ('shape = "padded"', 'shape = "m"', "buffers.y: shape: 'm' names an unknown size 'm'; known: n, blocks, padded"),
    ('arguments = ["y"]', 'arguments = ["z"]', "steps[1]: arguments[0]: buffer: unknown buffer 'z'; there are x, table, y"),
    ('arguments = ["y"]', "arguments = [3]", "steps[1]: arguments[0]: expected the name of a buffer or a scalar"),
    ("{ u8 = 3 }", "{ u8 = 300 }", "steps[0]: arguments[2]: 300 is not a value of u8 (0 to 255)"),
    ("{ u8 = 3 }", "{ int = 3 }", "steps[0]: arguments[2]: unknown scalar type 'int'"),
    ('T0 = "table"', 'T0 = "tabel"', "symbols.T0: unknown buffer 'tabel'"),
    ('T0 = "table"', "", "no step uses the buffer 'table'"),
    ("block = 64", "block = [64, 64]", "steps[1]: block: 4096 threads; a block has at most 1024"),
    ("block = 64", "block = 0", "steps[1]: block: [0] is not up to three counts"),
    ('grid = ["blocks", 2]', 'grid = ["blocks", 70000]', "steps[1]: grid: [4, 70000] is not up to three counts"),
    ("[fill.one]", "[fill.two]", "fill.two: there is no launch 'two'; there are full, one"),
    ('x = "edges"', 'z = "edges"', "launches.one: fill.one names the unknown buffer 'z'"),
    ("cluster = [2, 2]", "cluster = 3", "steps[1]: cluster: the grid (4, 2, 1) is not a multiple of (3, 1, 1)"),
    ("cooperative = true", "cooperative = 1", "steps[1]: cooperative: 1 is neither true nor false"),
    ('timed = ["full"]', 'timed = ["large"]', "timed: ['large'] is not a list of launches; there are full, one"),
    ('bytes = "8 * n"', 'flops = "8 * n"', "work: unknown key 'flops'; known: bytes, f32, f64, tensor"),
    ("align = 16", "aligned = 16", "facts: unknown key 'aligned'; known: align, approx"),
    ("align = 16", "align = true", "facts: align: True is not of the kind of its default, 1"),
    ("relative = 1e-3", 'relative = "small"', "tolerance: relative: 'small' is not of the kind"),
]


@pytest.mark.parametrize(("right", "wrong", "message"), WRONG, ids=[w for _, w, _ in WRONG])
def test_error_names_file_and_key(tmp_path: Path, right: str, wrong: str, message: str) -> None:
    assert right in EXAMPLE
    with pytest.raises(LaunchError) as caught:
        read(tmp_path, EXAMPLE.replace(right, wrong, 1))
    assert str(caught.value).startswith(str(tmp_path / "example.toml"))
    assert message in str(caught.value)


def test_missing_file_and_unknown_launch(tmp_path: Path) -> None:
    with pytest.raises(LaunchError, match="cannot read the launch file"):
        read_launch_file(tmp_path / "none.toml")
    with pytest.raises(LaunchError, match=r"example.toml: no launch 'huge'; there are full, one"):
        read(tmp_path, EXAMPLE).launch("huge")
