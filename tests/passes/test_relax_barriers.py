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
from sassir.optimize import Pipeline, optimise_cubin
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
    graph = Graph(block, KernelFacts(), machine("sm_90"))
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


@pytest.mark.parametrize("case", ["small", "one"])
def test_needleman_wunsch(case: str) -> None:
    original = (BENCH / "cubins" / "nw_tile.sm_90.cubin").read_bytes()
    file = read_launch_file(BENCH / "launch" / "nw_tile.toml")
    launch = file.launch(case)
    made = optimise_cubin(original, "nw_tile", Pipeline("test", 1, ("sass-relax-barriers",)), file.facts, launch)
    assert made.outcomes[0].changed
    code = [line.instruction.mnemonic for function in read_program(made.cubin).functions for line in function.lines]
    assert "BAR" not in code
    expected, found = emulate(original, launch), emulate(made.cubin, launch)
    assert all(np.array_equal(expected[k], found[k]) for k in expected)
