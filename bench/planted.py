"""Faults planted into the kernel `poly_strict` with sassir's own assembler: what a measurement has to find and to name.

Its hot loop, `.L0`, is 71 instructions that depend on each other, and computes four Newton steps. Its last instructions store R6:

    [B------:R-:W-:Y:S04] /*0740*/ LEA R2, P0, R0, UR6, 0x2 ;
    [B------:R-:W-:Y:S05] /*0750*/ LEA.HI.X R3, R0, UR7, R3, 0x2, P0 ;
    [B-----5:R-:W-:-:S01] /*0760*/ STG.E desc[UR4][R2.64], R6 ;
    [B------:R-:W-:-:S05] /*0770*/ EXIT ;
"""

from __future__ import annotations

from pathlib import Path

from sassir.asm.assemble import assemble
from sassir.asm.listing import read_listing
from sassir.asm.print import print_listing
from sassir.encoders import table
from sassir.translate.cubin import read_program, write_cubin

BENCH = Path(__file__).parent
KERNEL = "poly_strict"
ORIGINAL = BENCH / "cubins" / f"{KERNEL}.sm_90.cubin"
OTHER_ARCHITECTURE = BENCH / "cubins" / f"{KERNEL}.sm_80.cubin"
LAUNCHES = BENCH / "launch" / f"{KERNEL}.toml"

LOOP_INSTRUCTIONS = 71
_IN_LOOP = "/*0290*/ FADD R7, -R7, R6 ;\n"
_DEPENDENT = "[B------:R-:W-:Y:S04] FADD R7, R7, -RZ ;\n"

REPLACEMENTS = {
    "wrong result": ("/*0220*/ FADD R7, R7, 0.5 ;", "FADD R7, R7, 0.75 ;"),
    "illegal address": ("/*0750*/ LEA.HI.X R3, R0, UR7, R3, 0x2, P0 ;", "MOV R3, RZ ;"),
    "misaligned access": ("/*0740*/ LEA R2, P0, R0, UR6, 0x2 ;", "LEA R2, P0, R0, UR6, 0x1 ;"),
    "endless loop": ("[B------:R-:W-:-:S05] /*0770*/ EXIT ;", ".L:\n[B------:R-:W-:-:S05] BRA `(.L) ;"),
}
"""Fault to the line that makes it."""


def slowed_down(instructions: int) -> bytes:
    """The kernel with so many more instructions in its hot loop, each waiting for the one before it. R7 keeps its value: x + -0 is x."""
    return _edited(_IN_LOOP, _IN_LOOP + instructions * _DEPENDENT)


def faulty(fault: str) -> bytes:
    """The kernel with one of REPLACEMENTS."""
    return _edited(*REPLACEMENTS[fault])


def _edited(old: str, new: str) -> bytes:
    """The cubin whose listing has `new` in place of the only `old`. Raises ValueError for another listing."""
    text = print_listing(read_program(ORIGINAL.read_bytes(), str(ORIGINAL)))
    if text.count(old) != 1:
        raise ValueError(f"{ORIGINAL}: expected one line {old!r}, found {text.count(old)}")
    listing = read_listing(text.replace(old, new), f"{KERNEL}.sass")
    return write_cubin(assemble(listing, table(listing.arch)))
