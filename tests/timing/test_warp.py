"""One warp: cycles that can be reckoned by hand from control codes and machine tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from sassir.asm import Function
from sassir.machine import machine
from sassir.machine.costs import product_cycles
from sassir.machine.hierarchy import HIERARCHIES
from sassir.timing import Profile, Traffic, reasons
from sassir.timing.graph import call_free
from sassir.timing.warp import Alone, walk
from sassir.translate.flow import find_flow

Written = Callable[[str], Function]
ARCH = "sm_90"
HIERARCHY = HIERARCHIES[ARCH]


def times(function: Function, traffic: Mapping[int, Traffic] | None = None, executions: list[float] | None = None) -> Alone:
    flow = find_flow(function, {})
    often = executions or [1.0] * len(function.lines)
    profile = Profile(often, often, traffic or {}, "test")
    code = [line.instruction for line in function.lines]
    return walk(code, flow, call_free(code, flow), machine(ARCH), HIERARCHY, profile)


def waits(alone: Alone, line: int) -> dict[str, float]:
    return {stall.reason: stall.cycles for stall in alone.lines[line]}


def test_stall_counts_add_up(written: Written) -> None:
    alone = times(
        written("""
        [B------:R-:W-:-:S04] FADD R1, R2, R3
        [B------:R-:W-:-:S02] FADD R4, R1, R3
        [B------:R-:W-:-:S01] EXIT
    """)
    )
    assert [alone.cycles(line) for line in range(3)] == [1, 4, 2]
    assert waits(alone, 1) == {reasons.WAIT: 3, reasons.SELECTED: 1}


def test_a_busy_pipe_keeps_its_next_instruction(written: Written) -> None:
    """MUFU keeps its pipe for 8 cycles."""
    alone = times(
        written("""
        [B------:R-:W0:-:S01] MUFU.RCP R1, R2
        [B------:R-:W1:-:S02] MUFU.RCP R3, R4
        [B------:R-:W-:-:S05] FADD R5, R6, R7
    """)
    )
    assert waits(alone, 1) == {reasons.MATH: 7, reasons.SELECTED: 1}
    assert alone.lines[1][0].cause == 0


def test_operands_of_one_bank_are_read_one_after_the_other(written: Written) -> None:
    """Three registers of one bank take 3 cycles, two that are kept in the operand cache need none."""
    alone = times(
        written("""
        [B------:R-:W-:-:S01] FFMA R1, R4.reuse, R6.reuse, R8
        [B------:R-:W-:-:S01] FFMA R3, R4, R6, R10
        [B------:R-:W-:-:S05] FADD R5, R7, R8
    """)
    )
    assert waits(alone, 1) == {reasons.DISPATCH: 2, reasons.SELECTED: 1}
    assert waits(alone, 2) == {reasons.SELECTED: 1}


def test_a_reader_waits_for_the_scoreboard(written: Written) -> None:
    """The result of MUFU is there `cost.result` cycles after its issue, two of which the stall count covers."""
    function = written("""
        [B------:R-:W0:-:S02] MUFU.RCP R1, R2
        [B0-----:R-:W-:-:S05] FADD R3, R1, R1
    """)
    cost = machine(ARCH).cost(function.lines[0].instruction)
    alone = times(function)
    assert waits(alone, 1) == {reasons.WAIT: 1, reasons.SHORT: cost.result - 2, reasons.SELECTED: 1}
    assert alone.lines[1][1].cause == 0


LOAD = """
    [B------:R-:W0:-:S02] LDG.E R1, desc[UR4][R2.64]
    [B0-----:R-:W-:-:S05] FADD R3, R1, R1
