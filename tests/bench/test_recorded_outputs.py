"""The emulator gives what a GPU gave, as bench/record_outputs.py wrote it down: a GPU is not needed any more."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sassir.asm.program import Program
from sassir.emulator import Checks, emulate
from sassir.isa.semantics import deviation
from sassir.launch import Outputs, Tolerance, compare, read_launch_file
from sassir.translate.cubin import read_program

references: Any = pytest.importorskip("references")

ROOT = Path(__file__).parents[2]
BENCH = ROOT / "bench"
RECORDED = BENCH / "results" / "outputs"
ARCH = "sm_90"


def recordings() -> list[Any]:
    """Kernel, launch, hash of the cubin, and of each output; a reason to skip where nothing was recorded."""
    path = RECORDED / f"{ARCH}.json"
    if not path.exists():
        missing = f"no outputs of a GPU in {RECORDED.relative_to(ROOT)}; bench/record_outputs.py makes them"
        return [pytest.param("", "", "", {}, marks=pytest.mark.skip(reason=missing))]
    kernels: dict[str, dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["kernels"]
    return [
        pytest.param(kernel, launch, found["cubin"], outputs, id=f"{kernel}-{launch}")
        for kernel, found in kernels.items()
        for launch, outputs in found["launches"].items()
        if not isinstance(outputs, str)
    ]


def tolerance(kernel: str, program: Program) -> Tolerance | None:
    """None, bit for bit, unless the code has an instruction that only comes close to the hardware (docs/semantics.md)."""
    code = [line.instruction for function in program.functions for line in function.lines]
    close = any(deviation(instruction) for instruction in code)
    return references.REFERENCES[kernel].tolerance if close else None


def hashes(outputs: Outputs) -> dict[str, str]:
    return {name: hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest() for name, array in outputs.items()}


@pytest.mark.parametrize(("kernel", "launch", "cubin", "digests"), recordings())
def test_the_emulator_gives_what_the_gpu_gave(kernel: str, launch: str, cubin: str, digests: dict[str, str]) -> None:
    data = (BENCH / "cubins" / f"{kernel}.{ARCH}.cubin").read_bytes()
    assert hashlib.sha256(data).hexdigest() == cubin, "the cubin is another one than when its outputs were recorded"
    case = read_launch_file(BENCH / "launch" / f"{kernel}.toml").launch(launch)
    # Triton's kernels exchange registers in shuffles that not every lane has written, and ignore what they receive.
    outputs = emulate(data, case, checks=Checks(registers=not kernel.startswith("triton")))
    with np.load(RECORDED / f"{ARCH}.npz") as saved:
        kept = {b.name: saved[key] for b in case.outputs if (key := f"{kernel}/{launch}/{b.name}") in saved}
    allowed = tolerance(kernel, read_program(data))
    difference = compare(case, {**outputs, **kept}, outputs, allowed)
    assert difference is None, str(difference)
    if allowed is None:
        assert hashes(outputs) == digests
