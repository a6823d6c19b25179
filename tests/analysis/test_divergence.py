"""Where a warp may be split: from the branch whose condition differs between threads to where BSYNC has brought them together."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from xdsl.ir import Region

from sassir.analysis.divergence import Divergence

Lift = Callable[[str], Region]

HAMMOCK = """
{source}
ISETP.NE.AND P0, PT, R0, RZ, PT
BSSY B0, .+0x40
@P0 BRA .+0x20
MOV R2, 0x1
BSYNC B0
STS [RZ], R2
EXIT
"""
BLOCKS = {"before": 0, "arm": 1, "join": 2, "behind": 3}


def split(lift: Lift, source: str) -> set[int]:
    return set(Divergence(lift(HAMMOCK.format(source=source))).split)


DIFFERENT = ("S2R R0, SR_TID.X", "S2R R0, SR_LANEID", "LDG.E R0, desc[UR4][R6.64]", "SHFL.IDX PT, R0, R4, R5, 0x1f", "LDL R0, [RZ]")
SHARED = ("LDS R0, [UR4]", "S2R R0, SR_CTAID.X", "MOV R0, c[0x0][0x160]", "MOV R0, UR4", "LDC R0, c[0x0][0x160]", "IMAD R0, RZ, RZ, 0x7")


@pytest.mark.parametrize("source", DIFFERENT)
def test_a_condition_that_differs_between_threads(lift: Lift, source: str) -> None:
    """The BSYNC itself still runs for some threads at a time."""
    assert split(lift, source) == {BLOCKS["arm"], BLOCKS["join"]}


@pytest.mark.parametrize("source", SHARED)
def test_a_condition_that_the_warp_shares(lift: Lift, source: str) -> None:
    assert split(lift, source) == set()


def test_what_a_register_holds_at_the_start_may_differ(lift: Lift) -> None:
    assert split(lift, "NOP") == {BLOCKS["arm"], BLOCKS["join"]}


def test_a_vote_is_the_same_for_all(lift: Lift) -> None:
    assert split(lift, "S2R R1, SR_TID.X\nISETP.NE.AND P1, PT, R1, RZ, PT\nVOTE.ANY R0, PT, P1") == set()


def test_without_a_barrier_the_warp_stays_split(lift: Lift) -> None:
    """Control meets again, but nothing makes the threads wait for each other."""
    region = lift("S2R R0, SR_TID.X\nISETP.NE.AND P0, PT, R0, RZ, PT\n@P0 BRA .+0x20\nMOV R2, 0x1\nSTS [RZ], R2\nEXIT")
    assert Divergence(region).split == {1, 2}


def test_threads_that_end_leave_no_split(lift: Lift) -> None:
    region = lift("S2R R0, SR_TID.X\nISETP.NE.AND P0, PT, R0, RZ, PT\n@P0 EXIT\nSTS [RZ], R0\nEXIT")
    assert Divergence(region).split == set()


LOOP = """
S2R R0, {special}
MOV R2, RZ
BSSY B0, .+0x50
IADD3 R2, R2, 0x1, RZ
ISETP.LT.AND P0, PT, R2, R0, PT
@P0 BRA .-0x20
BSYNC B0
ISETP.NE.AND P1, PT, R2, R0, PT
BSSY B0, .+0x40
@P1 BRA .+0x20
MOV R2, 0x1
BSYNC B0
EXIT
"""


def test_what_a_split_loop_counts_differs_behind_it(lift: Lift) -> None:
    """Each thread leaves with its own count, so the branch behind the loop splits the warp again."""
    region = lift(LOOP.format(special="SR_TID.X"))
    found = Divergence(region)
    assert {b.name_hint for i, b in enumerate(region.blocks) if i in found.split} == {"x30", "x60", "xa0", "xb0"}
    assert Divergence(lift(LOOP.format(special="SR_CTAID.X"))).split == set()


def test_a_value_chosen_by_the_way_differs(lift: Lift) -> None:
    region = lift(HAMMOCK.format(source="S2R R0, SR_TID.X\nMOV R2, 0x5"))
    found = Divergence(region)
    (argument,) = region.blocks[BLOCKS["join"]].args
    assert argument in found.varying


def test_a_split_inside_of_a_split(lift: Lift) -> None:
    region = lift("""
