"""Lifting, freeing and every analysis take time linear in the size of the kernel."""

from __future__ import annotations

import gc
from time import process_time

from sassir.analysis.allocation import check_allocation
from sassir.analysis.divergence import Divergence
from sassir.analysis.flow import flow_of
from sassir.analysis.liveness import Liveness
from sassir.analysis.loops import Loops
from sassir.analysis.pressure import pressure
from sassir.analysis.propagation import Propagation
from sassir.analysis.ssa import verify_ssa
from sassir.asm import INSTRUCTION_BYTES, Function, Line
from sassir.asm.parse import parse_instruction
from sassir.dialect.facts import KernelFacts
from sassir.passes.virtualise import virtualise
from sassir.translate.lift import lift_function

TIMES = 8
MOST = 1.5
"""How much longer an instruction may take in the large kernel: caches do not hold it. Quadratic steps would make it `TIMES`."""


def piece(i: int) -> list[str]:
    """40 instructions in 6 blocks: a branch that splits the warp, and a loop."""
    r = 4 + 2 * (i % 20)
    others = [4 + 2 * ((i + k) % 20) for k in range(1, 21)]
    return [
        f"LDG.E.64 R{r}, desc[UR4][R{others[6]}.64]",
        f"ISETP.GE.AND P{i % 5}, PT, R{r}, R0, PT",
        "BSSY B0, .+0x100",
        f"@P{i % 5} BRA .+0x90",
        *[f"DFMA R{others[k]}, R{others[k + 3]}, R{r}, R{others[k + 5]}" for k in range(7)],
        "BRA .+0x60",
        *[f"@!P{i % 5} IADD3 R{r + 1}, R{r}, R{r + 1}, R2" for _ in range(5)],
        "BSYNC B0",
        *[f"IADD3 R2, R2, R{other}, RZ" for other in others[:18]],
        f"IADD3 R{r}, R{r}, 0x1, RZ",
        f"ISETP.LT.AND P6, PT, R{r}, R3, PT",
        "@P6 BRA .-0x20",
    ]


def kernel(pieces: int) -> Function:
    """All pieces in a loop."""
    head = ["MOV R1, c[0x0][0x28]", "S2R R0, SR_TID.X", "MOV R2, RZ", "ULDC.64 UR4, c[0x0][0x118]"]
    body = [line for i in range(pieces) for line in piece(i)]
    tail = ["ISETP.LT.AND P0, PT, R2, 0x64, PT", f"@P0 BRA .-{INSTRUCTION_BYTES * (len(body) + 1):#x}", "EXIT"]
    code = [parse_instruction(line) for line in head + body + tail]
    return Function("k", None, tuple([Line(c, INSTRUCTION_BYTES * i) for i, c in enumerate(code)]), {})


def work(function: Function) -> float:
    """Seconds for all steps."""
    start = process_time()
    lifted = lift_function(function, {})
    check_allocation(lifted.body)
    assert virtualise(lifted) is None
    verify_ssa(lifted.body)
    Propagation(lifted, KernelFacts(), "sm_90")
    flow = flow_of(lifted.body)
    loops, live = Loops(flow.cfg), Liveness(flow)
    assert len(loops.loops) == len(function.lines) // len(piece(0)) + 1
    assert pressure(live).peak["R"] > 20
    assert Divergence(lifted.body).split
    return process_time() - start


def test_eight_times_the_code_takes_eight_times_as_long() -> None:
    gc.collect()
    gc.disable()  # the collector looks at all objects of the process, those of other tests too
    try:
        small, large = kernel(20), kernel(20 * TIMES)
        few = min(work(small) for _ in range(3))
        many = min(work(large) for _ in range(2))
    finally:
        gc.enable()
    assert many <= MOST * TIMES * few
