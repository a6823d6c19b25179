"""The schedule checker: accepts what ptxas and Triton made, and names each kind of mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from sassir.asm import INSTRUCTION_BYTES, Function, Line
from sassir.asm.control import Control
from sassir.asm.instruction import Instruction
from sassir.asm.parse import parse_instruction
from sassir.findings import Finding
from sassir.machine import machine
from sassir.translate.cubin import read_program
from sassir.translate.flow import find_flow
from sassir.verify.schedule import check_schedule
from sassir.verify.schedule.check import check_function

CUBINS = sorted((Path(__file__).parents[1] / "cubins").glob("*.cubin"))


@pytest.mark.parametrize("path", CUBINS, ids=lambda path: path.stem)
def test_the_compiler_is_right(path: Path) -> None:
    assert [f for f in check_schedule(read_program(path.read_bytes())) if f.error] == []


def function(text: str) -> Function:
    """A control code and an instruction a line."""
    code: list[Instruction] = []
    for line in text.strip().splitlines():
        control, _, instruction = line.strip().partition("] ")
        code.append(parse_instruction(instruction)._replace(control=Control.parse(f"{control}]")))
    return Function("k", None, tuple([Line(c, INSTRUCTION_BYTES * i) for i, c in enumerate(code)]), {})


def check(text: str, arch: str = "sm_90") -> list[Finding]:
    made = function(text)
    return check_function(made, find_flow(made, {}), machine(arch))


def rules(text: str, arch: str = "sm_90") -> list[tuple[str, int | None]]:
    """Rule and offset of each finding."""
    return [(f.rule, f.offset) for f in check(text, arch)]


def test_a_result_that_is_read_too_early() -> None:
    (finding,) = check("""
        [B------:R-:W-:-:S03] FADD R1, R2, R3
        [B------:R-:W-:-:S05] FADD R4, R1, R3
    """)
    assert (finding.rule, finding.kernel, finding.offset, finding.error) == ("raw-too-early", "k", 0x10, True)
    assert finding.message == ("`FADD R4, R1, R3` reads R1, which `FADD R1, R2, R3` at 0x0 writes 3 cycles before; expected at least 4")
    assert finding.evidence


def test_a_distance_is_the_sum_of_the_stalls_between() -> None:
    text = """
        [B------:R-:W-:-:S02] FADD R1, R2, R3
        [B------:R-:W-:-:S0{stall}] FADD R5, R2, R3
        [B------:R-:W-:-:S05] FADD R4, R1, R3
    """
    assert rules(text.format(stall=2)) == []
    assert rules(text.format(stall=1)) == [("raw-too-early", 0x20)]


def test_a_guard_needs_more_cycles_than_a_source() -> None:
    text = """
        [B------:R-:W-:Y:S12] ISETP.GE.AND P0, PT, R2, R3, PT
        [B------:R-:W-:-:S05] {reader}
    """
    assert rules(text.format(reader="SEL R4, R5, R6, P0")) == []
    assert rules(text.format(reader="@P0 FADD R4, R5, R6")) == [("raw-too-early", 0x10)]


def test_every_register_of_a_group_counts() -> None:
    text = """
        [B------:R-:W-:-:S04] FADD R{written}, R2, R3
        [B------:R0:W-:-:S05] STG.E.64 desc[UR4][R8.64], R6
    """
    assert rules(text.format(written=7)) == [("raw-too-early", 0x10)]
    assert rules(text.format(written=9)) == [("raw-too-early", 0x10)]
    assert rules(text.format(written=5)) == []


def test_a_memory_descriptor_is_read_too() -> None:
    assert rules("""
        [B------:R-:W-:-:S01] ULDC.64 UR4, c[0x0][0x118]
        [B------:R-:W0:-:S05] LDG.E R1, desc[UR4][R8.64]
    """, "sm_80") == [("raw-too-early", 0x10)]  # fmt: skip


LOAD = """
    [B------:R-:W{write}:-:S{stall}] LDG.E R1, desc[UR4][R8.64]
    [B{wait}:R-:W-:-:S05] FADD R4, R1, R3
"""


def test_a_load_that_is_not_awaited() -> None:
    assert rules(LOAD.format(write=2, stall="02", wait="--2---")) == []
    (finding,) = check(LOAD.format(write=2, stall="02", wait="-1----"))
    assert finding.rule == "result-not-awaited"
    assert finding.message == (
        "`FADD R4, R1, R3` reads R1 without waiting until `LDG.E R1, desc[UR4][R8.64]` at 0x0 has written it (it signals SB2)"
    )


def test_a_load_that_signals_no_scoreboard() -> None:
    (finding,) = check(LOAD.format(write="-", stall="02", wait="012345"))
    assert finding.rule == "result-not-awaited"
    assert finding.message.endswith("(it signals no scoreboard)")


def test_a_load_that_nobody_needs() -> None:
    assert rules("[B------:R-:W-:-:S02] LDG.E R1, desc[UR4][R8.64]\n[B------:R-:W-:-:S05] EXIT") == []


def test_a_wait_in_the_cycle_after_the_signal_does_not_see_it() -> None:
    (finding,) = check(LOAD.format(write=2, stall="01", wait="--2---"))
    assert finding.rule == "wait-too-early"
    assert (
        "waits for scoreboard SB2, which `LDG.E R1, desc[UR4][R8.64]` at 0x0 signals 1 cycles before; expected at least 2"
        in finding.message
    )


def test_a_load_whose_register_is_written_before_it_arrives() -> None:
    assert rules("""
        [B------:R-:W0:-:S02] LDG.E R1, desc[UR4][R8.64]
        [B------:R-:W-:-:S05] MOV R1, 0x1
    """) == [("result-overwritten", 0x10)]


STORE = """
    [B------:R{read}:W-:-:S02] STG.E desc[UR4][R8.64], R1
    {between}
    [B{wait}:R-:W-:-:S05] MOV R1, 0x2
