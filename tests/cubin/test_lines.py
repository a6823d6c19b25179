"""Line tables: read, written back byte for byte, and written anew for code in another order."""

from __future__ import annotations

from pathlib import Path

import pytest

from sassir.cubin.code import Code, CodeSection
from sassir.cubin.cubin import Cubin
from sassir.cubin.dwarf import Base
from sassir.cubin.lines import LINES, LineSequence, LineTable, Parameters, Row, moved_lines, read_lines, write_lines
from sassir.cubin.places import Places
from sassir.errors import ContainerError

CUBINS = sorted((Path(__file__).parent.parent / "cubins").glob("*.cubin"))
TABLES = [
    (path.name, section.name, cubin.elf.content(section))
    for path in CUBINS
    for cubin in [Cubin.read(path.read_bytes(), path.name)]
    for section in cubin.elf.sections
    if section.name in LINES
]
PTXAS = Parameters(1, 1, -5, 14, 10)


@pytest.mark.parametrize(("file", "name", "data"), TABLES, ids=[f"{file} {name}" for file, name, _ in TABLES])
def test_what_ptxas_wrote_is_written_again(file: str, name: str, data: bytes) -> None:
    tables = list(read_lines(data, file))
    assert write_lines(tables) == (data, [sequence.at for table in tables for sequence in table.sequences])


def test_inlined_code_names_the_row_of_its_call() -> None:
    data = next(data for file, name, data in TABLES if (file, name) == ("inlined.sm_90.cubin", ".debug_line"))
    sequences = [s for table in read_lines(data, "") for s in table.sequences]
    chains = {(row.line, s.rows[row.call - 1].line) for s in sequences for row in s.rows if row.call}
    assert {(3, 18), (3, 6), (6, 14)} <= chains  # line 3 is in square(), 6 in cube(), 14 and 18 in the kernels


def relaid(rows: list[Row], order: list[int | None]) -> list[Row]:
    """The rows of a section whose instructions come in another order; None is a new one."""
    count = max(o for o in order if o is not None) + 1
    section = CodeSection(1, ".text.k", bytes(16 * count), (), (), ())
    moved = {16 * old: 16 * new for new, old in enumerate(order) if old is not None}
    places = Places(section, Code(bytes(16 * len(order)), moved), "file")
    table = LineTable(b"\0\0", 2, PTXAS, (LineSequence(0, 0, tuple(rows), 16 * count),))
    data, (at,) = write_lines([table])
    again, _ = moved_lines(data, {at: Base(0, places, 0)}, "file")
    (found,) = next(read_lines(again, "file")).sequences
    assert found.length == 16 * len(order)
    return list(found.rows)


def test_rows_go_with_their_instructions() -> None:
    """Lines 7 7 8 9; the one of line 8 goes to the front, a new one to the end of line 7."""
    rows = [Row(0, line=7), Row(32, line=8), Row(48, line=9)]
    assert relaid(rows, [2, 0, 1, None, 3]) == [Row(0, line=8), Row(16, line=7), Row(64, line=9)]


def test_a_new_instruction_at_the_front_has_the_line_of_the_first() -> None:
    assert relaid([Row(0, line=7), Row(16, line=8)], [None, 0, 1]) == [Row(0, line=7), Row(32, line=8)]


def test_a_call_comes_before_what_was_inlined_there() -> None:
    """Line 3 inlined at line 18: where it comes first now, the row of the call is put before it, and renumbered."""
    rows = [Row(0, line=17), Row(16, line=18), Row(16, line=3, call=2, function=9), Row(32, line=19)]
    assert relaid(rows, [1, 0, 2]) == [
        Row(0, line=18),
        Row(0, line=3, call=1, function=9),
        Row(16, line=17),
        Row(32, line=19),
    ]


def test_an_unknown_operation_is_refused_with_its_place() -> None:
    data, _ = write_lines([LineTable(b"\0\0", 2, PTXAS, (LineSequence(0, 0, (Row(0),), 16),))])
    with pytest.raises(ContainerError, match="lines: the extended line operation 0x7f at 0x"):
        list(read_lines(data[:-1] + b"\x7f", "lines"))


def test_an_address_without_a_relocation_is_refused() -> None:
    data, (at,) = write_lines([LineTable(b"\0\0", 2, PTXAS, (LineSequence(0, 0, (Row(0),), 16),))])
    with pytest.raises(ContainerError, match=f"belong together; only one of them is at {at:#x}"):
        moved_lines(data, {}, "lines")
