"""Allocation takes time linear in the size of the kernel."""

from __future__ import annotations

import gc
from random import Random
from time import process_time

from sassir.allocation.allocate import allocate
from sassir.asm import INSTRUCTION_BYTES, Function, Line
from sassir.asm.parse import parse_instruction
from sassir.dialect.operations import KernelOp
from sassir.passes.virtualise import virtualise
from sassir.translate.lift import lift_function

BLOCKS = 800
"""So many that caches hold neither this kernel nor the larger one."""
TIMES = 4
MOST = 1.5
"""How much longer an instruction may take in the larger kernel. Quadratic steps would make it `TIMES`."""


def branches(blocks: int) -> KernelOp:
    """A kernel of 8 instructions a block, with branches over some blocks and back, and 20 values that live everywhere."""
    rng = Random(1)
    text = [f"MOV R{r}, {r:#x}" for r in range(20)]
    for b in range(blocks):
        pick = [rng.randrange(20) for _ in range(24)]
        text += [f"IMAD R{pick[i]}, R{pick[i + 6]}, R{pick[i + 12]}, R{pick[i + 18]}" for i in range(6)]
        text.append(f"ISETP.GE.AND P0, PT, R{pick[0]}, R{pick[9]}, PT")
        target = min(b + rng.choice([2, 3]), blocks) if rng.random() < 0.85 else max(0, b - rng.choice([1, 4]))
        text.append(f"@P0 BRA .{INSTRUCTION_BYTES * (20 + 8 * target - len(text)):+#x}")
    text += [*[f"STG.E [R{r & ~1}.64], R{r}" for r in range(20)], "EXIT"]
    lines = [Line(parse_instruction(line), INSTRUCTION_BYTES * i) for i, line in enumerate(text)]
    kernel = lift_function(Function("branches", None, tuple(lines), {}), {})
    assert virtualise(kernel) is None
    return kernel


def seconds(blocks: int) -> float:
    kernel = branches(blocks)
    gc.collect()
    start = process_time()
    allocate(kernel, "sm_75")
    return process_time() - start


def test_a_kernel_of_four_times_the_blocks() -> None:
    small = min(seconds(BLOCKS) for _ in range(3))
    large = min(seconds(BLOCKS * TIMES) for _ in range(2))
    assert large < MOST * TIMES * small
