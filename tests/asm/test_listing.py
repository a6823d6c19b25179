"""What each tool prints, and what is refused before any line of it is assembled."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sassir.asm.listing import Code, Label, Listing, read_listing
from sassir.errors import ListingError

Printed = Callable[[str], str]


def labels(listing: Listing) -> list[str]:
    return [line.name for section in listing.sections for line in section.lines if isinstance(line, Label)]


def refused(text: str, arch: str | None = None) -> str:
    with pytest.raises(ListingError) as caught:
        read_listing(text, "k.sass", arch)
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "arch", "lines", "encoded", "labelled"),
    [
        ("nvdisasm13.sm_90", "sm_90", 48, False, True),
        ("nvdisasm13_hex.sm_90", "sm_90", 48, True, True),
        ("cuobjdump13.sm_90", "sm_90", 48, True, False),
        ("nvdisasm13.sm_80", "sm_80", 40, False, True),
        ("nvdisasm12_hex.sm_80", "sm_80", 40, True, True),
        ("cuobjdump12.sm_80", "sm_80", 40, True, False),
    ],
)
def test_tools_of_nvidia(printed: Printed, name: str, arch: str, lines: int, encoded: bool, labelled: bool) -> None:
    listing = read_listing(printed(name), name)
    assert (listing.arch, [s.name for s in listing.sections], listing.container) == (arch, ["loop"], None)
    code = listing.sections[0].code
    assert [c.address for c in code] == list(range(0, 16 * lines, 16))
    assert all((c.word is not None) == encoded for c in code)
    assert (labels(listing) != []) == labelled
    assert all(c.statement.control is None for c in code)


def test_a_line(printed: Printed) -> None:
    listing = read_listing(printed("nvdisasm13_hex.sm_90"))
    code = listing.sections[0].code[0x180 // 16]
    assert (code.statement.mnemonic, code.address, code.word) == ("FMUL", 0x180, 0x0000000000400000_7FC1234500000820 | code.word)  # type: ignore[operator]
    assert printed("nvdisasm13_hex.sm_90").splitlines()[code.statement.line - 1][code.statement.column - 1 :].startswith("FMUL")


def test_labels_stand_before_their_line(printed: Printed) -> None:
    lines = read_listing(printed("nvdisasm13.sm_90")).sections[0].lines
    at = [line.name if isinstance(line, Label) else line.address for line in lines]
    assert at[at.index(".L_x_2") + 1] == 0xD0
    assert at[at.index("$loop$_Z4stepf") + 1] == 0x1C0
    assert at[-1] == ".L_x_5"


def test_older_labels() -> None:
    text = ".target sm_75\n.section .text.k,\"ax\",@progbits\n.L_12:\n  /*0000*/ BRA `(.L_12);\n"
    assert labels(read_listing(text)) == [".L_12"]


def test_whole_dumps_have_data_sections() -> None:
    text = """
	.target	sm_90
//--------------------- .debug_frame --------------------------
	.section	.debug_frame,"",@progbits
.debug_frame:
        /*0000*/ 	.byte	0xff, 0xff, 0xff, 0xff, 0x24
        /*0044*/ 	.dword	k
	.section	.text.k,"ax",@progbits
	.sectionflags	@"SHF_BARRIERS=1"
k:
.text.k:
	//## File "/src/k.cu", line 18
        /*0000*/                   EXIT ;       // |  1  ^          |        |             |
	.section	.nv.info,"",@"SHT_CUDA_INFO"
.nv.info:
        /*0000*/ 	.byte	0x04, 0x2f
"""
    (section,) = read_listing(text).sections
    assert (section.name, len(section.code), labels(read_listing(text))) == ("k", 1, ["k"])


def test_life_ranges_beside_encodings() -> None:
    text = """
        .target sm_90
        .section .text.k,"ax",@progbits
        /*0000*/     LDC R1, c[0x0][0x28] ;    /* 0x00000a00ff017b82 */    // |                |
                                               /* 0x000fe20000000800 */    // |  1  ^          |