"""
NOTHING = "[B------:R-:W-:-:S01] NOP"


@pytest.mark.parametrize(
    ("read", "between", "wait", "expected"),
    [
        pytest.param("-", NOTHING, "------", [("operand-overwritten", 0x20)], id="no signal"),
        pytest.param("1", NOTHING, "------", [("operand-overwritten", 0x20)], id="no wait"),
        pytest.param("1", NOTHING, "-1----", [], id="its own signal"),
        pytest.param("-", "[B------:R-:W3:-:S02] LDG.E R2, desc[UR4][R6.64]", "---3--", [], id="a younger one of its queue"),
        pytest.param("-", "[B------:R-:W3:-:S02] MUFU.RCP R2, R6", "---3--", [("operand-overwritten", 0x20)], id="another queue"),
    ],
)
def test_an_operand_that_is_written_before_it_is_read(read: str, between: str, wait: str, expected: list[tuple[str, int]]) -> None:
    assert rules(STORE.format(read=read, between=between, wait=wait)) == expected


@pytest.mark.parametrize(
    ("barrier", "expected"),
    [
        ("BAR.SYNC 0x0", []),
        ("BAR.RED.AND 0x0, P3", []),
        ("BAR.ARV 0x0, 0x40", [("operand-overwritten", 0x20)]),
        ("BAR.SYNC.DEFER_BLOCKING 0x0", [("operand-overwritten", 0x20)]),
    ],
)
def test_behind_a_barrier_at_which_the_warp_stops_operands_are_read(barrier: str, expected: list[tuple[str, int]]) -> None:
    assert rules(STORE.format(read="-", between=f"[B------:R-:W-:-:S06] {barrier}", wait="------"), "sm_80") == expected


def test_shared_memory_answers_in_order_global_memory_does_not() -> None:
    text = """
        [B------:R-:W-:-:S02] {load} R1, {first}
        [B------:R-:W0:-:S02] {load} R2, {second}
        [B0-----:R-:W-:-:S05] FADD R4, R1, R3
    """
    assert rules(text.format(load="LDS", first="[R8]", second="[R9]")) == []
    assert rules(text.format(load="LDG.E", first="desc[UR4][R8.64]", second="desc[UR4][R6.64]")) == [("result-not-awaited", 0x20)]


def test_several_loads_on_one_scoreboard() -> None:
    assert (
        rules("""
        [B------:R-:W0:-:S01] LDG.E R1, desc[UR4][R8.64]
        [B------:R-:W0:-:S02] LDG.E R2, desc[UR4][R8.64+0x4]
        [B0-----:R-:W-:-:S05] FADD R4, R1, R2
    """)
        == []
    )


COUNTED = """
    [B------:R-:W5:-:S02] TLD.LZ RZ, R1, R8, UR4, 1D, 0x1
    [B------:R-:W5:-:S02] TLD.LZ RZ, R2, R9, UR4, 1D, 0x1
    [B------:R-:W-:Y:S04] DEPBAR.LE SB5, {count}
    [B------:R-:W-:-:S05] FADD R4, {reader}, R3
"""


def test_depbar_counts_signals_in_order() -> None:
    assert rules(COUNTED.format(count="0x1", reader="R1"), "sm_120") == []
    assert rules(COUNTED.format(count="0x1", reader="R2"), "sm_120") == [("result-not-awaited", 0x30)]
    assert rules(COUNTED.format(count="0x0", reader="R2"), "sm_120") == []


def test_depbar_with_a_list_waits_for_all_of_it() -> None:
    text = "[B------:R-:W3:-:S02] MUFU.RCP R1, R2\n[B------:R-:W-:Y:S04] DEPBAR.LE SB0, 0x0, {list}\n[B------:R-:W-:-:S05] FADD R4, R1, R3"
    assert rules(text.replace("{list}", "{4,3}")) == []
    assert rules(text.replace("{list}", "{4,2}")) == [("result-not-awaited", 0x20)]


PRODUCT = """
    [B------:R-:W-:-:S04] HGMMA.64x8x16.F32 R24, gdesc[UR4], R24{group}
    [B------:R-:W-:-:S02] WARPGROUP.DEPBAR.LE gsb0, 0x0
    [B------:R-:W-:-:S05] FADD R4, R24, R3
