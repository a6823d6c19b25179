"""The miner sees the distance that ptxas keeps, and nothing that would make a minimum too small."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from sassir.asm.parse import parse_instruction
from sassir.asm.program import Function, Line
from sassir.machine.latency import KINDS, parse_cells
from sassir.machine.mining.samples import Samples
from sassir.translate.cubin import read_program

ROOT = Path(__file__).parents[2]


def mine(text: str, base: str = "sm_90") -> dict[str, dict[tuple[str, str], Counter[int]]]:
    """How many pairs of which distance straight code has, by kind and by the names of the lines."""
    instructions = [parse_instruction(line.strip()) for line in text.strip().splitlines()]
    samples = Samples(base)
    samples.add(Function("k", 7, tuple([Line(i, 16 * n) for n, i in enumerate(instructions)]), {}), "file[7]")
    return {
        kind: {(KINDS[kind][0].names[i], KINDS[kind][1].names[j]): distances for (i, j), distances in cells.items()}
        for kind, cells in samples.pairs.items()
        if cells
    }


def test_a_distance_is_the_sum_of_stall_counts() -> None:
    found = mine("""
        [B------:R-:W-:-:S01] FADD R2, R4, R5
        [B------:R-:W-:-:S03] MOV R8, 0x1
        [B------:R-:W-:-:S05] FADD R3, R2, R6""")
    assert found == {"raw": {("R.fma", "R.fma"): Counter({4: 1})}}


def test_a_guard_reads_its_predicate() -> None:
    found = mine("""
        [B------:R-:W-:Y:S13] ISETP.NE.AND P0, PT, R4, RZ, PT
        [B------:R-:W-:-:S01] @P0 MOV R2, R3""")
    assert found["raw"] == {("P.alu.b", "P.guard"): Counter({13: 1})}


def test_a_result_that_a_scoreboard_announces_keeps_no_distance() -> None:
    assert "raw" not in mine("""
        [B------:R-:W0:-:S02] LDS R2, [R4]
        [B0-----:R-:W-:-:S05] FADD R3, R2, R6""")
    assert "raw" not in mine("""
        [B------:R-:W0:-:S02] HMMA.16816.F32 R4, R8, R12, RZ
        [B0-----:R-:W-:-:S05] FADD R3, R4, R6""")


def test_a_result_with_both_keeps_its_distance() -> None:
    found = mine(
        """
        [B------:R-:W0:Y:S06] DADD R2, R4, R6
        [B0-----:R-:W-:-:S05] DADD R8, R2, R6""",
        "sm_86",
    )
    assert found["raw"] == {("R.fp64", "R.fp64"): Counter({6: 2})}


def test_complementary_guards_never_meet() -> None:
    text = """
        [B------:R-:W-:-:S01] @P0 FADD R2, R4, R5
        [B------:R-:W-:-:S05] {}FADD R3, R2, R6"""
    assert ("R.fma", "R.fma") not in mine(text.format("@!P0 ")).get("raw", {})
    assert mine(text.format("@P0 "))["raw"]["R.fma", "R.fma"] == Counter({1: 1})


def test_guards_on_different_values_of_a_predicate_may_meet() -> None:
    found = mine("""
        [B------:R-:W-:-:S01] @P0 FADD R2, R4, R5
        [B------:R-:W-:Y:S13] ISETP.NE.AND P0, PT, R4, RZ, PT
        [B------:R-:W-:-:S05] @!P0 FADD R3, R2, R6""")
    assert found["raw"]["R.fma", "R.fma"] == Counter({14: 1})


@pytest.mark.parametrize("between", ["[B------:R-:W-:-:S05] EXIT", "[B------:R-:W-:-:S05] BRA .+0x100", "[B------:R-:W-:Y:S00] NOP"])
def test_nothing_is_known_behind_a_jump_or_a_drain(between: str) -> None:
    assert "raw" not in mine(f"""
        [B------:R-:W-:-:S01] FADD R2, R4, R5
        {between}
        [B------:R-:W-:-:S05] FADD R3, R2, R6""")


def test_code_behind_a_jump_that_may_fail_is_a_path() -> None:
    found = mine("""
        [B------:R-:W-:-:S01] FADD R2, R4, R5
        [B------:R-:W-:-:S05] @P0 BRA .+0x100
        [B------:R-:W-:-:S05] FADD R3, R2, R6""")
    assert found["raw"] == {("R.fma", "R.fma"): Counter({6: 1})}


def test_an_overwritten_result_counts_unless_it_was_read() -> None:
    text = """
        [B------:R-:W-:-:S02] FADD R2, R4, R5
        [B------:R-:W-:-:S02] FADD R3, {}, R6
        [B------:R-:W-:-:S05] FADD R2, R6, R7"""
    assert mine(text.format("R9"))["waw"] == {("R.fma", "R.fma"): Counter({4: 1})}
    assert "waw" not in mine(text.format("R2"))


def test_a_guarded_first_writer_is_apart() -> None:
    found = mine("""
        [B------:R-:W-:-:S02] @P0 FADD R2, R4, R5
        [B------:R-:W-:-:S05] FADD R2, R6, R7""")
    assert found["waw-guarded"] == {("R.fma", "R.fma"): Counter({2: 1})}


def test_operands_that_are_read_late_keep_no_distance() -> None:
    text = """
        [B------:R-:W-:-:S01] {}
        [B------:R-:W-:-:S05] MOV R2, R6"""
    assert mine(text.format("FADD R3, R2, R5"))["war"] == {("R.fma", "R.alu.b"): Counter({1: 1})}
    assert "war" not in mine(text.format("STS [R4], R2"))


def test_the_same_code_counts_once() -> None:
    samples = Samples("sm_90")
    for name in ("one", "two"):
        for function in read_program((ROOT / "tests/cubins/loop.sm_90.cubin").read_bytes(), name).functions:
            samples.add(function, name)
    once = samples.instructions
    assert once == sum(len(f.lines) for f in read_program((ROOT / "tests/cubins/loop.sm_90.cubin").read_bytes(), "x").functions)


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90", "sm_100", "sm_120"])
def test_no_cell_is_below_the_committed_one(arch: str) -> None:
    """Small real files, which the tables were mined from among others: a full reproduction is in docs/machine.md."""
    samples = Samples(arch)
    for file in sorted((ROOT / "tests/cubins").glob(f"*.{arch}*.cubin")):
        for function in read_program(file.read_bytes(), file.name).functions:
            samples.add(function, f"{file.name}[{function.section}]")
    assert samples.instructions > 1000
    table = parse_cells((ROOT / f"sassir/machine/tables/{arch}.txt").read_text("utf-8"))
    for kind in KINDS:
        for cell, found in samples.cells(kind).items():
            known = table[kind][cell]
            assert found.cycles >= known.cycles or known.letter in "na", (kind, KINDS[kind][0].names[cell[0]], found, known)
