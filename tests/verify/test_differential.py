"""The differential in the emulator finds what is wrong with a candidate, and nothing where nothing is."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from sassir.launch import Launch, LaunchFile
from sassir.verify.cases import AS_STATED, cases
from sassir.verify.differential import Original, differential
from sassir.verify.report import Layer

Bench = Callable[[str], tuple[bytes, LaunchFile]]
Edit = Callable[..., bytes]


def kinds(launch: Launch, noalias: bool = False) -> list[str]:
    return [case.kind for case in cases(launch, noalias)]


def compare(original: bytes, candidate: bytes, file: LaunchFile) -> Layer:
    return differential(Original(original), candidate, file.small, noalias=file.facts.noalias)


def test_a_launch_is_tried_with_other_data_edge_values_and_buffers_that_are_one(bench: Bench) -> None:
    _, file = bench("saxpy_gs")
    usual = [AS_STATED, "other random data", "some edge values", "only edge values"]
    assert kinds(file.launch("small"), noalias=True) == usual
    assert kinds(file.launch("small")) == [*usual, "x is y"]
    assert kinds(file.launch("empty")) == [AS_STATED]


def test_inputs_are_the_same_every_time(bench: Bench) -> None:
    _, file = bench("saxpy_gs")
    for first, second in zip(cases(file.launch("tail"), False), cases(file.launch("tail"), False), strict=True):
        assert first == second
        for a, b in zip(first.launch.buffers, second.launch.buffers, strict=True):
            assert a.initial().tobytes() == b.initial().tobytes()


def test_edge_values_are_strewn_among_the_others(bench: Bench) -> None:
    _, file = bench("saxpy_gs")
    launch = file.launch("small")
    some, only = [case.launch for case in cases(launch, True) if "edge" in case.kind]
    stated, strewn, edges = (x.buffers[0].initial() for x in (launch, some, only))
    assert 0.04 < np.mean(stated != strewn) < 0.08
    assert np.isnan(strewn).any()
    assert np.mean(stated != edges) > 0.9


def test_index_data_stays_what_the_launch_file_says(bench: Bench) -> None:
    _, file = bench("spmv_csr")
    launch = file.launch("small")
    (columns,) = [b for b in launch.buffers if b.name == "col"]
    for case in cases(launch, False):
        (found,) = [b for b in case.launch.buffers if b.name == "col"]
        assert found.initial().max() <= columns.initial().max() + 1
        assert found.generator == columns.generator


@pytest.mark.parametrize("kernel", ["saxpy_gs", "reduce_sum", "histogram256", "rgb2gray_u8", "transpose_tile", "gelu_bias_f16"])
def test_a_kernel_equals_itself_on_every_input(bench: Bench, kernel: str) -> None:
    cubin, file = bench(kernel)
    layer = compare(cubin, cubin, file)
    assert (layer.verdict, {check.verdict for check in layer.checks}) == ("holds", {"holds"})


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("FADD R7, R7, 0.5 ;", "FADD R7, R7, 0.75 ;", "launch small, as stated: y[0]: 0.18111"),
        ("LEA.HI.X R3, R0, UR7, R3, 0x2, P0 ;", "MOV R3, RZ ;", "which is not in global memory"),
        ("LEA R2, P0, R0, UR6, 0x2 ;", "LEA R2, P0, R0, UR6, 0x1 ;", "thread (1, 0, 0): misaligned address"),
        ("[B------:R-:W-:-:S05] /*0770*/ EXIT ;", ".L:\n[B------:R-:W-:-:S05] BRA `(.L) ;", "an endless loop?"),
    ],
    ids=["wrong result", "illegal address", "misaligned access", "endless loop"],
)
def test_a_planted_fault_is_described(bench: Bench, edited: Edit, old: str, new: str, found: str) -> None:
    cubin, file = bench("poly_strict")
    place = {"FADD R7, R7, 0.5 ;": "/*0220*/ "}.get(old, "")
    layer = compare(cubin, edited(cubin, (place + old, new)), file)
    assert layer.verdict == "fails"
    assert found in layer.detail


def test_the_first_element_that_differs_is_given_with_who_wrote_it(bench: Bench, edited: Edit) -> None:
    cubin, file = bench("saxpy_gs")
    layer = compare(cubin, edited(cubin, ("desc[UR6][R4.64], R11 ;", "desc[UR6][R4.64], R2 ;")), file)
    assert "launch one, as stated: y[0]: " in layer.detail
    assert "1 of 1 elements differ" in layer.detail
    writers = [f"`STG.E desc[UR6][R4.64], {r}` at 0x150 of saxpy_gs, block 0 thread 0 in the" for r in ("R11", "R2")]
    assert layer.detail.endswith(f"; written by {writers[0]} original, by {writers[1]} candidate")


def test_what_differs_only_for_denormals_is_found_by_edge_values(bench: Bench, edited: Edit) -> None:
    cubin, file = bench("saxpy_gs")
    layer = compare(cubin, edited(cubin, ("FFMA R11,", "FFMA.FTZ R11,")), file)
    first = next(check for check in layer.checks if check.verdict == "fails")
    assert "edge values" in first.subject or "special" in first.subject
    assert all(check.verdict == "holds" for check in layer.checks[:-1])


def test_overlapping_buffers_are_tried_unless_a_fact_excludes_them(
    twice: bytes, once: bytes, twice_file: Callable[[bool], LaunchFile]
) -> None:
    assert compare(twice, once, twice_file(True)).verdict == "holds"
    layer = compare(twice, once, twice_file(False))
    assert layer.verdict == "fails"
    assert "x is y: z[0]" in layer.detail


def test_a_register_that_was_never_written_does_not_matter_if_no_result_depends_on_it(bench: Bench, edited: Edit) -> None:
    """An allocator may exchange two registers by three XORs when one of them holds nothing."""
    cubin, file = bench("poly_strict")
    control = "[B------:R-:W-:Y:S05]"
    exchange = "".join(f"{control} LOP3.LUT {d}, R6, R40, RZ, 0x3c, !PT ;\n" for d in ("R6", "R40", "R6", "R6", "R40", "R6"))
    layer = compare(cubin, edited(cubin, ("[B------:R-:W-:-:S02] /*0730*/", exchange + "[B------:R-:W-:-:S02] /*0730*/")), file)
    assert layer.verdict == "holds"
    assert all("R40, never written" in check.detail for check in layer.checks)
    dependent = edited(cubin, ("/*0730*/ ", "FADD R6, R6, R40 ;\n[B------:R-:W-:-:S02] /*0730*/ "))
    assert compare(cubin, dependent, file).verdict == "fails"


def test_a_memory_descriptor_is_needed(bench: Bench, edited: Edit) -> None:
    cubin, file = bench("saxpy_gs")
    layer = compare(cubin, edited(cubin, ("ULDC.64 UR6, c[0x0][0x208] ;", "NOP ;")), file)
    assert "UR6 is used, but it was never written" in layer.detail


def test_where_the_original_fails_nothing_is_decided(bench: Bench, edited: Edit) -> None:
    cubin, file = bench("poly_strict")
    broken = edited(cubin, ("LEA.HI.X R3, R0, UR7, R3, 0x2, P0 ;", "MOV R3, RZ ;"))
    layer = compare(broken, cubin, file)
    assert layer.verdict == "undecided"
    assert "the original: kernel poly_strict" in layer.detail


def test_what_there_is_no_time_for_is_undecided(bench: Bench) -> None:
    cubin, file = bench("poly_strict")
    layer = differential(Original(cubin), cubin, file.small, seconds=0)
    assert layer.verdict == "undecided"
    assert "not emulated to its end within 0 s" in layer.detail


def test_launches_that_break_a_fact_are_left_out(bench: Bench) -> None:
    cubin, file = bench("saxpy_gs")
    layer = differential(Original(cubin), cubin, file.small, broken_fact=lambda launch: "n = 1000" if launch.sizes["n"] != 1000 else None)
    assert {check.subject for check in layer.checks if check.verdict == "holds"} == {
        f"launch tail, {k}" for k in kinds(file.launch("tail"))
    }
    assert {check.verdict for check in layer.checks} == {"holds", "skipped"}
