"""sass-rotate-loops: loops that test at the top, what becomes of them, and what must stay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr

from sassir.analysis.counted import counted_loop
from sassir.analysis.propagated import propagate
from sassir.analysis.region_loops import RegionLoop, region_loops
from sassir.analysis.ssa import verify_ssa
from sassir.asm import INSTRUCTION_BYTES, Function, Line
from sassir.asm.parse import parse_instruction
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.operations import KernelOp, LabelOp
from sassir.emulator import Counts, emulate
from sassir.launch import read_launch_file
from sassir.optimize import Pipeline, Task, optimise_cubin, read_pipeline
from sassir.passes.rotate_loops import RotateLoops, is_top_tested
from sassir.passes.virtualise import Virtualise
from sassir.translate.cubin import read_module
from sassir.translate.lift import ARCH, lift_function
from sassir.verify.ladder import verify_pair

ROOT = Path(__file__).parents[2]
CUBIN = (ROOT / "tests" / "cubins" / "top_tested.sm_90.cubin").read_bytes()
"""Four loops, two of them in the body of one: nvcc's code without optimisation."""
FILE = read_launch_file(ROOT / "tests" / "cubins" / "top_tested.toml")
ALONE = Pipeline("test", 1, ("sass-rotate-loops",))


def at_top(kernel: KernelOp) -> list[RegionLoop]:
    return [loop for loop in region_loops(kernel.body) if is_top_tested(loop)]


def rotated(module: ModuleOp) -> KernelOp:
    """The first kernel of a module behind the pass."""
    kernel = module.body.ops.first
    assert isinstance(kernel, KernelOp)
    assert kernel.fixed is None
    RotateLoops().apply(Context(), module)
    module.verify()
    verify_ssa(kernel.body)
    return kernel


@pytest.mark.parametrize("case", FILE.launches)
def test_no_one_and_many_iterations_give_the_same_bits_in_no_more_instructions(case: str) -> None:
    made = optimise_cubin(Task(CUBIN, "top_tested", ALONE))
    assert made.outcomes[0].changed
    before, after = Counts(), Counts()
    launch = FILE.launch(case)
    expected, found = emulate(CUBIN, launch, counts=before), emulate(made.cubin, launch, counts=after)
    assert np.array_equal(expected["y"].view(np.uint32), found["y"].view(np.uint32))
    assert after.thread_instructions <= before.thread_instructions
    if case == "many":
        assert len(np.unique(expected["y"])) > 32
        assert after.thread_instructions < 0.95 * before.thread_instructions


@pytest.mark.parametrize("pipeline", ["default", "launch"])
@pytest.mark.parametrize("case", FILE.launches)
def test_the_pipelines_keep_the_results(pipeline: str, case: str) -> None:
    launch = FILE.launch(case)
    made = optimise_cubin(Task(CUBIN, "top_tested", read_pipeline(pipeline), FILE.facts, launch if pipeline == "launch" else None))
    assert made.outcomes[0].changed
    assert verify_pair(CUBIN, made.cubin, [launch], FILE.facts, assumptions=made.assumptions).good


def virtual(cubin: bytes) -> ModuleOp:
    module = read_module(cubin)
    Virtualise().apply(Context(), module)
    return module


def test_all_loops_then_test_at_the_bottom_behind_a_block_that_leads_nowhere_else() -> None:
    module = virtual(CUBIN)
    kernel = module.body.ops.first
    assert isinstance(kernel, KernelOp)
    assert len(at_top(kernel)) == 4
    rotated(module)
    loops = [loop for loop in region_loops(kernel.body) if len(loop.blocks) > 1 or len(loop.header.ops) > 1]
    assert len(loops) == 4
    for loop in loops:
        (latch,) = loop.latches
        assert latch.last_op is not None
        assert not loop.blocks.issuperset(latch.last_op.successors)
        assert loop.preheader is not None


