"""How long a pipeline takes, by the size of the kernel and by pass: processor seconds on one core.

    python bench/pipeline_speed.py [--sizes 1 4 16 64] [--pipeline launch]

The kernel prices a number of options one after the other, black_scholes of the suite unrolled by nvcc: loads, stores, long chains of
arithmetic, and for each option the guards of five exact operations with their calls. Writes bench/results/pipeline-speed.json.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import tempfile
import time
import warnings
from pathlib import Path

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from sassir.dialect.facts import KernelFacts, Pointer
from sassir.dialect.instruction import SassInstruction
from sassir.errors import SassirWarning
from sassir.optimize import collection_paused, read_pipeline
from sassir.translate.cubin import read_module
from sassir.translate.facts import attach_facts

BENCH = Path(__file__).parent
ARCH = "sm_90"
SIZES = (1, 16, 104)
"""Options in a thread; each is some 300 instructions."""
BLOCK, THREADS = 256, 1 << 20
BUFFERS_AT = (0x210, 0x218, 0x220, 0x228, 0x230)
COUNT_AT = 0x240
"""Where in constant bank 0 the pointers and the parameter n are."""
ALIGN, NBYTES = 256, 1 << 30
SOURCE = """
#include "black_scholes.cu"
extern "C" __global__ void options(const float *__restrict__ S, const float *__restrict__ X, const float *__restrict__ T,
                                   float *__restrict__ call, float *__restrict__ put, float r, float v, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
#pragma unroll
  for (int k = 0; k < COUNT; k++)
    if (i + k * n < COUNT * n) bs(S[i + k * n], X[i + k * n], T[i + k * n], r, v, &call[i + k * n], &put[i + k * n]);
}
"""


def build(count: int, folder: Path) -> bytes:
    """The cubin of the kernel with `count` options."""
    source, cubin = folder / f"options{count}.cu", folder / f"options{count}.cubin"
    source.write_text(SOURCE)
    command = ["nvcc", "-cubin", f"-arch={ARCH}", f"-DCOUNT={count}", f"-I{BENCH / 'kernels'}", "-o", str(cubin), str(source)]
    subprocess.run(command, check=True)
    return cubin.read_bytes()


def measure(cubin: bytes, pipeline: str, buffers: bool = False) -> dict[str, object]:
    """Instructions before and after, and the seconds of each pass in the order in which they run. `buffers`: with the facts of these."""
    module = read_module(cubin)
    for kernel in list(module.body.ops)[1:]:
        kernel.detach()
    if pipeline != "default":
        facts = KernelFacts(
            block=(BLOCK, 1, 1),
            grid=(THREADS // BLOCK, 1, 1),
            words=((COUNT_AT, THREADS),),
            pointers=tuple([Pointer(offset, ALIGN, NBYTES) for offset in BUFFERS_AT]) if buffers else (),
            noalias=buffers,
        )
        attach_facts(module, {"options": facts})
    before = _count(module)
    seconds: list[tuple[str, float]] = []
    with collection_paused():
        for step in read_pipeline(pipeline).all_passes():
            start = time.process_time()
            step.apply(Context(), module)
            seconds.append((step.name, round(time.process_time() - start, 3)))
    return {"before": before, "after": _count(module), "seconds": round(sum(s for _, s in seconds), 2), "passes": seconds}


def _count(module: ModuleOp) -> int:
    return sum(isinstance(op, SassInstruction) for op in module.walk())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--pipeline", default="launch")
    options = parser.parse_args()
    warnings.simplefilter("ignore", SassirWarning)
    found: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as folder:
        for count in options.sizes:
            cubin = build(count, Path(folder))
            for buffers in (False, True):
                found.append({"options": count, "buffers": buffers} | measure(cubin, options.pipeline, buffers))
                print(found[-1], flush=True)
    result = {"arch": ARCH, "pipeline": options.pipeline, "python": platform.python_version(), "kernels": found}
    (BENCH / "results" / "pipeline-speed.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
