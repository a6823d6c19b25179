"""sass-unroll: how many copies, and with which test between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr

from sassir.asm import INSTRUCTION_BYTES, Function, Line
from sassir.asm.parse import parse_instruction
from sassir.dialect.facts import KernelFacts
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.operations import KernelOp, LabelOp
from sassir.launch import read_launch_file
from sassir.optimize import Pipeline, Task, optimise_cubin
from sassir.passes.unroll import Unroll
from sassir.passes.virtualise import Virtualise
from sassir.schedule.budget import running_threads, running_warps
from sassir.translate.cubin import read_program
from sassir.translate.lift import ARCH, lift_function

BENCH = Path(__file__).parents[2] / "bench"


def _mnemonics(cubin: bytes) -> list[str]:
    return [line.instruction.mnemonic for line in read_program(cubin).functions[0].lines]


LOOP = """
LDC.64 R2, c[0x0][0x210]
MOV R0, RZ
MOV R5, RZ
LDG.E R4, desc[UR4][R2.64]
IADD3 R5, R5, R4, RZ
IADD3 R0, R0, 0x1, RZ
ISETP.NE.AND P0, PT, R0, 0x3e8, PT
@P0 BRA .-0x40
STG.E desc[UR4][R2.64], R5
EXIT
"""
"""A loop of 1000 iterations."""


def _unrolled(text: Sequence[str], factor: int | None) -> KernelOp:
    lines = tuple([Line(parse_instruction(line), INSTRUCTION_BYTES * i) for i, line in enumerate(text)])
    kernel = lift_function(Function("k", None, lines, {}), {})
    module = ModuleOp([kernel], {ARCH: StringAttr("sm_90")})
    Virtualise().apply(Context(), module)
    Unroll(factor=factor).apply(Context(), module)
    module.verify()
    return kernel


@pytest.mark.parametrize(("factor", "even"), [(4, True), (5, True), (3, False)])
def test_a_known_multiple_of_iterations_needs_no_other_test(factor: int, even: bool) -> None:
    kernel = _unrolled(LOOP.strip().splitlines(), factor)
    names = [op.MNEMONIC for block in kernel.body.blocks for op in block.ops if isinstance(op, SassInstruction)]
    assert names.count("LDG") == factor + (not even)
    assert (names.count("BRA") == 1) == even


MEETING = """
S2R R1, SR_TID.X
BSSY B0, .+0x40
@P1 BRA .+0x20
FADD R6, R6, R6
BSYNC B0
"""
"""In front of a loop, with which the warp goes on where it has met."""


@pytest.mark.parametrize("factor", [None, 4, 3])
def test_a_warp_that_meets_in_front_of_the_loop_goes_on_with_the_copies(factor: int | None) -> None:
    body = LOOP if factor is not None else LOOP.replace("0x3e8", "0x5")
    before, inside = body.strip().splitlines()[:3], body.strip().splitlines()[3:]
    kernel = _unrolled([*before, *MEETING.strip().splitlines(), *inside], factor)
    ops = [op for block in kernel.body.blocks for op in block.ops if isinstance(op, SassInstruction)]
    start, meeting = [op for op in ops if op.MNEMONIC in ("BSSY", "BSYNC")]
    assert [op.label for op in meeting.successors[0].ops if isinstance(op, LabelOp)] == [start.place]


def test_where_few_threads_run_each_of_them_loads_more_at_a_time() -> None:
    original, file = (BENCH / "cubins" / "dgemv_col.sm_90.cubin").read_bytes(), read_launch_file(BENCH / "launch" / "dgemv_col.toml")
    passes = ("sass-specialize", "sass-unroll", "sass-share-addresses", "sass-schedule")
    made = optimise_cubin(Task(original, "dgemv_col", Pipeline("test", 1, passes), file.facts, file.launch("full")))
    names = _mnemonics(made.cubin)
    most = max(names[i : i + 80].count("LDG") for i in range(len(names)))
    assert most >= 48
    assert _mnemonics(original).count("DFMA") < names.count("DFMA")


@pytest.mark.parametrize(("grid", "threads"), [((128, 1, 1), 128), ((264, 1, 1), 256), ((1 << 20, 1, 1), 2048), (None, 2048)])
def test_threads_that_run_at_a_time(grid: tuple[int, int, int] | None, threads: int) -> None:
    assert running_threads("sm_90", KernelFacts(block=(128, 1, 1), grid=grid)) == threads


@pytest.mark.parametrize(("registers", "warps"), [(32, 64), (40, 32), (64, 32)])
def test_blocks_that_do_not_fill_the_last_round_count(registers: int, warps: int) -> None:
    """1,024 blocks on 132 multiprocessors: eight on most; with 40 registers six fit, and two run in a second round."""
    assert running_warps("sm_90", registers, KernelFacts(block=(256, 1, 1), grid=(1024, 1, 1))) == warps


def test_dynamic_shared_memory_counts() -> None:
    facts = KernelFacts(block=(256, 1, 1), shared=100 * 1024)
    assert (running_warps("sm_90", 32, facts), running_warps("sm_90", 32, replace(facts, shared=0))) == (16, 64)
