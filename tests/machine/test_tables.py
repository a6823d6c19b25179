"""The latency tables: complete, readable, and what the generations are known for."""

from __future__ import annotations

from importlib.resources import files

import pytest

from sassir.asm.parse import parse_instruction
from sassir.isa import DESCRIPTIONS
from sassir.machine import machine
from sassir.machine.classes import COLUMNS, ROWS
from sassir.machine.instructions import OVERRIDES
from sassir.machine.issue import ARCHITECTURES
from sassir.machine.kinds import UNKNOWN, kind_of
from sassir.machine.latency import EVIDENCE, KINDS, UNRELATED, Cell, parse_cells, parse_matrices, print_matrices, same_file


def cells(arch: str, kind: str, first: str, second: str) -> Cell:
    """A cell of the mined table."""
    axes = KINDS[kind]
    return mined(arch)[kind][axes[0].number[first], axes[1].number[second]]


def mined(arch: str):
    """The mined table of an architecture."""
    return parse_cells(files("sassir.machine").joinpath(f"tables/{arch}.txt").read_text("utf-8"))


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_every_cell_is_there_with_its_evidence(arch: str) -> None:
    description = machine(arch)
    for kind, matrix in (
        ("raw", description.raw),
        ("war", description.war),
        ("waw", description.waw),
        ("waw-guarded", description.waw_guarded),
    ):
        first, second = KINDS[kind]
        for a, row in zip(first.names, matrix, strict=True):
            for b, latency in zip(second.names, row, strict=True):
                if same_file(a, b):
                    assert 0 <= latency.cycles < 100, (kind, a, b)
                    assert latency.evidence.split(":")[0] in EVIDENCE.values()
                else:
                    assert latency is UNRELATED


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_mined_cells_say_how_often_and_where(arch: str) -> None:
    for kind, table in mined(arch).items():
        for cell, known in table.items():
            if known.letter in "mcl":
                pairs, tight = (int(known.remark.split()[i]) for i in (0, 2))
                assert 0 < tight <= pairs, (kind, cell, known)
                assert known.letter != "m" or pairs >= 20, (kind, cell, known)


def test_the_text_of_a_table_is_read_back() -> None:
    table = mined("sm_90")
    assert parse_cells(print_matrices(table)) == table


def test_a_later_table_replaces_cells() -> None:
    text = files("sassir.machine").joinpath("tables/sm_90.txt").read_text("utf-8")
    matrices = parse_matrices(text, "raw R  fma\nalu    9g\nalu fma H200")
    latency = matrices["raw"][ROWS.number["R.alu"]][COLUMNS.number["R.fma"]]
    assert (latency.cycles, latency.evidence, latency.certain) == (9, "measured on a GPU: H200", True)
    assert matrices["raw"][ROWS.number["R.fma"]][COLUMNS.number["R.fma"]].cycles == 4


@pytest.mark.parametrize(
    "text", ["raw R alu\nnowhere 4m", "raw R nowhere\nalu 4m", "raw R alu fma\nalu 4m", "alu 4m", "raw R alu\nalu m", "raw R alu\nalu"]
)
def test_a_malformed_line_is_named(text: str) -> None:
    with pytest.raises(ValueError, match="latency table, line"):
        parse_cells(text)


def test_a_missing_cell_is_named() -> None:
    with pytest.raises(ValueError, match=r"no cell raw R\.alu R\.alu"):
        parse_matrices("raw R fma\nalu 4m")


KNOWN = """
raw R.alu R.alu         4  4  4  4  4  4  4
raw R.alu R.fma         5  5  5  5  5  5  5
raw R.fma R.fma         4  4  4  4  4  4  4
raw R.alu.b R.alu       4  4  4  4  4  4  5
raw R.alu R.late        6  4  4  4  4  4  4
raw R.alu R.memory      8  5  5  5  5  5  5
raw R.wide.lo R.alu     5  5  5  5  3  3  3
raw R.alu R.wide.hi     5  5  5  5  3  3  3
raw R.fp16 R.fp16       6  4  4  4  4  4  4
raw R.hmma.2 R.alu      -  24 24 24 24 19 28
raw P.alu.b P.alu.b     4  4  4  4  4  4  5
raw P.alu.b P.guard     12 13 13 13 13 13 13
raw UR.udp UR.udp       4  4  4  4  4  4  4
raw UR.udp UR.late      9  9  9  9  9  9  9
war R.mma.2 R.alu       -  7  7  7  7  -  -
"""
"""Distances that every public description of these generations agrees on, in the order of `ARCHITECTURES`."""


@pytest.mark.parametrize("line", KNOWN.strip().splitlines())
def test_what_is_known_of_the_generations(line: str) -> None:
    kind, first, second, *cycles = line.split()
    expected = {arch: int(text) for arch, text in zip(ARCHITECTURES, cycles, strict=True) if text != "-"}
    assert {arch: cells(arch, kind, first, second).cycles for arch in expected} == expected


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_every_instruction_has_a_row(arch: str) -> None:
    for rows in DESCRIPTIONS.values():
        for row in rows:
            kind = kind_of(arch, row.mnemonic, tuple(row.modifiers))
            assert kind is not UNKNOWN, row.name
            assert all((name, "R") in ROWS.by_class or (name, "UR") in ROWS.by_class for group in kind.writes for name in group), row.name
            assert all(any((name, file) in COLUMNS.by_class for file in ("R", "UR")) for group in kind.reads for name in group), row.name


def test_an_override_changes_a_row_that_is_there() -> None:
    assert set(OVERRIDES) == {*ARCHITECTURES, "sm_103"}
    assert kind_of("sm_90", "DFMA", ()).late == frozenset()
    assert kind_of("sm_86", "DFMA", ()).late == {"w", "r"}
    assert kind_of("sm_86", "R2UR", ()).late == {"w", "r"}
    assert kind_of("sm_90", "R2UR", ()).late == frozenset()


def test_an_architecture_may_differ_from_its_base_in_what_is_late() -> None:
    double = parse_instruction("DFMA R8, R2, R4, R6")
    assert [machine(arch).timing(double).writes_late for arch in ("sm_100a", "sm_103a", "sm_110f")] == [False, True, True]


def test_an_architecture_may_have_latencies_of_its_own_for_what_is_late() -> None:
    """Behind a product of sm_103 its scoreboard is awaited, not a distance; and it may overwrite what was read a cycle before."""
    own, base = machine("sm_103a"), machine("sm_100a")
    row, alu, others = ROWS.number["R.fp64"], COLUMNS.number["R.alu"], [i for i, name in enumerate(ROWS.names) if "fp64" not in name]
    assert (own.raw[row][alu].cycles, base.raw[row][alu].cycles) == (2, 10)
    assert own.war[alu][row].cycles == 1
    assert [own.raw[i] for i in others] == [base.raw[i] for i in others]
    assert machine("sm_110") is machine("sm_103f")


def test_derived_architectures_share_a_description() -> None:
    assert machine("sm_90a") is machine("sm_90")
    assert machine("sm_121") is machine("sm_120")
