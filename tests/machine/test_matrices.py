"""Which evidence decides a cell."""

from __future__ import annotations

import shutil

import pytest

from sassir.machine.classes import COLUMNS, ROWS
from sassir.machine.latency import Cell
from sassir.machine.mining import chains
from sassir.machine.mining.matrices import ENOUGH, matrices
from sassir.machine.mining.samples import Samples
from sassir.translate.cubin import read_program

FMA, ALU = ROWS.number["R.fma"], ROWS.number["R.alu"]
BY_FMA, BY_ALU, BY_FP16 = COLUMNS.number["R.fma"], COLUMNS.number["R.alu"], COLUMNS.number["R.fp16"]


def sampled(kind: str, first: int, second: int, *distances: int) -> Samples:
    """Samples of one cell."""
    samples = Samples("sm_86")
    for n, cycles in enumerate(distances):
        samples.note(kind, first, second, cycles, ("file[1]", n))
    return samples


def decide(kind: str, first: int, second: int, code: tuple[int, ...] = (), chain: tuple[int, ...] = ()) -> Cell:
    """The cell for these distances in real code and in chain kernels, on sm_86."""
    return matrices("sm_86", sampled(kind, first, second, *code), sampled(kind, first, second, *chain))[kind][first, second]


def test_enough_pairs_of_real_code_decide() -> None:
    assert decide("raw", FMA, BY_FMA, code=(7, *[4] * ENOUGH)) == Cell(
        4, "m", f"{ENOUGH + 1} pairs, {ENOUGH} of them closest, file[1]+0x10"
    )


def test_real_code_decides_where_a_chain_kernel_shows_the_same() -> None:
    assert decide("raw", FMA, BY_FMA, code=(4,) * ENOUGH, chain=(4,))[:2] == (4, "m")


def test_too_few_pairs_leave_it_to_what_is_published() -> None:
    assert decide("raw", FMA, BY_FMA, code=(3,) * (ENOUGH - 1)) == Cell(4, "n")


def test_a_chain_kernel_is_enough_for_a_latency() -> None:
    assert decide("raw", FMA, BY_FP16, chain=(5,)).letter == "c"
    assert decide("raw", FMA, BY_FMA, code=(5,) * ENOUGH, chain=(4,))[:2] == (4, "c")


def test_a_chain_kernel_is_not_enough_for_an_overwritten_register() -> None:
    assert decide("waw", FMA, FMA, chain=(9,)) == Cell(1, "n")


def test_where_less_is_published_a_frequent_distance_is_kept_as_loose() -> None:
    assert decide("waw", FMA, FMA, code=(4,) * ENOUGH)[:2] == (4, "l")


def test_where_less_is_published_a_chance_distance_is_dropped() -> None:
    assert decide("waw", FMA, FMA, code=(4, *[9] * 10 * ENOUGH)) == Cell(1, "n")
    assert decide("raw", FMA, BY_FMA, code=(200,) * ENOUGH) == Cell(4, "n")


def test_an_unknown_overwrite_is_as_careful_as_a_read() -> None:
    row = ROWS.number["R.hmma.2"]
    found = matrices("sm_86", Samples("sm_86"), sampled("raw", row, BY_FMA, 24))
    assert found["waw"][row, FMA] == Cell(24, "a")


def test_another_architectures_table_is_an_assumption() -> None:
    found = matrices("sm_90", Samples("sm_90"), Samples("sm_90"))
    assert found["raw"][FMA, BY_ALU] == Cell(5, "a", "as published for sm_80")


def test_the_hardware_waits_for_late_results_and_barriers() -> None:
    found = matrices("sm_86", Samples("sm_86"), Samples("sm_86"))
    assert found["raw"][ROWS.number["R.late"], BY_FMA] == Cell(0, "h")
    assert found["raw"][ROWS.number["B.bar"], COLUMNS.number["B.bar"]] == Cell(0, "h")


def test_chain_kernels_cover_every_operation_of_the_architecture() -> None:
    older, newer = (chains.chain_ptx(arch) for arch in ("sm_75", "sm_90"))
    assert ".target sm_75" in older
    assert "hminimum__" not in older
    assert "hminimum__and_or_A" in newer
    assert newer.count(".entry") > older.count(".entry") > 1000


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="needs ptxas")
def test_a_chain_kernel_shows_the_latency(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = chains.OPERATIONS.strip().splitlines()
    monkeypatch.setattr(chains, "OPERATIONS", "\n".join([row for row in rows if row.startswith(("#", "and_or", "ffma"))]))
    monkeypatch.setattr(chains, "MATRICES", chains.MATRICES.strip().splitlines()[0])
    samples = Samples("sm_90")
    for function in read_program(chains.chain_kernels("sm_90"), "chains").functions:
        samples.add(function, function.name)
    found = samples.cells("raw")
    assert (found[FMA, BY_FMA].cycles, found[FMA, BY_ALU].cycles, found[ALU, BY_FMA].cycles) == (4, 5, 5)
    assert found[FMA, BY_ALU].place.startswith("ffma__and_or_")
