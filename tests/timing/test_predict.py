"""Kernels, loops and launches: what the parts add up to, and what limits them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from sassir.asm import Function
from sassir.errors import LaunchError, SassirError
from sassir.launch import read_launch_file
from sassir.machine.hierarchy import HIERARCHIES
from sassir.timing import Prediction, Profile, Shape, Traffic, predict
from sassir.timing.kernels import predict_sampled, predict_static, predicted_gains, read_kernels
from sassir.translate.flow import find_flow

Written = Callable[[str], Function]
ROOT = Path(__file__).parents[2]
CUBINS = ROOT / "bench" / "cubins"
GPU = HIERARCHIES["sm_90"]
LOOP = """
    [B------:R-:W-:-:S01] FMUL R1, R8, R9
    [B------:R-:W-:-:S01] FMUL R2, R8, R9
    [B------:R-:W-:-:S01] FMUL R3, R8, R9
    [B------:R-:W-:Y:S13] ISETP.NE.AND P0, PT, R7, R6, PT
    [B------:R-:W-:Y:S05] @P0 BRA .-0x40
    [B------:R-:W-:Y:S05] EXIT
"""
RUNS = [1000.0, 1000.0, 1000.0, 1000.0, 1000.0, 1.0]


def run(function: Function, shape: Shape, executions: list[float]) -> Prediction:
    return predict(function, find_flow(function, {}), "sm_90", shape, Profile(executions, executions, {}, "test"))


def test_a_loop_of_one_warp_takes_its_stall_counts(written: Written) -> None:
    """1 + 1 + 1 + 13 + 5 cycles, and what the branch takes."""
    (loop,) = run(written(LOOP), Shape(1, 32, 32, 0), RUNS).loops
    assert (loop.runs, loop.alone) == (1000, 21 + GPU.overheads.branch)
    assert loop.bound == "latency"


def test_a_full_multiprocessor_issues_in_every_cycle(written: Written) -> None:
    """16 warps a scheduler, 5 instructions an iteration: 80 cycles."""
    (loop,) = run(written(LOOP), Shape(8 * GPU.multiprocessors, 256, 32, 0), RUNS).loops
    assert loop.resident == pytest.approx(80, rel=0.02)
    assert loop.bound == "issue"
    assert loop.utilisation["fma"] == pytest.approx(3 / 5, abs=0.02)


def test_blocks_add_up_to_the_kernel(written: Written) -> None:
    """But for what belongs to no line: the start of a block and its last warp."""
    found = run(written(LOOP), Shape(8 * GPU.multiprocessors, 256, 32, 0), RUNS)
    rest = found.whole.resident - sum(block.runs * block.resident for block in found.blocks)
    assert rest == pytest.approx(found.whole.stalls["launch"])
    assert sum(block.utilisation["issue"] for block in found.blocks) == pytest.approx(found.whole.utilisation["issue"])
    for part in (found.whole, *found.loops, *found.blocks):
        assert sum(part.stalls.values()) == pytest.approx(part.resident)


def test_twice_the_blocks_take_twice_as_long(written: Written) -> None:
    one, two = (run(written(LOOP), Shape(n * 8 * GPU.multiprocessors, 256, 32, 0), RUNS).cycles for n in (1, 2))
    assert two == pytest.approx(2 * one)


def test_a_block_that_does_not_fit_is_refused(written: Written) -> None:
    with pytest.raises(SassirError, match="a block of 1024 threads with 255 registers does not fit: registers"):
        run(written(LOOP), Shape(1, 1024, 255, 0), RUNS)


def test_facts_of_the_launch_tell_trip_counts() -> None:
    """The tile loop of a matrix product: K / 32 iterations."""
    data = (CUBINS / "sgemm_tiled.sm_90.cubin").read_bytes()
    file = read_launch_file(ROOT / "bench" / "launch" / "sgemm_tiled.toml")
    launch = file.launch("full")
    (found,) = predict_static(data, "sgemm_tiled", launch, file.facts)
    runs = max(loop.runs for loop in found.loops)
    assert runs == launch.sizes["K"] / 32
    assert found.whole.bound == "lsu"


def test_without_a_launch_loops_run_as_often_as_is_assumed() -> None:
    data = (CUBINS / "saxpy_gs.sm_90.cubin").read_bytes()
    (found,) = predict_static(data, "saxpy_gs", trips=40)
    assert [loop.runs for loop in found.loops] == [40]
    assert len(found.assumed) == 1
    assert "1 loops taken to run 40 times" in found.source


def test_a_launch_of_another_kernel_is_refused() -> None:
    launch = read_launch_file(ROOT / "bench" / "launch" / "saxpy_gs.toml").launch("full")
    with pytest.raises(LaunchError, match="no kernel 'saxpy_gs', which the launch starts; there are sgemm_tiled"):
        predict_static((CUBINS / "sgemm_tiled.sm_90.cubin").read_bytes(), "file", launch)


@pytest.mark.parametrize("path", sorted((ROOT / "tests" / "cubins").glob("calls.sm_*.cubin")), ids=lambda path: path.stem)
def test_every_architecture_has_a_timing(path: Path) -> None:
    """What has no known flow counts as far as it is known."""
    data = path.read_bytes()
    predictions = predict_static(data, path.name)
    assert [p.kernel for p in predictions] == [k.function.name for k in read_kernels(data, path.name)]
    for found in predictions:
        assert 0 < found.whole.alone <= found.whole.resident
        assert all(0 <= share <= 1 + 1e-6 for share in found.whole.utilisation.values())


def test_gains_where_the_loops_are_known() -> None:
    data = (CUBINS / "sgemm_tiled.sm_90.cubin").read_bytes()
    file = read_launch_file(ROOT / "bench" / "launch" / "sgemm_tiled.toml")
    assert predicted_gains(data, data, "sgemm_tiled", file.launch("full"), file.facts) == {"sgemm_tiled": 1}


def test_gains_where_loops_run_equally_often() -> None:
    """Nobody says how often; but a loop that does the same work in a turn is the same loop, and one that was unrolled is not."""
    data, other = ((CUBINS / f"{name}.sm_90.cubin").read_bytes() for name in ("sgemm_tiled", "sgemm_naive"))
    assert predicted_gains(data, data, "sgemm_tiled") == {"sgemm_tiled": 1}
    (tiled,), (naive,) = predict_static(data), predict_static(other)
    assert tiled.assumed
    assert not tiled.comparable(naive)


def test_an_access_that_no_thread_makes(written: Written) -> None:
    """Its guard never holds: it needs its issue slot and nothing of the load/store unit."""
    function = written("""
        [B------:R-:W0:-:S02] @P0 LDS R1, [R2]
        [B------:R-:W-:Y:S05] EXIT
    """)
    profile = Profile([1.0, 1.0], [1.0, 1.0], {0: Traffic(0, 0, 0, 0)}, "test")
    (block,) = predict(function, find_flow(function, {}), "sm_90", Shape(1, 256, 32, 0), profile).blocks
    assert "lsu" not in block.utilisation
    assert block.utilisation["issue"] > 0


@pytest.mark.parametrize(("kernel", "case"), [("dgemv_col", "medium"), ("conv3x3", "medium"), ("sgemm_naive", "medium")])
def test_a_dry_run_says_how_often_loops_run_that_count_in_other_ways(kernel: str, case: str) -> None:
    """ptxas unrolls by 16, 8, 4 and 1 in turn; the sizes of the launch decide which of these loops run. Measured: docs/timing.md."""
    file = read_launch_file(ROOT / "bench" / "launch" / f"{kernel}.toml")
    (found,) = predict_static((CUBINS / f"{kernel}.sm_90.cubin").read_bytes(), kernel, file.launch(case), file.facts)
    measured = {"dgemv_col": 223.0, "conv3x3": 353.0, "sgemm_naive": 60.4}[kernel]
    assert found.assumed == ()
    assert found.microseconds == pytest.approx(measured, rel=0.25)


def test_without_branches_on_data_a_dry_run_counts_what_the_emulator_counts() -> None:
    file = read_launch_file(ROOT / "bench" / "launch" / "scan_block.toml")
    data, launch = (CUBINS / "scan_block.sm_90.cubin").read_bytes(), file.launch("medium")
    (static,), (sampled,) = predict_static(data, "scan_block", launch, file.facts), predict_sampled(data, launch)
    assert static.microseconds == pytest.approx(sampled.microseconds, rel=0.02)
