"""sass-relax-barriers: a barrier of one warp becomes a NOP that keeps the order of memory accesses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr

from sassir.asm import INSTRUCTION_BYTES, Function, Line
from sassir.asm.parse import parse_instruction
from sassir.dialect.facts import FACTS, Dim3, FactsAttr, KernelFacts, used_facts
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.operations import KernelOp
from sassir.emulator import emulate
from sassir.launch import read_launch_file
from sassir.machine import machine
from sassir.optimize import Pipeline, Task, optimise_cubin, read_pipeline
from sassir.passes.relax_barriers import RelaxBarriers
from sassir.passes.virtualise import Virtualise
from sassir.schedule.graph import Graph
from sassir.translate.cubin import read_program
from sassir.translate.lift import ARCH, lift_function

BENCH = Path(__file__).parents[2] / "bench"
SYNC = "BAR.SYNC.DEFER_BLOCKING 0x0"
EXCHANGE = f"STS [R2], R0\n{SYNC}\nLDS R3, [R2+0x4]\nSTG.E desc[UR6][R8.64], R3"


def relaxed(text: str, block: Dim3 | None = (32, 1, 1)) -> KernelOp:
    code = [parse_instruction(line) for line in [*text.strip().splitlines(), "EXIT"]]
    lines = tuple([Line(instruction, INSTRUCTION_BYTES * i) for i, instruction in enumerate(code)])
    made = lift_function(Function("k", None, lines, {}), {})
    made.attributes[FACTS] = FactsAttr(KernelFacts(block=block))
    module = ModuleOp([made], {ARCH: StringAttr("sm_90")})
    Virtualise().apply(Context(), module)
    RelaxBarriers().apply(Context(), module)
    assert made.fixed is None
    return made


def names(kernel: KernelOp) -> list[str]:
    return [op.MNEMONIC for block in kernel.body.blocks for op in block.ops if isinstance(op, SassInstruction)]


@pytest.mark.parametrize("block", [(32, 1, 1), (8, 4, 1), (20, 1, 1), (1, 1, 1)])
def test_a_block_of_one_warp_waits_for_nobody(block: Dim3) -> None:
    made = relaxed(EXCHANGE, block)
    assert names(made) == ["STS", "NOP", "LDS", "STG", "EXIT"]
    assert used_facts(made) == ("block",)


@pytest.mark.parametrize("block", [(33, 1, 1), (32, 2, 1), None])
def test_several_warps_or_nobody_knows_how_many(block: Dim3 | None) -> None:
    made = relaxed(EXCHANGE, block)
    assert names(made) == ["STS", "BAR", "LDS", "STG", "EXIT"]
    assert used_facts(made) == ()


def test_the_order_of_memory_stays() -> None:
    """A trap: for one thread these are different words, for its neighbour they are the same."""
    (block, *_) = relaxed(EXCHANGE).body.blocks
    graph = Graph(block, KernelFacts(), {}, machine("sm_90"))
    assert 1 in graph.successors[0]
    assert 2 in graph.successors[1]


HAMMOCK = f"""
S2R R0, SR_TID.X
ISETP.NE.AND P0, PT, {{condition}}, RZ, PT
BSSY B0, .+0x50
@P0 BRA .+0x30
{SYNC}
STS [R2], R0
BSYNC B0
{SYNC}
LDS R3, [R2]
STG.E desc[UR6][R8.64], R3
"""


def test_in_an_arm_that_only_some_lanes_take_the_barrier_stays() -> None:
    """Behind the BSYNC the warp is together again."""
    assert [n for n in names(relaxed(HAMMOCK.format(condition="R0"))) if n in ("BAR", "NOP")] == ["BAR", "NOP"]


def test_an_arm_that_all_lanes_take_or_none() -> None:
    text = HAMMOCK.format(condition="R1").replace("S2R R0, SR_TID.X", "S2R R1, SR_CTAID.X")
    assert [n for n in names(relaxed(text)) if n in ("BAR", "NOP")] == ["NOP", "NOP"]


TRAPS = {
    "another barrier": "BAR.SYNC.DEFER_BLOCKING 0x1",
    "a barrier for some threads": "BAR.SYNC.DEFER_BLOCKING 0x1, 0x20",
    "arrival": "BAR.ARV 0x1, 0x40",
    "reduction": "BAR.RED.AND.DEFER_BLOCKING 0x0, P0",
    "asynchronous copy": "LDGSTS.E [R2], desc[UR6][R8.64]",
    "barrier object": "SYNCS.ARRIVE.TRANS64.A1T0 RZ, [UR4], RZ",
}


@pytest.mark.parametrize("trap", TRAPS)
def test_what_is_not_all_understood_stays(trap: str) -> None:
    assert "NOP" not in names(relaxed(f"{EXCHANGE}\n{TRAPS[trap]}"))


def step(limit: str, text: str = "LDS R3, [R2+0x4]\n@!P0 STS [R2], R3") -> str:
    """One step of a reduction by the threads below `limit`, with a barrier behind."""
    return f"ISETP.GE.AND P0, PT, R0, {limit}, PT\n{text.replace('LDS', '@!P0 LDS')}\n{SYNC}\n"


START = f"S2R R0, SR_TID.X\nSTS [R2], R0\n{SYNC}\n"
FINISH = "LDS R4, [UR4]\nSTG.E desc[UR6][R8.64], R4"


def kept(text: str, block: Dim3 = (256, 1, 1)) -> str:
    """What became of the barriers, in their order: B for one that stays, N for a NOP."""
    return "".join(name[0] for name in names(relaxed(text, block)) if name in ("BAR", "NOP"))


def test_the_tail_of_a_reduction() -> None:
    """All threads write, 64 of them read; then the first warp alone adds up; in the end all read the sum."""
    assert kept(START + step("0x40") + step("0x20") + step("0x10") + step("0x8") + FINISH) == "BBNNB"


@pytest.mark.parametrize("limit", ["0x21", "R5"])
def test_threads_of_another_warp_may_take_part(limit: str) -> None:
    assert kept(START + step("0x20") + step(limit) + step("0x10") + FINISH) == "BBBB"


CONDITIONS = {
    "ISETP.LT.AND P0, PT, R0, 0x20, PT": "@P0 STS [R2], R3",
    "ISETP.LE.AND P0, PT, R0, 0x1f, PT": "@P0 STS [R2], R3",
    "ISETP.EQ.U32.AND P0, PT, R0, 0x1f, PT": "@P0 STS [R2], R3",
    "ISETP.NE.AND P0, PT, R0, RZ, PT": "@!P0 STS [R2], R3",
    "ISETP.GT.U32.AND P0, PT, R0, 0x1f, PT": "@!P0 STS [R2], R3",
}
WRONG = {
    "ISETP.LE.AND P0, PT, R0, 0x20, PT": "@P0 STS [R2], R3",
    "ISETP.LT.AND P0, PT, R0, 0x20, PT": "@!P0 STS [R2], R3",
    "ISETP.EQ.AND P0, PT, R0, 0x20, PT": "@P0 STS [R2], R3",
    "ISETP.NE.AND P0, PT, R0, RZ, PT": "@P0 STS [R2], R3",
    "ISETP.LT.OR P0, PT, R0, 0x20, P1": "@P0 STS [R2], R3",
    "ISETP.LT.AND P0, PT, R5, 0x20, PT": "@P0 STS [R2], R3",
    "ISETP.LT.AND P1, P0, R0, 0x20, PT": "@P0 STS [R2], R3",
    "@P1 ISETP.LT.AND P0, PT, R0, 0x20, PT": "@P0 STS [R2], R3",
}


@pytest.mark.parametrize("condition", CONDITIONS)
def test_other_conditions_for_the_first_warp(condition: str) -> None:
    assert kept(START + f"{condition}\n{CONDITIONS[condition]}\n{SYNC}\n" + step("0x10") + FINISH) == "BNB"


@pytest.mark.parametrize("condition", WRONG)
def test_conditions_that_let_others_in(condition: str) -> None:
    assert kept(START + f"{condition}\n{WRONG[condition]}\n{SYNC}\n" + step("0x10") + FINISH) == "BBB"


def test_global_memory_counts_too() -> None:
    """A trap: the threads of all warps exchange something through global memory in between."""
    assert kept(START + step("0x20") + step("0x10", "@!P0 STS [R2], R3\nSTG.E desc[UR6][R8.64], R3") + step("0x8") + FINISH) == "BBBB"


def test_the_warps_are_numbered_by_x_alone() -> None:
    assert kept(START + step("0x20") + step("0x10") + FINISH, (32, 8, 1)) == "BBB"


def test_barriers_in_a_loop_of_unknown_length_before_them() -> None:
    """A trap: warps that turn more often would meet others at another barrier than before."""
    loop = f"IADD3 R6, R6, 0x1, RZ\n{SYNC}\nISETP.LT.AND P2, PT, R6, R7, PT\n@P2 BRA .-0x30\n"
    assert kept("BSSY B0, .+0x60\n" + loop + "BSYNC B0\n" + START + step("0x20") + step("0x10") + FINISH) == "BBBB"
    assert kept(START + step("0x20") + step("0x10") + loop + FINISH) == "BNBB"


def test_a_part_that_a_warp_may_leave_out() -> None:
    body = START.partition("\n")[2] + step("0x20") + step("0x10")
    skip = f"S2R R0, SR_TID.X\nISETP.LT.AND P3, PT, R5, RZ, PT\n@P3 BRA .+{16 * body.count(chr(10)) + 16:#x}\n"
    assert kept(skip + body + FINISH) == "BBB"


@pytest.mark.parametrize(("name", "case"), [("reduce_sum", "small"), ("softmax_rows", "small"), ("scan_block", "small")])
def test_the_suite(name: str, case: str) -> None:
    """Behind the passes that unroll; the emulator refuses races."""
    original = (BENCH / "cubins" / f"{name}.sm_90.cubin").read_bytes()
    file = read_launch_file(BENCH / "launch" / f"{name}.toml")
    launch = file.launch(case)
    made = optimise_cubin(Task(original, name, read_pipeline("launch"), file.facts, launch))
    assert made.outcomes[0].changed
    assert _barriers(made.cubin) < _barriers(optimise_cubin(Task(original, name, _without(), file.facts, launch)).cubin)
    expected, found = emulate(original, launch), emulate(made.cubin, launch)
    assert all(np.array_equal(expected[k].view(np.uint8), found[k].view(np.uint8)) for k in expected)


def _without() -> Pipeline:
    launch = read_pipeline("launch")
    return launch._replace(passes=tuple([name for name in launch.passes if name != RelaxBarriers.name]))


def _barriers(cubin: bytes) -> int:
    return sum(line.instruction.mnemonic == "BAR" for function in read_program(cubin).functions for line in function.lines)


@pytest.mark.parametrize("case", ["small", "one"])
def test_needleman_wunsch(case: str) -> None:
    original = (BENCH / "cubins" / "nw_tile.sm_90.cubin").read_bytes()
    file = read_launch_file(BENCH / "launch" / "nw_tile.toml")
    launch = file.launch(case)
    made = optimise_cubin(Task(original, "nw_tile", Pipeline("test", 1, ("sass-relax-barriers",)), file.facts, launch))
    assert made.outcomes[0].changed
    assert _barriers(made.cubin) == 0
    expected, found = emulate(original, launch), emulate(made.cubin, launch)
    assert all(np.array_equal(expected[k], found[k]) for k in expected)
