"""The instruction descriptions: complete, in order, and each row well formed."""

from __future__ import annotations

import pytest

from sassir.asm.parse import parse_instruction
from sassir.isa import DESCRIPTIONS, arithmetic, describe, flow, is_ordered, memory, reads_clock, tensor, texture, uniform
from sassir.isa.description import parse_table

TABLES = {group.__name__.rpartition(".")[2]: group.TABLE for group in (arithmetic, uniform, memory, texture, tensor, flow)}

# Every mnemonic that nvdisasm 13.5 prints for some word of sm_75, 80, 86, 89, 90, 100 or 120.
MNEMONICS = """
ACQBULK ACQSHMINIT AL2P ALD ARRIVES AST ATOM ATOMG ATOMS B2R BAR BGMMA BMMA BMOV BMSK BPT BRA BREAK BREV BRX BRXU BSSY BSYNC CALL
CCTL CCTLL CCTLT CGAERRBAR CLMAD CREDUX CS2R CS2UR CSMTEST DADD DEPBAR DFMA DMMA DMUL DSETP ELECT ENDCOLLECTIVE ERRBAR EXIT F2F F2FP
F2I F2IP FADD FADD2 FCHK FENCE FFMA FFMA2 FHADD FHFMA FLO FMNMX FMNMX3 FMUL FMUL2 FOOTPRINT FRND FSEL FSET FSETP FSWZADD GETLMEMBASE
HADD2 HFMA2 HGMMA HMMA HMNMX2 HMUL2 HSET2 HSETP2 I2F I2FP I2I I2IP IABS IADD IADD3 IDP IGMMA IMAD IMMA IMNMX IMUL IPA ISBERD ISBEWR
ISETP JMP JMX JMXU KILL LD LDC LDCU LDG LDGDEPBAR LDGMC LDGSTS LDL LDS LDSM LDTM LDTRAM LEA LEPC LOP3 MATCH MEMBAR MOV MOV64IUR MOVM
MUFU NANOSLEEP NOP OMMA OUT P2R PIXLD PLOP3 PMTRIG POPC PREEXIT PRMT QADD4 QFMA4 QGMMA QMMA QMUL4 QSPC R2P R2UR RED REDAS REDG REDUX
RET RPCMOV S2R S2UR SEL SETCTAID SETLMEMBASE SGXT SHF SHFL ST STAS STG STL STS STSM STTM SUATOM SULD SUQUERY SURED SUST SYNCS TEX TLD
TLD4 TMML TXD TXQ UBLKCP UBLKPF UBLKRED UBMSK UBREV UCGABAR_ARV UCGABAR_WAIT UCLEA UF2F UF2FP UF2I UF2IP UFADD UFFMA UFHADD UFHFMA
UFLO UFMNMX UFMUL UFRND UFSEL UFSET UFSETP UGETNEXTWORKID UI2F UI2FP UI2I UI2IP UIABS UIADD3 UIMAD UIMNMX UISETP ULDC ULEA ULEPC ULOP3
UMEMSETS UMOV UP2UR UPLOP3 UPOPC UPRMT UR2UP UREDGR USEL USETMAXREG USETSHMSZ USGXT USHF USTGR UTCATOMSWS UTCBAR UTCCP UTCHMMA UTCIMMA
UTCOMMA UTCQMMA UTCSHIFT UTMACCTL UTMACMDFLUSH UTMALDG UTMAPF UTMAREDG UTMASTG UVIADD UVIMNMX UVIRTCOUNT VABSDIFF VABSDIFF4 VHMNMX
VIADD VIADDMNMX VIMNMX VIMNMX3 VOTE VOTEU WARPGROUP WARPGROUPSET WARPSYNC YIELD
"""


def test_every_mnemonic_is_described():
    assert set(MNEMONICS.split()) == set(DESCRIPTIONS)


def test_an_unknown_mnemonic_has_no_description():
    assert describe("OPAQUE") is None
    assert describe("FROB") is None


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES.keys())
def test_rows_are_alphabetical_in_their_section(table: str):
    for section in table.split("\n\n"):
        names = [line.partition("|")[0].strip() for line in section.strip().splitlines() if not line.startswith("#")]
        assert names == sorted(names, key=lambda name: name.split("."))


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES.keys())
def test_columns_are_aligned(table: str):
    rows = [line.split("|", 4) for line in table.splitlines() if "|" in line]
    assert len({tuple(map(len, row[:4])) for row in rows}) == 1


def test_modifiers_choose_the_row():
    assert describe("IMAD", ("WIDE", "U32")).name == "IMAD.WIDE"  # type: ignore[union-attr]
    assert describe("IMAD", ("MOV", "U32")).name == "IMAD"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ("FADD | 1 | | |", "does not say what"),
        ("FADD | 1 | d = a + b", "not enough values"),
        ("FADD | wiide | | | d = a + b", "wiide"),
        ("FADD | 1 | | moon:r | d = a + b", "moon"),
        ("FADD | 1 | | warped | d = a + b", "warped"),
    ],
)
def test_a_malformed_row_is_refused_by_line(row: str, complaint: str):
    with pytest.raises(ValueError, match=complaint) as error:
        parse_table(row)
    assert row in str(error.value)


@pytest.mark.parametrize(
    ("mnemonic", "loads", "stores", "control"),
    [
        ("LDG", "global", "", None),
        ("ST", "", "global local shared", None),
        ("ATOMS", "shared", "shared", None),
        ("LDGSTS", "global", "shared", None),
        ("FFMA", "", "", None),
        ("EXIT", "", "", "exit"),
        ("BRX", "", "", "indirect"),
    ],
)
def test_memory_and_control(mnemonic: str, loads: str, stores: str, control: str | None):
    row = describe(mnemonic)
    assert row is not None
    assert (row.loads, row.stores, row.control) == (frozenset(loads.split()), frozenset(stores.split()), control)


@pytest.mark.parametrize("mnemonic", ["BAR", "BSYNC", "ELECT", "HMMA", "LDSM", "MATCH", "REDUX", "SHFL", "VOTE", "VOTEU", "WARPSYNC"])
def test_warp_instructions_work_together(mnemonic: str):
    assert describe(mnemonic).warp  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("text", "ordered"),
    [
        ("LDG.E R0, desc[UR4][R2.64]", False),
        ("LDG.E.STRONG.GPU R0, desc[UR4][R2.64]", True),
        ("LDG.E.CONSTANT R0, desc[UR4][R2.64]", False),
        ("MEMBAR.SC.GPU", True),
        ("FROB R0", True),
    ],
)
def test_memory_order(text: str, ordered: bool):
    assert is_ordered(parse_instruction(text)) is ordered


@pytest.mark.parametrize(
    ("text", "clock"),
    [
        ("CS2R R2, SR_CLOCKLO", True),
        ("CS2R R2, SRZ", False),
        ("S2R R0, SR_TID.X", False),
        ("S2R R0, SR_GLOBALTIMERLO", True),
        ("FADD R0, R1, R2", False),
        ("FROB R0", True),
    ],
)
def test_clocks(text: str, clock: bool):
    assert reads_clock(parse_instruction(text)) is clock