def test_the_last_loop_of_topk_local_goes_back_by_its_test() -> None:
    module = virtual((ROOT / "bench" / "cubins" / "topk_local.sm_90.cubin").read_bytes())
    kernel = module.body.ops.first
    assert isinstance(kernel, KernelOp)
    (loop,) = at_top(kernel)
    size = len(loop.header.ops)
    rotated(module)
    assert at_top(kernel) == []
    (same,) = [found for found in region_loops(kernel.body) if found.header is loop.header]
    assert same.blocks == {loop.header}
    assert len(loop.header.ops) == size


ALIKE, DIFFERENT = "0x100", "R1"
"""What all threads of a warp compare with, and what each compares with by itself."""
Links = Mapping[int, str]
NONE: Links = MappingProxyType({})


def listing(header: str = "", bound: str = ALIKE, body: str = "", start: str = "", function: str = "", links: Links = NONE) -> ModuleOp:
    """A loop with a test of R0 against `bound` behind `header`, and a store, a step and `body` behind the test.

    `start` is in front of the loop, `function` behind the kernel.
    """
    top = ["S2R R1, SR_TID.X", "MOV R0, RZ", *start.splitlines()]
    test = [*header.splitlines(), f"ISETP.GE.AND P0, PT, R0, {bound}, PT"]
    inside = ["STS [R0], R4", *body.splitlines(), "IADD3 R0, R0, 0x4, RZ"]
    out, back = 16 * (len(inside) + 2), 16 * (len(test) + len(inside) + 1)
    text = [*top, *test, f"@P0 BRA .+{out:#x}", *inside, f"BRA .-{back:#x}", "STS [R0], R5", "EXIT", *function.splitlines()]
    return lifted(text, links)


def lifted(text: Sequence[str], links: Links = NONE) -> ModuleOp:
    lines = tuple([Line(parse_instruction(line), INSTRUCTION_BYTES * i) for i, line in enumerate(text)])
    module = ModuleOp([lift_function(Function("k", None, lines, {}, links), {})], {ARCH: StringAttr("sm_90")})
    Virtualise().apply(Context(), module)
    return module


TOGETHER = {
    "a barrier": "BAR.SYNC.DEFER_BLOCKING 0x0",
    "an exchange": "SHFL.BFLY PT, R4, R4, 0x1, 0x1f",
    "a vote": "VOTE.ANY R4, PT, P1",
    "a fence": "MEMBAR.SC.GPU",
}


@pytest.mark.parametrize("header", TOGETHER.values(), ids=TOGETHER)
def test_what_a_warp_does_together_is_copied_only_where_it_is_together(header: str) -> None:
    assert len(at_top(rotated(listing(header, ALIKE)))) == 0
    assert len(at_top(rotated(listing(header, DIFFERENT)))) == 1


WAITS = """S2R R1, SR_TID.X
LD.E.STRONG.GPU R0, desc[UR4][R2.64]
ISETP.EQ.AND P0, PT, R0, R1, PT
@P0 BRA .+0x20
BRA .-0x30
EXIT"""


def test_a_loop_that_only_waits_needs_no_copy_of_what_it_waits_for() -> None:
    kernel = rotated(lifted(WAITS.splitlines()))
    assert at_top(kernel) == []
    assert [op.MNEMONIC for block in kernel.body.blocks for op in block.ops if isinstance(op, SassInstruction)].count("LD") == 1


def test_a_uniform_register_that_is_read_behind_the_test_as_well() -> None:
    body = "STS [R0+UR6], R4"
    assert len(at_top(rotated(listing("UIADD3 UR6, UR6, 0x1, URZ", ALIKE, body)))) == 0
    assert len(at_top(rotated(listing("UIADD3 UR6, UR6, 0x1, URZ", DIFFERENT, body)))) == 1


