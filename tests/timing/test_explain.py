"""Who needs a stall count, a wait, a scoreboard."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sassir.asm import Function
from sassir.errors import SchedulingError
from sassir.machine import machine
from sassir.timing.explain import Explanation, explain
from sassir.translate.flow import find_flow

Written = Callable[[str], Function]


def parts(function: Function, line: int) -> dict[str, Explanation]:
    return {part.part: part for part in explain(function, find_flow(function, {}), machine("sm_90"), line)}


def test_a_stall_count_that_a_reader_needs(written: Written) -> None:
    (stall,) = parts(
        written("""
        [B------:R-:W-:-:S04] FADD R1, R2, R3
        [B------:R-:W-:-:S05] FADD R4, R1, R3
    """),
        0,
    ).values()
    (reason,) = stall.reasons
    assert (stall.part, stall.note) == ("stall 4", "")
    assert (reason.first, reason.second, reason.distance, reason.needed) == (0, 1, 4, 4)
    assert reason.text == "reads R1, which `FADD R1, R2, R3` at 0x0 writes"
    assert "mined" in reason.evidence


def test_cycles_that_nobody_needs_are_named(written: Written) -> None:
    """The guard of the last instruction is 13 cycles behind anyway."""
    stall = parts(
        written("""
        [B------:R-:W-:-:S09] FADD R1, R2, R3
        [B------:R-:W-:-:S05] FADD R4, R1, R3
    """),
        0,
    )["stall 9"]
    assert stall.note == "4 would be enough for all that depends on it"


def test_the_distance_goes_over_other_instructions(written: Written) -> None:
    stall = parts(
        written("""
        [B------:R-:W-:-:S02] FADD R1, R2, R3
        [B------:R-:W-:-:S02] FADD R5, R2, R3
        [B------:R-:W-:-:S05] FADD R4, R1, R3
    """),
        1,
    )["stall 2"]
    assert [(r.first, r.second, r.distance, r.needed) for r in stall.reasons] == [(0, 2, 4, 4)]


def test_a_wait_and_the_signal_that_it_waits_for(written: Written) -> None:
    function = written("""
        [B------:R-:W3:-:S02] LDS R1, [R8]
        [B---3--:R-:W-:-:S05] FADD R4, R1, R3
    """)
    wait, signal = parts(function, 1)["wait for SB3"], parts(function, 0)["signals SB3 when its results are written"]
    assert [(r.first, r.second) for r in wait.reasons] == [(r.first, r.second) for r in signal.reasons] == [(0, 1)]
    assert wait.reasons[0].text == "reads R1 without waiting until `LDS R1, [R8]` at 0x0 has written it"


def test_a_wait_for_operands(written: Written) -> None:
    function = written("""
        [B------:R2:W-:-:S02] STS [R8], R1
        [B--2---:R-:W-:-:S05] MOV R1, R3
    """)
    (reason,) = parts(function, 1)["wait for SB2"].reasons
    assert reason.text == "writes R1 without waiting until `STS [R8], R1` at 0x0 has read it"


def test_a_wait_that_nobody_needs(written: Written) -> None:
    function = written("""
        [B------:R-:W3:-:S02] LDS R1, [R8]
        [B---3--:R-:W-:-:S05] FADD R4, R5, R3
    """)
    assert parts(function, 1)["wait for SB3"].note == "nothing needs it"


def test_a_place_behind_the_end(written: Written) -> None:
    function = written("[B------:R-:W-:-:S05] EXIT")
    with pytest.raises(SchedulingError, match="no instruction at 0x10; expected a multiple of 16 up to 0x0"):
        parts(function, 1)
