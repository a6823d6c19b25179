"""Every bench kernel has a launch file that fits its signature, in every launch, without a GPU or a compiler."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

from sassir.launch import Scalar, read_launch_file

BENCH = Path(__file__).parents[2] / "bench"
KERNELS = sorted((BENCH / "kernels").glob("*.cu"))
PAIRS = [(path, BENCH / "launch" / f"{path.stem}.toml") for path in KERNELS]
PAIRS.append((BENCH / "edits" / "edited.cu", BENCH / "edits" / "edited.toml"))

SIGNATURE = re.compile(r'(?:KERNEL|extern "C" __global__ void(?: __launch_bounds__\([^)]*\))?)\s+(\w+)\(([^)]*)\)')
TYPES = {
    "__nv_bfloat16": "bf16",
    "double": "f64",
    "float": "f32",
    "float2": "f32",
    "float4": "f32",
    "half": "f16",
    "i64": "i64",
    "int": "i32",
    "uint4": "u32",
    "unsigned": "u32",
    "unsigned char": "u8",
}


def signatures(source: Path) -> dict[str, list[str]]:
    """Kernel name to parameter types as written, a pointer with its star."""
    text = re.sub(r"//.*", "", source.read_text())
    found = dict[str, list[str]]()
    for name, parameters in SIGNATURE.findall(text):
        found[name] = [re.sub(r"\bconst\b|\bRP\b|\b\w+$", "", p.strip()).strip() for p in parameters.replace("\n", " ").split(",")]
    return found


def test_every_kernel_has_a_launch_file() -> None:
    assert len(KERNELS) == 30
    assert all(file.exists() for _, file in PAIRS)
    others = {p.stem for p in (BENCH / "launch").glob("*.toml")} - {p.stem for p in KERNELS}
    assert {name.partition("_")[0] for name in others} == {"triton", "cupy"}


@pytest.mark.parametrize(("source", "file"), PAIRS, ids=lambda path: path.stem)
def test_arguments_fit_the_signature(source: Path, file: Path) -> None:
    known = signatures(source)
    for launch in read_launch_file(file).launches.values():
        for step in launch.steps:
            parameters = known[step.kernel]
            assert len(parameters) == len(step.arguments)
            for parameter, argument in zip(parameters, step.arguments, strict=True):
                assert isinstance(argument, Scalar) != parameter.endswith("*")
                assert argument.dtype == TYPES[parameter.rstrip("* ")]




@pytest.mark.parametrize("kernel", ["silu_mul_bf16", "gelu_bias_f16", "fuse2", "black_scholes", "poly_strict", "dbl_literal"])
def test_one_thread_an_element_covers_the_result(kernel: str) -> None:
    for launch in read_launch_file(BENCH / "launch" / f"{kernel}.toml").launches.values():
        step = launch.steps[-1]
        assert math.prod(step.grid) * math.prod(step.block) >= max(buffer.length for buffer in launch.outputs)