"""


def test_a_warpgroup_product_ends_with_its_group() -> None:
    assert rules(PRODUCT.format(group=", gsb0"), "sm_90a") == []
    assert rules(PRODUCT.format(group=""), "sm_90a") == [("result-not-awaited", 0x20)]


EXCLUSIVE = """
    [B------:R-:W0:-:S02] @P0 LDG.E R1, desc[UR4][R8.64]
    {between}
    [B------:R-:W-:-:S05] @{guard} MOV R1, 0x1
"""


def test_complementary_guards_do_not_depend_on_each_other() -> None:
    assert rules(EXCLUSIVE.format(between=NOTHING, guard="!P0")) == []
    assert rules(EXCLUSIVE.format(between=NOTHING, guard="P0")) == [("result-overwritten", 0x20)]
    assert rules(EXCLUSIVE.format(between=NOTHING, guard="!P1")) == [("result-overwritten", 0x20)]


def test_guards_on_another_value_of_the_predicate_do() -> None:
    between = "[B------:R-:W-:Y:S13] ISETP.GE.AND P0, PT, R2, R3, PT"
    assert rules(EXCLUSIVE.format(between=between, guard="!P0")) == [("result-overwritten", 0x20)]


LOOP = """
    [B------:R-:W-:-:S05] MOV R1, RZ
    [B{wait}:R-:W-:-:S05] FADD R2, R1, R2
    [B------:R0:W1:-:S02] LDG.E R1, desc[UR4][R8.64]
    [B------:R-:W-:-:S05] @P0 BRA .-0x20
    [B------:R-:W-:-:S05] EXIT
"""


def test_what_is_under_way_at_the_end_of_a_loop_is_at_its_start() -> None:
    assert rules(LOOP.format(wait="-1----")) == []
    assert rules(LOOP.format(wait="0-----")) == [("result-not-awaited", 0x10)]


def test_the_shortest_path_counts() -> None:
    text = """
        [B------:R-:W-:-:S01] FADD R1, R2, R3
        [B------:R-:W-:-:S05] @P0 BRA .+0x20
        [B------:R-:W-:Y:S15] NOP
        [B------:R-:W-:-:S05] {reader}
        [B------:R-:W-:-:S05] EXIT
    """
    assert rules(text.format(reader="FADD R4, R1, R3")) == []
    slow = text.replace("FADD R1, R2, R3", "HMMA.16816.F32 R4, R8, R12, R4")
    assert rules(slow.format(reader="FADD R1, R4, R3")) == [("raw-too-early", 0x30)]


def test_a_register_in_the_operand_cache_is_written() -> None:
    text = """
        [B------:R-:W-:-:S02] FADD R1, R2.reuse, R3
        [B------:R-:W-:-:S05] {between}
        [B------:R-:W-:-:S05] FADD R4, R2, R3
    """
    assert rules(text.format(between="MOV R7, 0x1")) == []
    assert rules(text.format(between="MOV R2, 0x1")) == [("stale-reuse", 0x10)]


def test_a_control_code_that_does_not_exist() -> None:
    (finding,) = check("[B------:R-:W-:-:S13] FADD R1, R2, R3")
    assert (finding.rule, finding.evidence) == ("illegal-control", "stall 13 is not encodable without yield (legal: 1 to 11)")
    assert rules("[B------:R-:W-:Y:S04] FADD R1, R2.reuse, R3") == [("illegal-control", 0)]


def test_a_branch_needs_time() -> None:
    (finding,) = check("[B------:R-:W-:-:S04] EXIT")
    assert finding.message == "`EXIT` has a stall count that is too small for it: 4, expected at least 5"


def test_what_is_not_known_is_a_warning() -> None:
    found = check("[B------:R-:W-:-:S05] FROBNICATE R1, R2")
    assert {(f.rule, f.error) for f in found} == {("unknown-instruction", False), ("unknown-flow", False)}


def test_a_fence_that_signals_its_end_is_awaited_before_the_next_access() -> None:
    text = """
        [B------:R2:W-:-:S06] MEMBAR.ALL.CTA
        [B------:R-:W-:-:S01] MOV R1, 0x1
        [B{wait}:R-:W1:-:S02] LDG.E R4, desc[UR4][R8.64]
    """
    assert rules(text.format(wait="--2---")) == []
    assert rules(text.format(wait="------")) == [("fence-not-awaited", 0x20)]


def test_memory_must_not_be_accessed_right_after_a_barrier() -> None:
    text = """
        [B------:R-:W-:-:S0{stall}] BAR.SYNC.DEFER_BLOCKING 0x0
        [B------:R-:W-:-:S01] MOV R1, 0x1
        [B------:R-:W1:-:S02] LDS R4, [R8]
    """
    assert rules(text.format(stall=5)) == []
    assert rules(text.format(stall=4)) == [("too-soon-after-barrier", 0x20)]
