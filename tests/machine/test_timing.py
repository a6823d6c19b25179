"""What an instruction's timing says about its registers."""

from __future__ import annotations

from pathlib import Path

import pytest

from sassir.asm.parse import parse_instruction
from sassir.dialect.registers import REGISTERS
from sassir.machine import Timing, machine
from sassir.machine.hierarchy import HIERARCHIES
from sassir.translate.cubin import read_program
from sassir.translate.shape import shape

CUBINS = Path(__file__).parents[1] / "cubins"
REAL = [f"isa_scalar.{arch}" for arch in ("sm_75", "sm_80", "sm_90a", "sm_100a", "sm_120a")]
REAL_TENSOR = [f"isa_tensor.{arch}" for arch in ("sm_75", "sm_80", "sm_90a", "sm_100a", "sm_120a")]


def timing(arch: str, text: str) -> Timing:
    """The timing of an instruction given as text."""
    return machine(arch).timing(parse_instruction(text))


def lines(arch: str, text: str) -> tuple[list[str], list[str], str]:
    """The names of its rows, its columns, and the column of its guard."""
    found, description = timing(arch, text), machine(arch)
    return [description.rows[i] for i in found.writers], [description.columns[i] for i in found.readers], description.columns[found.guard]


@pytest.mark.parametrize("name", [*REAL, *REAL_TENSOR])
def test_lines_are_in_the_order_of_the_shape_and_of_its_register_files(name: str) -> None:
    program = read_program((CUBINS / f"{name}.cubin").read_bytes(), name)
    description = machine(program.arch)
    for function in program.functions:
        for instruction, _ in function.lines:
            found, form = description.timing(instruction), shape(instruction.mnemonic, instruction.modifiers, instruction.operands)
            assert (found.problem is None) == (form.problem is None), str(instruction)
            for lines, names, registers in (
                (found.writers, description.rows, form.writes),
                (found.readers, description.columns, form.reads),
            ):
                assert [names[i].partition(".")[0] for i in lines] == [REGISTERS[n].FILE for n in registers], str(instruction)


def test_the_halves_of_a_wide_product_differ() -> None:
    writes, reads, guard = lines("sm_90", "IMAD.WIDE R2, R4, R5, R6")
    assert writes == ["R.wide.lo", "R.wide.hi"]
    assert reads == ["R.wide", "R.wide", "R.fma", "R.wide.hi"]
    assert guard == "P.guard"


def test_immediates_count_as_operands() -> None:
    assert lines("sm_90", "IMAD.WIDE R2, R4, 0x4, R6")[1] == ["R.wide", "R.fma", "R.wide.hi"]


def test_zero_registers_have_no_line() -> None:
    assert lines("sm_90", "IMAD.WIDE R2, R4, R5, RZ")[1] == ["R.wide", "R.wide"]
    assert lines("sm_90", "ISETP.NE.AND P0, PT, R4, RZ, PT")[:2] == (["P.alu.b"], ["R.alu.b"])


def test_carries_are_read_by_the_unit_that_adds_them() -> None:
    assert lines("sm_90", "IADD3.X R2, R4, R5, RZ, P0, !PT")[1] == ["R.alu", "R.alu", "P.alu"]
    assert lines("sm_90", "IMAD.X R2, R4, 0x1, R5, P0")[1] == ["R.fma", "R.fma", "P.fma"]


def test_a_guard_has_the_column_of_its_file() -> None:
    assert lines("sm_90", "@!P3 FADD R2, R3, R4")[2] == "P.guard"
    assert lines("sm_90", "@UP0 UMOV UR4, UR5")[2] == "UP.guard"


def test_uniform_registers_by_who_reads_them() -> None:
    assert lines("sm_90", "IADD3 R2, R4, UR5, RZ")[1] == ["R.alu", "UR.vector"]
    assert lines("sm_90", "LDG.E R2, desc[UR4][R6.64]")[1] == ["UR.late", "UR.late", "R.memory", "R.memory"]
    assert lines("sm_90", "UIADD3 UR4, UR5, UR6, URZ")[:2] == (["UR.udp"], ["UR.udp", "UR.udp"])
    assert lines("sm_75", "FADD R2, R4, cx[UR4][0x10]")[1] == ["R.fma", "UR.bindless", "UR.bindless"]


def test_constants_for_the_uniform_datapath_became_late() -> None:
    assert not timing("sm_90", "ULDC UR4, c[0x0][0x210]").writes_late
    assert timing("sm_100", "LDCU UR4, c[0x0][0x380]").writes_late


def test_what_is_late() -> None:
    load, store, copy = (timing("sm_90", t) for t in ("LDS R2, [R4]", "STS [R4], R2", "UTMALDG.2D [UR8], [UR4]"))
    assert (load.writes_late, load.reads_late, load.uniform_late, load.queue, load.result_queue) == (True, True, False, "lsu", "shared")
    assert (store.queue, store.result_queue) == ("lsu", None)
    assert copy.uniform_late
    assert timing("sm_90", "HGMMA.64x8x16.F32 R24, gdesc[UR4], RZ, !UPT").group


def test_matrix_products_by_passes() -> None:
    assert lines("sm_90", "HMMA.16816.F32 R4, R8, R12, R16")[0] == ["R.hmma.2"] * 4
    assert lines("sm_90", "HMMA.1688.F32 R4, R8, R12, R16")[0] == ["R.hmma.1"] * 4
    assert lines("sm_90", "HMMA.1688.F32.TF32 R4, R8, R12, R16")[0] == ["R.hmma.2"] * 4


def test_issue_and_minimum_stalls() -> None:
    assert [timing(arch, "FFMA R2, R3, R4, R5").issue for arch in ("sm_75", "sm_80", "sm_86", "sm_90")] == [2, 2, 1, 1]
    assert [timing(arch, "ISETP.NE.AND P0, PT, R4, RZ, PT").issue for arch in ("sm_90", "sm_120")] == [2, 1]
    assert timing("sm_90", "IMAD.WIDE R2, R4, R5, R6").issue == 4
    assert timing("sm_90", "BRA .+0x40").minimum_stall == 5
    old = timing("sm_80", "BREAK B0")
    assert (old.minimum_stall, old.usual_stall) == (1, 5)
    barrier = timing("sm_90", "BAR.SYNC.DEFER_BLOCKING 0x0")
    assert (barrier.minimum_stall, barrier.settle) == (1, 6)


def test_an_unknown_instruction_says_so_and_is_careful() -> None:
    found = timing("sm_90", "FROBNICATE R2, R3")
    assert found.problem == "no table row describes FROBNICATE"
    assert (found.writers, found.readers, found.writes_late, found.reads_late, found.uniform_late) == ((), (), True, True, True)


def test_the_cost_of_a_load_is_that_of_its_width() -> None:
    description = machine("sm_86")
    wide = description.cost(parse_instruction("LDG.E.128 R4, desc[UR4][R2.64]"))
    assert wide[:2] == (11, 38)


def test_code_expects_global_loads_to_miss_the_first_level() -> None:
    description = machine("sm_90")
    second, memory = HIERARCHIES["sm_90"].second_latency, HIERARCHIES["sm_90"].memory_latency
    assert second < description.usual_latency(parse_instruction("LDG.E R4, desc[UR4][R2.64]")) < memory
    assert description.usual_latency(parse_instruction("LDS R4, [R2]")) == 23