"""


@pytest.mark.parametrize(
    ("traffic", "latency"),
    [
        (Traffic(1, 0, 0, 0), 34),
        (Traffic(1, 4, 1, 0), HIERARCHY.second_latency),
        (Traffic(1, 4, 1, 1), HIERARCHY.memory_latency),
        (Traffic(32, 0, 0, 0), 34 + 31),
    ],
    ids=["first level", "second level", "memory", "32 lines"],
)
def test_a_load_takes_as_long_as_the_level_that_answers(written: Written, traffic: Traffic, latency: int) -> None:
    alone = times(written(LOAD), {0: traffic})
    assert waits(alone, 1) == {reasons.WAIT: 1, reasons.LONG: latency - 2, reasons.SELECTED: 1}


def test_a_counting_depbar_waits_for_the_older_one(written: Written) -> None:
    """Of two loads that signal SB0, `DEPBAR.LE SB0, 0x1` waits for the first."""
    text = """
        [B------:R-:W0:-:S10] LDS R1, [R8]
        [B------:R-:W0:-:S02] LDS R2, [R8+0x4]
        [B------:R-:W-:Y:S04] DEPBAR.LE SB0, {most}
        [B------:R-:W-:-:S05] FADD R3, R1, R1
    """
    one, none = (times(written(text.replace("{most}", most))) for most in ("0x1", "0x0"))
    assert waits(none, 2)[reasons.SHORT] - waits(one, 2)[reasons.SHORT] == 10


LOOP = """
    [B------:R-:W-:-:S04] MOV R2, R6
    [B------:R-:W0:-:S02] LDS R1, [R2]
    [B0-----:R-:W-:-:S04] FADD R4, R4, R1
    [B------:R-:W-:Y:S12] ISETP.NE.AND P0, PT, R2, R3, PT
    [B------:R-:W-:Y:S05] @P0 BRA .-0x30
    [B------:R-:W-:Y:S05] EXIT
"""


def test_a_loop_is_in_its_steady_state(written: Written) -> None:
    """LDS 2, 23 - 2 until FADD, 4 + 12 + 5, and what a branch takes; the load is the first line of the loop."""
    alone = times(written(LOOP), executions=[1, 16, 16, 16, 16, 1])
    assert sum(alone.cycles(line) for line in range(1, 5)) == 23 + 4 + 12 + 5 + HIERARCHY.overheads.branch
    assert waits(alone, 1)[reasons.BRANCH] == HIERARCHY.overheads.branch


def test_loads_in_flight_overlap(written: Written) -> None:
    """Two loads one after the other cost little more than one: what the scheduler is for."""
    batched = times(
        written("""
        [B------:R-:W0:-:S01] LDS R1, [R8]
        [B------:R-:W1:-:S02] LDS R2, [R8+0x4]
        [B0-----:R-:W-:-:S01] FADD R3, R1, R1
        [B-1----:R-:W-:-:S05] FADD R4, R2, R2
    """)
    )
    apart = times(
        written("""
        [B------:R-:W0:-:S02] LDS R1, [R8]
        [B0-----:R-:W-:-:S01] FADD R3, R1, R1
        [B------:R-:W1:-:S02] LDS R2, [R8+0x4]
        [B-1----:R-:W-:-:S05] FADD R4, R2, R2
    """)
    )
    assert sum(apart.cycles(line) for line in range(4)) - sum(batched.cycles(line) for line in range(4)) == 23


def test_conflicts_keep_the_unit_of_shared_memory_busy(written: Written) -> None:
    """The second load comes out of the queue when the 32 passes of the first one are over."""
    text = """
        [B------:R-:W0:-:S01] LDS R1, [R8]
        [B------:R-:W1:-:S02] LDS R2, [R9]
        [B-1----:R-:W-:-:S05] FADD R4, R2, R2
    """
    free, crowded = times(written(text)), times(written(text), {0: Traffic(32, 0, 0, 0)})
    assert crowded.cycles(2) - free.cycles(2) == 31


def test_a_warpgroup_product_of_the_full_width() -> None:
    assert product_cycles(("64x256x16", "F32", "BF16")) == 128
