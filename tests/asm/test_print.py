"""sassir's own listing, as a person meets it."""

from __future__ import annotations

import pytest

from sassir.asm import Control, Function, Line, Program
from sassir.asm.parse import parse_instruction
from sassir.asm.print import describe_control, print_listing

LISTING = """\
.arch sm_90

.function saxpy section=12
saxpy:
[B------:R-:W0:-:S01] /*0000*/ S2R R0, SR_TID.X ;
.L0:
[B0-----:R-:W-:Y:S04] @!P0 FFMA R1, R2, R3, R4 ;
[B------:R-:W-:-:S05] /*0010*/ @P0 BRA `(.L0) ;
[B------:R-:W-:-:S05] /*0020*/ CALL.REL.NOINC `($saxpy$f) ;
[B------:R-:W-:-:S05] /*0030*/ BRA .+0x1000 ;
$saxpy$f:
[B------:R-:W-:-:S05] /*0040*/ RET.REL.NODEC R20, `(saxpy) ;
"""


def test_listing() -> None:
    lines = [
        ("[B------:R-:W0:-:S01] S2R R0, SR_TID.X", 0),
        ("[B0-----:R-:W-:Y:S04] @!P0 FFMA R1, R2, R3, R4", None),
        ("[B------:R-:W-:-:S05] @P0 BRA .-0x10", 0x10),
        ("[B------:R-:W-:-:S05] CALL.REL.NOINC .+0x20", 0x20),
        ("[B------:R-:W-:-:S05] BRA .+0x1000", 0x30),
        ("[B------:R-:W-:-:S05] RET.REL.NODEC R20, .-0x50", 0x40),
    ]
    code = tuple(Line(parse_instruction(text), origin) for text, origin in lines)
    program = Program("sm_90", (Function("saxpy", 12, code, {"saxpy": 0, "$saxpy$f": 0x50}),), None)
    assert print_listing(program) == LISTING


def test_the_file_stands_at_the_end() -> None:
    *_, heading, packed = print_listing(Program("sm_90", (), b"\x7fELF")).splitlines()
    assert heading == ".container"
    assert packed.startswith("KLUv")  # the magic number of zstd, in base64


@pytest.mark.parametrize(
    ("control", "words"),
    [
        ("[B------:R-:W-:-:S01]", "stall 1"),
        ("[B-12---:R-:W0:Y:S04]", "stall 4, yield, sets SB0 on write, waits SB1 SB2"),
        ("[B------:R5:W-:Y:S00:T3]", "stall 0, yield, sets SB5 on read, batch 3"),
    ],
)
def test_control_codes_in_words(control: str, words: str) -> None:
    assert describe_control(Control.parse(control)) == words