S2R R0, SR_TID.X
ISETP.NE.AND P0, PT, R0, RZ, PT
BSSY B0, .+0x90
@P0 BRA .+0x70
ISETP.NE.AND P1, PT, R0, 0x1, PT
BSSY B1, .+0x40
@P1 BRA .+0x20
MOV R2, 0x1
BSYNC B1
MOV R3, 0x1
BSYNC B0
EXIT
""")
    assert {b.name_hint for i, b in enumerate(region.blocks) if i in Divergence(region).split} == {"x40", "x70", "x80", "x90", "xa0"}


def test_a_uniform_way_to_the_same_place_changes_nothing(lift: Lift) -> None:
    """The block behind the BSYNC can also be come to around it, by all threads at once."""
    region = lift("""
ISETP.NE.AND P1, PT, RZ, c[0x0][0x160], PT
@P1 BRA .+0x70
S2R R0, SR_TID.X
ISETP.NE.AND P0, PT, R0, RZ, PT
BSSY B0, .+0x40
@P0 BRA .+0x20
MOV R2, 0x1
BSYNC B0
EXIT
""")
    assert {b.name_hint for i, b in enumerate(region.blocks) if i in Divergence(region).split} == {"x60", "x70"}


def test_a_wait_for_all_threads_brings_them_together(lift: Lift) -> None:
    """The block with the WARPSYNC begins with a split warp; the one behind it does not."""
    region = lift("""
S2R R0, SR_TID.X
ISETP.NE.AND P0, PT, R0, RZ, PT
@P0 BRA .+0x20
MOV R2, 0x1
WARPSYNC.ALL
ISETP.NE.AND P1, PT, RZ, c[0x0][0x160], PT
@P1 BRA .+0x20
NOP
EXIT
""")
    assert {b.name_hint for i, b in enumerate(region.blocks) if i in Divergence(region).split} == {"x30", "x40"}


CALLED_TWICE = """
S2R R0, {special}
ISETP.NE.AND P0, PT, R0, RZ, PT
BSSY B0, .+0x70
@P0 BRA .+0x50
MOV R20, 0x70
MOV R21, 0x0
CALL.REL.NOINC .+0x70
NOP
BSYNC B0
MOV R20, 0xc0
MOV R21, 0x0
CALL.REL.NOINC .+0x20
EXIT
IADD3 R4, R4, 0x1, RZ
RET.REL.NODEC R20 .-0xe0
"""


def test_a_call_comes_back_to_its_own_caller(lift: Lift) -> None:
    """The split ends at the BSYNC, though in the graph of the code the RET leads behind the second call too."""
    region = lift(CALLED_TWICE.format(special="SR_TID.X"))
    assert {b.name_hint for i, b in enumerate(region.blocks) if i in Divergence(region).split} == {"x40", "x70", "x80", "xd0"}
    assert Divergence(lift(CALLED_TWICE.format(special="SR_CTAID.X"))).split == set()


def test_a_function_that_splits_the_warp_leaves_it_split(lift: Lift) -> None:
    region = lift("""
MOV R20, 0x30
MOV R21, 0x0
CALL.REL.NOINC .+0x20
EXIT
S2R R0, SR_TID.X
ISETP.NE.AND P0, PT, R0, RZ, PT
@P0 BRA .+0x20
NOP
RET.REL.NODEC R20 .-0x80
""")
    assert {b.name_hint for i, b in enumerate(region.blocks) if i in Divergence(region).split} == {"x30", "x70", "x80"}


TWO_LOOPS = """
S2R R0, SR_TID.X
BSSY B0, .+0xa0
ISETP.LT.AND P1, PT, R0, 0x10, PT
ISETP.LT.AND P0, PT, R0, 0x40, PT
ISETP.LT.AND P2, PT, R0, 0x44, PT
IADD3 R1, R1, 0x1, RZ
@P0 BRA .-0x10
@P1 BRA .+0x30
IADD3 R1, R1, 0x1, RZ
@P2 BRA .-0x10
BSYNC B0
STS [RZ], R0
EXIT
"""


def test_a_split_that_meets_behind_one_inside_of_it(lift: Lift) -> None:
    """A loop and the remainder of its turns, as unrolling leaves them: the warp is together behind the BSYNC of both."""
    region = lift(TWO_LOOPS)
    (stores,) = [i for i, block in enumerate(region.blocks) if any(op.name == "sass.sts" for op in block.ops)]
    assert stores not in Divergence(region).split
