"""Live values and register pressure of small kernels, counted by hand."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import Region, SSAValue

from sassir.analysis.flow import flow_of
from sassir.analysis.liveness import Liveness
from sassir.analysis.pressure import pressure

Lift = Callable[[str], Region]

LOOP = """
MOV R0, RZ
MOV R2, 0x7
FADD R3, R3, R2
IADD3 R0, R0, 0x1, RZ
ISETP.GE.AND P0, PT, R0, R4, PT
@!P0 BRA .-0x30
STG.E desc[UR4][R6.64], R3
EXIT
"""


def names(values: set[SSAValue]) -> list[str]:
    return sorted(str(v.type).partition("<")[2].rstrip(">") for v in values)


def test_what_a_loop_reads_is_live_all_around_it(lift: Lift) -> None:
    live = Liveness(flow_of(lift(LOOP)))
    assert names(live.live_in[1]) == ["R2", "R4", "R6", "R7", "UR4", "UR5"]
    assert names(live.live_out[1]) == ["R2", "R3", "R4", "R6", "R7", "UR4", "UR5"]
    assert names(live.live_in[2]) == ["R3", "R6", "R7", "UR4", "UR5"]


def test_what_a_branch_passes_is_read_at_the_branch(lift: Lift) -> None:
    live = Liveness(flow_of(lift(LOOP)))
    assert "R0" not in names(live.live_in[1])
    assert names(live.live_out[0]) == ["R2", "R4", "R6", "R7", "UR4", "UR5"]


def test_only_some_files(lift: Lift) -> None:
    live = Liveness(flow_of(lift(LOOP)), ("UR",))
    assert names(live.live_in[1]) == ["UR4", "UR5"]


def test_between_operations(lift: Lift) -> None:
    """Behind the comparison P0 is live; behind the addition before it, it is not yet."""
    steps = [(op.name, names(live)) for op, live in Liveness(flow_of(lift(LOOP))).backwards(1)]
    assert [name for name, _ in steps] == ["sass.bra", "sass.isetp", "sass.iadd3", "sass.fadd"]
    assert steps[1][1] == ["P0", "R0", "R2", "R3", "R4", "R6", "R7", "UR4", "UR5"]
    assert steps[2][1] == ["R0", "R2", "R3", "R4", "R6", "R7", "UR4", "UR5"]


def test_pressure_counts_what_code_put_there(lift: Lift) -> None:
    """R4, R6, R7, UR4 and UR5 are never written, so nobody needs them; R0, R2, R3 are in use at once in the loop."""
    found = pressure(Liveness(flow_of(lift(LOOP))))
    assert found.peak == {"R": 3, "P": 1}
    assert found.by_block == [{"R": 2}, {"R": 3, "P": 1}, {"R": 1}]


def test_a_wide_operand_counts_as_often_as_it_is_wide(lift: Lift) -> None:
    code = "CS2R R2, SRZ\nLDG.E.128 R4, desc[UR4][R2.64]\nSTG.E.128 desc[UR4][R2.64], R4\nEXIT"
    assert pressure(Liveness(flow_of(lift(code)))).peak == {"R": 6}


def test_an_operand_gives_its_register_to_the_result(lift: Lift) -> None:
    code = "MOV R2, 0x1\nIADD3 R3, R2, 0x1, RZ\nIADD3 R4, R3, 0x1, RZ\nSTS [R4], RZ\nEXIT"
    assert pressure(Liveness(flow_of(lift(code)))).peak == {"R": 1}


def test_a_result_that_nobody_reads_needs_a_register_too(lift: Lift) -> None:
    code = "MOV R2, 0x1\nIMAD.WIDE R4, R2, R2, RZ\nSTS [R2], RZ\nEXIT"
    assert pressure(Liveness(flow_of(lift(code)))).peak == {"R": 3}