CALL = "MOV R6, 0x80\nMOV R7, 0x0\nCALL.REL.NOINC .+0x50"
STAYS = {
    "a convergence barrier set in the header": listing("BSSY B0, .+0x50", body="BSYNC B0"),
    "threads taken out of a barrier in the header": listing("BREAK P1, B0", start="BSSY B0, .+0x70"),
    "what the linker fills in": listing("MOV R4, 0x0", links={0x20: "ABS32_LO_32 table"}),
    "a call": listing(body=CALL, function="FADD R4, R4, R4\nRET.REL.NODEC R6 .-0xd0"),
    "longer than it is worth": listing("FADD R4, R4, R5\n" * 40),
}


@pytest.mark.parametrize("module", STAYS.values(), ids=STAYS)
def test_it_stays(module: ModuleOp) -> None:
    kernel = module.body.ops.first
    assert isinstance(kernel, KernelOp)
    before = str(kernel)
    assert len(at_top(kernel)) == 1
    rotated(module)
    assert str(kernel) == before


MEETS_AT_ITS_TEST = """S2R R1, SR_TID.X
BRA .+0x60
STS [R0], R4
BSSY B0, .+0x40
@P1 BRA .+0x20
FADD R4, R4, R5
BSYNC B0
IADD3 R0, R0, 0x4, RZ
ISETP.LT.AND P0, PT, R0, 0x100, PT
@P0 BRA .-0x70
EXIT"""


def test_where_a_warp_meets_in_front_of_a_loop_it_goes_on_at_the_guard() -> None:
    kernel = rotated(listing(start="BSSY B0, .+0x40\n@P1 BRA .+0x20\nFADD R4, R4, R5\nBSYNC B0"))
    assert at_top(kernel) == []
    ops = [op for block in kernel.body.blocks for op in block.ops if isinstance(op, SassInstruction)]
    start, meeting = [op for op in ops if op.MNEMONIC in ("BSSY", "BSYNC")]
    assert [op.label for op in meeting.successors[0].ops if isinstance(op, LabelOp)] == [start.place]


def test_where_a_warp_meets_in_the_loop_to_test_nothing_is_done() -> None:
    assert len(at_top(rotated(lifted(MEETS_AT_ITS_TEST.splitlines())))) == 1


NESTED = """MOV R0, RZ
ISETP.GE.AND P0, PT, R0, 0x100, PT
@P0 BRA .+0x60
ISETP.GE.AND P1, PT, R0, R5, PT
@P1 BRA .-0x30
STS [R0], R4
IADD3 R0, R0, 0x4, RZ
BRA .-0x40
EXIT"""
"""The inner loop is all that the outer one does."""


def test_an_inner_loop_that_tests_at_the_top_is_turned_around_before_the_one_around_it() -> None:
    module = lifted(NESTED.splitlines())
    kernel = module.body.ops.first
    assert isinstance(kernel, KernelOp)
    assert len(at_top(kernel)) == 2
    rotated(module)
    assert at_top(kernel) == []
    assert [len(loop.blocks) for loop in region_loops(kernel.body)] == [1, 5]


def test_the_longest_header_that_is_copied_is_an_option() -> None:
    module = listing("FADD R4, R4, R5\n" * 40)
    RotateLoops(most=42).apply(Context(), module)
    kernel = module.body.ops.first
    assert isinstance(kernel, KernelOp)
    assert at_top(kernel) == []


def test_the_loop_is_counted_then() -> None:
    module = listing()
    kernel = module.body.ops.first
    assert isinstance(kernel, KernelOp)
    (before,) = region_loops(kernel.body)
    assert counted_loop(before, propagate(kernel, "sm_90")) is None
    rotated(module)
    (after,) = region_loops(kernel.body)
    counted = counted_loop(after, propagate(kernel, "sm_90"))
    assert counted is not None
    assert (counted.step, counted.trips) == (4, 64)
    assert [op.MNEMONIC for op in after.header.ops if isinstance(op, SassInstruction)] == ["STS", "IADD3", "ISETP", "BRA"]