"""
    assert read_listing(text).sections[0].code[0].word == 0x000FE20000000800_00000A00FF017B82


FATBIN = """
Fatbin elf code:
================
arch = sm_75
code version = [1,8]
host = linux
compile_size = 64bit
compressed

	code for sm_75
	.target	sm_75
		Function : a
	.headerflags	@"EF_CUDA_SM75 EF_CUDA_VIRTUAL_SM(EF_CUDA_SM75)"
        /*0000*/                   EXIT ;       /* 0x000000000000794d */
                                                /* 0x000fea0003800000 */
		..........

Fatbin elf code:
================
arch = sm_90

	code for sm_90
		Function : a
        /*0000*/                   NOP ;       /* 0x0000000000007918 */
                                               /* 0x000fc00000000000 */
		Function : b
        /*0000*/                   EXIT ;       /* 0x000000000000794d */
                                                /* 0x000fea0003800000 */
"""


def test_one_of_several_architectures() -> None:
    assert [s.name for s in read_listing(FATBIN, arch="sm_90").sections] == ["a", "b"]
    assert [s.name for s in read_listing(FATBIN, arch="sm_75").sections] == ["a"]
    assert refused(FATBIN) == "k.sass: code for several architectures; choose one of sm_75, sm_90 with --arch"
    assert refused(FATBIN, "sm_80") == "k.sass: no code for sm_80 in it; it has sm_75, sm_90"


@pytest.mark.parametrize(
    ("flags", "arch"),
    [
        ("EF_CUDA_TEXMODE_UNIFIED EF_CUDA_64BIT_ADDRESS EF_CUDA_SM80 EF_CUDA_VIRTUAL_SM(EF_CUDA_SM52)", "sm_80"),
        ("EF_CUDA_64BIT_ADDRESS EF_CUDA_ACCELERATORS EF_CUDA_SM90 EF_CUDA_VIRTUAL_SM(EF_CUDA_SM90)", "sm_90a"),
    ],
)
def test_architecture_from_header_flags(flags: str, arch: str) -> None:
    assert read_listing(f'\t.headerflags\t@"{flags}"\n\t.section\t.text.k,"ax",@progbits\n /*0000*/ EXIT ;').arch == arch


def test_community_notation(community: str) -> None:
    code = read_listing(community).sections[0].code
    assert str(code[1].statement.control) == "[B------:R-:W0:-:S01]"
    assert all(isinstance(c, Code) and c.word is None and c.statement.control for c in code)


def test_a_bare_snippet_takes_the_architecture_it_is_given() -> None:
    text = "[B------:R-:W0:-:S01]  /*0000*/  S2R R0, SR_TID.X ;\n[B------:R-:W-:-:S05]  /*0010*/  EXIT ;"
    assert len(read_listing(text, arch="sm_80").sections[0].code) == 2
    assert "does not say its architecture; put a line such as `.target sm_90` first, or give --arch" in refused(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "k.sass: no instructions in it"),
        (".target sm_90\n.section .text.k,\"ax\"\n", "k.sass: no instructions in it"),
        ("code for sm_60\n  Function : k\n  /* 0x001fbc00fde007f6 */", "k.sass:1:1: sm_60 has another instruction format"),
        (".target sm_90\n /*0000*/ NOP ;\n /*0010*/ FFMA R1, R2 R3 ;", "k.sass:3:23: found 'R3', expected ';' or ','"),
        (".target sm_90\n /*0000*/ NOP\n /*0010*/ EXIT ;", "k.sass:3:2: found '/*0010*/', expected ';' or an operand"),
        (".target sm_90\n /*0000*/ NOP ; /* 0x0000000000007918 */\n /*0010*/ NOP ;", "k.sass:3:2: found '/*0010*/', expected an encoding"),
        (".arch sm_90\n[B------:R-:W-:-:S01] NOP ;", "k.sass:2:1: found '[B------:R-:W-:-:S01]', expected .function"),
        (".arch sm_90\n.function k\n NOP ;\n.container\nAAAA\n", "k.sass:4:1: the file behind .container is damaged"),
    ],
)
def test_refuses(text: str, message: str) -> None:
    assert refused(text).startswith(message)


def test_own_listing_is_for_one_architecture() -> None:
    text = ".arch sm_90\n.function k\nNOP ;"
    assert read_listing(text, arch="sm_90").own
    assert refused(text, "sm_80") == "k.sass: no code for sm_80 in it; it has sm_90"
