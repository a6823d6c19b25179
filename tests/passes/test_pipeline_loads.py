"""sass-pipeline-loads: loads an iteration ahead, where nothing in the loop tells the difference, and none that was not made before."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import SSAValue

from sassir.analysis.region_loops import region_loops
from sassir.asm import INSTRUCTION_BYTES, Function, Line
from sassir.asm.parse import parse_instruction
from sassir.dialect.facts import FACTS, FactsAttr, KernelFacts, Pointer, used_facts
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.operations import KernelOp
from sassir.emulator import emulate
from sassir.errors import SassirError
from sassir.launch import Launch, read_launch
from sassir.launch.read import read_launch_file
from sassir.optimize import Pipeline, Task, optimise_cubin
from sassir.passes.pipeline_loads import PipelineLoads
from sassir.passes.virtualise import Virtualise
from sassir.rewrite import early_loads
from sassir.rewrite.simplify import without_guard
from sassir.timing.kernels import predict_static
from sassir.translate.cubin import read_program
from sassir.translate.lift import ARCH, lift_function

BENCH = Path(__file__).parents[2] / "bench"
BUFFERS = (Pointer(0x210, 256, 0x1000), Pointer(0x218, 256, 0x1000))
ONE_WARP = KernelFacts(block=(32, 1, 1), grid=(1, 1, 1), pointers=BUFFERS, noalias=True)
START = """
LDC.64 R2, c[0x0][0x210]
LDC.64 R4, c[0x0][0x218]
S2R R0, SR_TID.X
MOV R8, RZ
MOV R9, RZ
"""
"""R2 and R4 are the buffers, R0 a number that is not known, R8 a counter, R9 a sum."""
LOAD = "LDG.E R10, desc[UR4][R2.64]"
USE = """
MUFU.EX2 R11, R10
MUFU.EX2 R11, R11
MUFU.EX2 R11, R11
MUFU.EX2 R11, R11
FADD R9, R9, R11
"""
STEP = """
IADD3 R2, P1, R2, 0x4, RZ
IADD3.X R3, R3, RZ, RZ, P1, !PT
IADD3 R8, R8, 0x1, RZ
ISETP.NE.AND P0, PT, R8, R0, PT
"""


def pipelined(body: str, facts: KernelFacts = ONE_WARP, behind: str = "STS [RZ], R9") -> KernelOp:
    """A loop of `body` after the pass, with `behind` behind it."""
    inside = [line for line in body.splitlines() if line]
    text = [*START.strip().splitlines(), *inside, f"@P0 BRA .-{16 * (len(inside) + 1):#x}", behind, "EXIT"]
    lines = tuple([Line(parse_instruction(line), INSTRUCTION_BYTES * i) for i, line in enumerate(text)])
    made = lift_function(Function("k", None, lines, {}), {})
    made.attributes[FACTS] = FactsAttr(facts)
    module = ModuleOp([made], {ARCH: StringAttr("sm_90")})
    Virtualise().apply(Context(), module)
    assert made.fixed is None
    PipelineLoads().apply(Context(), module)
    module.verify()
    return made


def loads(kernel: KernelOp) -> tuple[int, list[bool]]:
    """The loads of global memory in front of the loop, and of those in it, whether they have a guard."""
    inside = {block for loop in region_loops(kernel.body) for block in loop.blocks}
    found = [op for block in kernel.body.blocks for op in block.ops if isinstance(op, SassInstruction) and op.MNEMONIC == "LDG"]
    return sum(op.parent not in inside for op in found), [op.guard is not None for op in found if op.parent in inside]


def test_the_next_load_is_made_where_the_loop_goes_on() -> None:
    made = pipelined(LOAD + USE + STEP)
    assert loads(made) == (1, [True])
    assert used_facts(made) == ()


def test_an_address_computed_in_the_loop_is_computed_for_the_next_iteration() -> None:
    made = pipelined("IMAD.WIDE R6, R8, 0x4, R4\nLDG.E R10, desc[UR4][R6.64]" + USE + STEP)
    assert loads(made) == (1, [True])
    (loop,) = region_loops(made.body)
    (product,) = [op for op in loop.header.ops if isinstance(op, SassInstruction) and op.MNEMONIC == "IMAD"]
    (ahead,) = [op for op in loop.header.ops if isinstance(op, SassInstruction) and op.MNEMONIC == "LDG"]
    assert ahead.reads[-2:] == tuple(product.results)
    counted = product.reads[0].owner
    assert isinstance(counted, SassInstruction)
    assert counted.MNEMONIC == "IADD3"  # what the counter will be


def test_a_store_to_another_buffer_needs_the_fact_that_buffers_do_not_overlap() -> None:
    body = LOAD + USE + "STG.E desc[UR4][R4.64], R9" + STEP
    made = pipelined(body)
    assert loads(made) == (1, [True])
    assert used_facts(made) == ("noalias",)
    alone = KernelFacts(block=(32, 1, 1), grid=(1, 1, 1), pointers=BUFFERS)
    assert loads(pipelined(body, alone)) == (0, [False])


def test_what_nobody_writes_is_loaded_before_a_barrier() -> None:
    assert loads(pipelined(LOAD.replace(".E", ".E.CONSTANT") + USE + "BAR.SYNC.DEFER_BLOCKING 0x0" + STEP)) == (1, [True])


TRAPS = {
    "a store that the next iteration reads": LOAD + USE + "STG.E desc[UR4][R2.64+0x4], R9" + STEP,
    "a store through a pointer of unknown origin": "LDS.64 R6, [R0]\nSTG.E desc[UR4][R6.64], R9\n" + LOAD + USE + STEP,
    "an atomic operation on the same buffer": LOAD + USE + "RED.E.ADD.STRONG.GPU desc[UR4][R2.64+0x8], R9" + STEP,
    "volatile": LOAD.replace(".E", ".E.STRONG.SYS") + USE + STEP,
    "a barrier": LOAD + USE + "BAR.SYNC.DEFER_BLOCKING 0x0" + STEP,
    "a fence": LOAD.replace(".E", ".E.CONSTANT") + USE + "MEMBAR.SC.GPU" + STEP,
    "a clock": LOAD + USE + "CS2R R12, SR_CLOCKLO" + STEP,
    "an address that is loaded": "LDS R2, [R0]\n" + LOAD + USE + STEP,
    "a load under a condition": "ISETP.NE.AND P2, PT, R8, 0x3, PT\n@P2 " + LOAD + USE + STEP,
    "a loop that looks for what it loads": LOAD + USE + STEP + "ISETP.NE.AND P0, PT, R10, RZ, PT",
    "an address of the next iteration that reads constants": "LDC.64 R6, c[0x3][R8]\nLDG.E R10, desc[UR4][R6.64]" + USE + STEP,
}


@pytest.mark.parametrize("body", TRAPS.values(), ids=TRAPS)
def test_it_stays_in_its_iteration(body: str) -> None:
    assert loads(pipelined(body))[0] == 0


def test_a_value_that_is_used_behind_the_loop_stays() -> None:
    assert loads(pipelined(LOAD + USE + STEP, behind="STS [RZ], R10")) == (0, [False])


def test_where_other_warps_fill_the_time_nothing_is_done() -> None:
    full = KernelFacts(block=(1024, 1, 1), grid=(1024, 1, 1), pointers=BUFFERS, noalias=True)
    assert loads(pipelined(LOAD + 4 * USE + STEP)) == (1, [True])
    assert loads(pipelined(LOAD + 4 * USE + STEP, full)) == (0, [False])


def test_where_registers_are_scarce_nothing_is_done() -> None:
    busy = "".join(f"MOV R{n}, R0\n" for n in range(20, 254))
    needed = "".join(f"FADD R9, R9, R{n}\n" for n in range(20, 254))
    assert loads(pipelined(busy + LOAD + USE + needed + STEP)) == (0, [False])


CUBIN = (BENCH / "cubins" / "dgemv_col.sm_90.cubin").read_bytes()
BEFORE = Pipeline("test", 1, ("sass-specialize",))
PIPELINED = Pipeline("test", 1, (*BEFORE.passes, "sass-pipeline-loads"))


def _dgemv(columns: int) -> Launch:
    """Rows of `columns` elements, the last of which ends where the buffer ends."""
    return read_launch(BENCH / "launch" / "dgemv_col.toml", "small", {"m": 130, "n": columns})


@pytest.fixture(scope="module")
def dgemv() -> bytes:
    """For every number of columns: the loop of sixteen columns at a time has its loads an iteration ahead."""
    made = optimise_cubin(Task(CUBIN, "dgemv_col", Pipeline("test", 1, ("sass-schedule", "sass-pipeline-loads")), case=_dgemv(40)))
    assert not {fact for fact in made.outcomes[0].facts if fact.startswith("word")}
    loaded = [line.instruction for line in read_program(made.cubin).functions[0].lines if line.instruction.mnemonic == "LDG"]
    assert sum(i.guard is not None for i in loaded) >= 32
    return made.cubin


@pytest.mark.parametrize("columns", [1, 3, 15, 16, 17, 32, 40], ids=lambda n: f"{n} columns")
def test_no_one_and_more_iterations_give_the_same_bits(dgemv: bytes, columns: int) -> None:
    case = _dgemv(columns)
    expected, found = emulate(CUBIN, case), emulate(dgemv, case)
    assert np.array_equal(expected["y"].view(np.uint64), found["y"].view(np.uint64))


def test_a_load_of_the_iteration_that_does_not_come_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def unguarded(load: SassInstruction, values: dict[SSAValue, SSAValue], *_: object) -> SassInstruction:
        return without_guard(load.clone(values))

    monkeypatch.setattr(early_loads, "_guarded", unguarded)
    with pytest.raises(SassirError, match="0x"):
        emulate(optimise_cubin(Task(CUBIN, "dgemv_col", PIPELINED, case=_dgemv(32))).cubin, _dgemv(32))


def test_the_timing_model_sees_the_gain_over_the_order_of_ptxas() -> None:
    file = read_launch_file(BENCH / "launch" / "dgemv_col.toml")
    case = file.launch("medium")
    without = optimise_cubin(Task(CUBIN, "dgemv_col", BEFORE, file.facts, case)).cubin
    made = optimise_cubin(Task(CUBIN, "dgemv_col", PIPELINED, file.facts, case)).cubin
    before, after = [predict_static(cubin, "dgemv_col", case, file.facts)[0].microseconds for cubin in (without, made)]
    assert before > 2 * after
