"""The kernels of the benchmark suite, on every architecture: the same results as on sm_90."""

from __future__ import annotations

import tarfile
from functools import cache
from pathlib import Path

import pytest

from sassir.emulator import emulate
from sassir.launch import Launch, LaunchFile, Outputs, compare, read_launch_file

ROOT = Path(__file__).parents[2]
BENCH = ROOT / "bench"
ARCHS = ("sm_75", "sm_80", "sm_100", "sm_120")


@cache
def archived() -> dict[str, bytes]:
    """The cubins for other architectures, by `KERNEL.ARCH`."""
    with tarfile.open(ROOT / "tests" / "cubins" / "bench.tar.xz") as archive:
        members = [(member.name, archive.extractfile(member)) for member in archive if member.isfile()]
        return {Path(name).name.removesuffix(".cubin"): file.read() for name, file in members if file is not None}


KERNELS = sorted({name.partition(".")[0] for name in archived()})


def small(file: LaunchFile) -> Launch:
    """The launch called small, or the one with the least data."""
    return file.launches.get("small") or min(file.launches.values(), key=lambda launch: launch.nbytes)


@cache
def on_sm_90(kernel: str, launch: str) -> Outputs:
    file = read_launch_file(BENCH / "launch" / f"{kernel}.toml")
    return emulate((BENCH / "cubins" / f"{kernel}.sm_90.cubin").read_bytes(), file.launch(launch))


# Contracted to fused multiply-adds in another order.
ANOTHER_ORDER = {("su3_spill", "sm_100"), ("su3_spill", "sm_120")}
def pairs() -> list[tuple[str, str]]:
    """Every kernel on every architecture."""
    return [(kernel, arch) for kernel in KERNELS for arch in ARCHS]


@pytest.mark.parametrize(("kernel", "arch"), pairs())
def test_every_architecture_gives_the_same_bits(kernel: str, arch: str) -> None:
    file = read_launch_file(BENCH / "launch" / f"{kernel}.toml")
    outputs = emulate(archived()[f"{kernel}.{arch}"], small(file))
    difference = compare(small(file), on_sm_90(kernel, small(file).name), outputs)
    if (kernel, arch) in ANOTHER_ORDER:
        assert difference is not None
        difference = compare(small(file), on_sm_90(kernel, small(file).name), outputs, file.tolerance)
    assert difference is None, str(difference)


@pytest.mark.parametrize(
    ("kernel", "launch"), [("triton_matmul", "tail"), ("histogram256", "small"), ("sgemm_tiled", "tail"), ("triton_softmax", "tail")]
)
def test_it_does_not_matter_how_many_blocks_run_together(kernel: str, launch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    together = on_sm_90(kernel, launch)
    case = read_launch_file(BENCH / "launch" / f"{kernel}.toml").launch(launch)
    monkeypatch.setattr("sassir.emulator.run.BATCH_LANES", 1)
    alone = emulate((BENCH / "cubins" / f"{kernel}.sm_90.cubin").read_bytes(), case)
    difference = compare(case, together, alone)
    assert difference is None, str(difference)
