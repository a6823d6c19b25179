"""sass-hoist: what goes up into the only block before, and what must stay."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sassir.allocation.launch import LaunchBounds
from sassir.asm.assemble import assemble
from sassir.asm.listing import read_listing
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.operations import KernelOp
from sassir.emulator import emulate
from sassir.encoders import table
from sassir.launch import read_launch_file
from sassir.optimize import Pipeline, Task, optimise_cubin, read_pipeline
from sassir.passes.hoist import hoist
from sassir.passes.virtualise import virtualise
from sassir.translate.lift import lift_program

BENCH = Path(__file__).parents[2] / "bench"
LISTING = """
.section .text.k,"ax",@progbits
.type k,@function
.text.k:
    [B------:R-:W0:-:S01] /*0000*/ S2R R0, SR_TID.X ;
    [B------:R-:W1:-:S01] /*0010*/ LDC.64 R2, c[0x0][0x210] ;
    [B01----:R-:W-:Y:S13] /*0020*/ ISETP.GE.AND P0, PT, R0, 0x10, PT ;
    [B------:R-:W-:-:S05] /*0030*/ @P0 EXIT ;
    [B------:R-:W-:-:S05] /*0040*/ {moving} ;
    [B------:R-:W-:-:S05] /*0050*/ IMAD.WIDE R6, R0, 0x4, R2 ;
    [B------:R-:W0:-:S02] /*0060*/ LDG.E R5, desc[UR4][R6.64] ;
    [B0-----:R-:W-:-:S05] /*0070*/ FADD R4, R4, R5 ;
    [B------:R0:W-:-:S01] /*0080*/ STG.E desc[UR4][R6.64], R4 ;
    [B------:R-:W-:-:S05] /*0090*/ EXIT ;
    [B------:R-:W-:-:S05] /*00a0*/ BRA .+0x0 ;
"""


def _first_block(moving: str) -> list[str]:
    """The mnemonics of the first block behind the pass."""
    module = lift_program(assemble(read_listing(LISTING.format(moving=moving), "hoist.sass", "sm_90"), table("sm_90")))
    kernel = module.body.ops.first
    assert isinstance(kernel, KernelOp)
    assert virtualise(kernel) is None
    hoist(kernel, "sm_90", LaunchBounds(threads=64))
    return [op.MNEMONIC for op in kernel.body.blocks[0].ops if isinstance(op, SassInstruction)]


def test_what_only_computes_goes_in_front_of_the_branch() -> None:
    assert _first_block("MOV R4, 0x1") == ["S2R", "LDC", "ISETP", "MOV", "IMAD", "EXIT"]


@pytest.mark.parametrize(
    ("moving", "reason"),
    [
        ("LDG.E R4, desc[UR4][R2.64]", "memory may not be there"),
        ("LDC R4, c[0x0][R0+0x210]", "the index may be wild"),
        ("@P1 MOV R4, 0x1", "it has a guard"),
        ("CS2R.32 R4, SR_CLOCKLO", "it reads the clock"),
    ],
)
def test_what_can_fault_or_differ_stays(moving: str, reason: str) -> None:
    assert _first_block(moving) == ["S2R", "LDC", "ISETP", "IMAD", "EXIT"], reason


@pytest.mark.parametrize("kernel", ["fuse2", "jacobi2d"])
def test_a_kernel_of_the_suite_gives_the_same_bits(kernel: str) -> None:
    original = (BENCH / "cubins" / f"{kernel}.sm_90.cubin").read_bytes()
    launch = read_launch_file(BENCH / "launch" / f"{kernel}.toml").launch("small")
    made = optimise_cubin(Task(original, kernel, Pipeline("test", 1, ("sass-hoist", "sass-schedule"))))
    assert all(outcome.changed for outcome in made.outcomes)
    expected, found = emulate(original, launch), emulate(made.cubin, launch)
    assert all(np.array_equal(expected[name].view(np.uint8), found[name].view(np.uint8)) for name in expected)


@pytest.mark.parametrize("pipeline", ["default", "launch"])
def test_it_comes_right_before_the_order(pipeline: str) -> None:
    passes = read_pipeline(pipeline).passes
    assert passes.index("sass-hoist") + 1 == passes.index("sass-schedule")
