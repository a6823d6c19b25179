"""From listing to program: what is resolved, what decides, what is refused and with which remedy."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sassir.asm import Control, Function, Instruction, Line, Operand, Program
from sassir.asm.assemble import Table, assemble
from sassir.asm.listing import read_listing
from sassir.asm.parse import parse_instruction
from sassir.asm.print import print_listing
from sassir.errors import ListingError

CONTROL = "[B------:R-:W-:-:S04]"


def program(text: str, table: Table, arch: str | None = None) -> Program:
    return assemble(read_listing(text, "k.sass", arch), table)


def texts(function: Function) -> list[str]:
    return [line.instruction.text for line in function.lines]


def refused(text: str, table: Table, arch: str | None = None) -> str:
    with pytest.raises(ListingError) as caught:
        program(text, table, arch)
    return str(caught.value)


def own(*lines: str) -> str:
    return "\n".join([".arch sm_90", ".function k section=3", *lines])


class TestNvidia:
    """Listings of NVIDIA's tools, and CuAssembler's notation."""

    def test_labels_become_displacements(self, community: str, table: Table) -> None:
        (function,) = program(community, table).functions
        at = {16 * i: text for i, text in enumerate(texts(function))}
        assert at[0x40] == "BSSY B0, .+0x120"
        assert at[0x80] == "@P0 BRA .+0xd0"
        assert at[0x140] == "@!P0 BRA .-0x70"
        assert at[0x120] == "CALL.REL.NOINC .+0xa0"
        assert at[0x1F0] == "RET.REL.NODEC R2, .-0x1f0"
        assert at[0x200] == "BRA .+0x0"

    def test_labels_and_origins_are_kept(self, community: str, table: Table) -> None:
        (function,) = program(community, table).functions
        assert function.name == "loop"
        assert function.section is None
        assert function.labels["$loop$_Z4stepf"] == 0x1C0
        assert [line.origin for line in function.lines] == list(range(0, function.size, 16))

    def test_numeric_targets_are_offsets_in_the_section(self, table: Table) -> None:
        lines = ["NOP", "@P0 BRA 0x0", "CALL.REL.NOINC 0x30", "RET.REL.NODEC R2 0x0", "MOV R2, 0x30", "BRX R4 -0x40"]
        text = ".target sm_90\n" + "\n".join(f"{CONTROL} {line} ;" for line in lines[:5])
        assert texts(program(text, table).functions[0]) == [
            "NOP",
            "@P0 BRA .-0x10",
            "CALL.REL.NOINC .+0x10",
            "RET.REL.NODEC R2, .-0x30",
            "MOV R2, 0x30",
        ]

    def test_encodings_decide(self, printed: Callable[[str], str], community: str, table: Table) -> None:
        """Text that shows less than the word (+QNAN, no control code) is no contradiction."""
        self.learn(printed, community, table)
        (function,) = program(printed("nvdisasm13_hex.sm_90"), table).functions
        assert texts(function)[0x180 // 16] == "@P0 FMUL R0, R0, +QNAN(0x7fc12345)"
        assert function.lines[1].instruction.control == Control(1, write=0)

    def test_text_edited_beside_its_encoding(self, printed: Callable[[str], str], community: str, table: Table) -> None:
        self.learn(printed, community, table)
        text = printed("nvdisasm13_hex.sm_90").replace("FFMA R9, R8, R9, 1 ;", "FFMA R9, R8, R9, 2 ;")
        message = refused(text, table)
        assert "the text says FFMA R9, R8, R9, 2, but its encoding FFMA R9, R8, R9, 1; after an edit, take the encoding away" in message

    def test_spelling_that_has_no_encoding_is_no_edit(self, printed: Callable[[str], str], community: str, table: Table) -> None:
        self.learn(printed, community, table)
        text = printed("nvdisasm13_hex.sm_90").replace(" FFMA R9, R8, R9, 1 ;", " FFMAOLD R9, R8, R9, 1 ;")
        assert "FFMA R9, R8, R9, 1" in texts(program(text, table).functions[0])

    def learn(self, printed: Callable[[str], str], community: str, table: Table) -> None:
        """Let the table decode the words of loop.sm_90.cubin."""
        (function,) = program(community, table).functions
        (section,) = read_listing(printed("nvdisasm13_hex.sm_90")).sections
        for code, line in zip(section.code, function.lines, strict=True):
            table.instructions[code.word] = line.instruction  # type: ignore[attr-defined]

    def test_refuses_text_without_control_codes(self, printed: Callable[[str], str], table: Table) -> None:
        message = refused(printed("nvdisasm13.sm_90"), table)
        assert message.startswith("k.sass:15:36: no control code")
        assert "list the file with encodings (nvdisasm -c -hex), or as sassir prints it" in message

    @pytest.mark.parametrize("arch", ["sm_80", "sm_86", "sm_89"])
    @pytest.mark.parametrize("text", ["LDG.E R0, [R2.64]", "STG.E.64 [R2.64+0x8], R4"])
    def test_refuses_a_hidden_descriptor(self, arch: str, text: str, table: Table) -> None:
        message = refused(f".target {arch}\n{CONTROL} {text} ;", table)
        assert f"on {arch} NVIDIA's text does not show the descriptor register of {text[:3]}" in message

    def test_other_architectures_hide_none(self, table: Table) -> None:
        assert texts(program(f".target sm_75\n{CONTROL} LDG.E.SYS R0, [R2] ;", table).functions[0]) == ["LDG.E.SYS R0, [R2]"]

    @pytest.mark.parametrize(
        ("line", "message"),
        [
            ("FMUL R0, R0, +QNAN", "+QNAN does not say which of the NaNs it is; write its bits, for example +QNAN(0x7fffffff)"),
            ("UMOV UR5, 32@hi(gv)", "32@hi(gv) is filled in by the linker; list the file with encodings"),
            ("ULDC UR4, c[`((ec + 0x4))]", "c[`((ec + 0x4))] is filled in by the linker"),
            ("CALL.REL.NOINC `(f$1)", "no label f$1 in this section; define it, or write the displacement"),
            ("FFMMA R1, R2, R3, R4", "no instruction FFMMA; did you mean FFMA?"),
        ],
    )
    def test_refuses_what_text_does_not_determine(self, line: str, message: str, table: Table) -> None:
        found = refused(f".target sm_90\n{CONTROL} NOP ;\n{CONTROL} {line} ;", table)
        assert found.startswith(f"k.sass:3:23: {message}")
        assert found.splitlines()[1:] == [f"    {CONTROL} {line} ;", " " * 26 + "^"]

    def test_refuses_a_gap(self, community: str, table: Table) -> None:
        lines = community.splitlines()
        at = next(i for i, line in enumerate(lines) if "/*0100*/" in line)
        message = refused("\n".join(lines[:at] + lines[at + 1 :]), table)
        assert f"k.sass:{at + 1}:" in message
        assert "address 0x110, expected 0x100: the listing of loop has a gap" in message

    def test_refuses_a_line_without_address_among_others(self, table: Table) -> None:
        message = refused(f".target sm_90\n{CONTROL} /*0000*/ NOP ;\n{CONTROL} NOP ;", table)
        assert "no address, expected 0x10" in message
        assert "to add or take away code, edit the listing that sassir prints" in message

    def test_refuses_a_label_that_is_there_twice(self, table: Table) -> None:
        assert "label .L_1 is already in this section" in refused(f".target sm_90\n.L_1:\n{CONTROL} NOP ;\n.L_1:\n{CONTROL} NOP ;", table)


class TestEdits:
    """Edits of sassir's own listing."""

    LOOP = own(
        f"{CONTROL} /*0000*/ MOV R0, RZ ;",
        ".L0:",
        f"{CONTROL} /*0010*/ IADD3 R0, R0, 0x1, RZ ;",
        f"{CONTROL} /*0020*/ ISETP.GE.AND P0, PT, R0, R1, PT ;",
        f"{CONTROL} /*0030*/ @!P0 BRA `(.L0) ;",
        f"{CONTROL} /*0040*/ BRA `(.L1) ;",
        ".L1:",
        f"{CONTROL} /*0050*/ EXIT ;",
    )

    def test_unchanged(self, table: Table) -> None:
        (function,) = program(self.LOOP, table).functions
        assert (function.name, function.section, function.labels) == ("k", 3, {})
        assert texts(function)[3:5] == ["@!P0 BRA .-0x20", "BRA .+0x10"]
        assert function.moved() == {i: i for i in range(0, 0x60, 16)}

    def test_another_immediate(self, table: Table) -> None:
        (function,) = program(self.LOOP.replace("0x1, RZ", "0x2, RZ"), table).functions
        assert texts(function)[1] == "IADD3 R0, R0, 0x2, RZ"

    def test_two_lines_swapped(self, table: Table) -> None:
        lines = self.LOOP.splitlines()
        lines[4], lines[5] = lines[5], lines[4]
        (function,) = program("\n".join(lines), table).functions
        assert texts(function)[1].startswith("ISETP")
        assert function.moved() == {0: 0, 0x10: 0x20, 0x20: 0x10, 0x30: 0x30, 0x40: 0x40, 0x50: 0x50}

    def test_a_line_added_inside_the_loop(self, table: Table) -> None:
        """Branches over it grow; a branch that jumps elsewhere does not."""
        lines = self.LOOP.splitlines()
        lines.insert(5, f"{CONTROL} FADD R2, R2, R3 ;")
        (function,) = program("\n".join(lines), table).functions
        assert texts(function)[2] == "FADD R2, R2, R3"
        assert texts(function)[4:6] == ["@!P0 BRA .-0x30", "BRA .+0x10"]
        assert function.lines[2].origin is None
        assert function.moved()[0x20] == 0x30

    def test_a_line_taken_away(self, table: Table) -> None:
        lines = [line for line in self.LOOP.splitlines() if "ISETP" not in line]
        (function,) = program("\n".join(lines), table).functions
        assert texts(function)[2] == "@!P0 BRA .-0x10"
        assert 0x20 not in function.moved()

    def test_a_mnemonic_misspelt(self, table: Table) -> None:
        message = refused(self.LOOP.replace("ISETP.GE", "ISTEP.GE"), table)
        assert message.startswith("k.sass:6:32: no instruction ISTEP; did you mean ISETP?\n")
        assert message.endswith("^")

    def test_a_line_copied_with_its_offset(self, table: Table) -> None:
        lines = self.LOOP.splitlines()
        lines.insert(5, lines[4])
        assert "offset 0x10 is already in line 5; a new instruction has none" in refused("\n".join(lines), table)

    def test_an_added_line_needs_a_control_code(self, table: Table) -> None:
        lines = self.LOOP.splitlines()
        lines.insert(5, "FADD R2, R2, R3 ;")
        assert "no control code: text alone does not say when it may issue; write one" in refused("\n".join(lines), table)

    @pytest.mark.parametrize("edit", ["added", "taken away"])
    def test_code_that_returns_keeps_its_length(self, edit: str, table: Table) -> None:
        """`MOV R2, 0x20` is a return address, which nobody would correct."""
        lines = own(
            f"{CONTROL} /*0000*/ MOV R2, 0x20 ;",
            f"{CONTROL} /*0010*/ CALL.REL.NOINC `(f) ;",
            f"{CONTROL} /*0020*/ EXIT ;",
            "f:",
            f"{CONTROL} /*0030*/ FADD R4, R4, R4 ;",
            f"{CONTROL} /*0040*/ RET.REL.NODEC R2, `(k) ;",
        ).splitlines()
        lines.insert(2, "k:")
        assert program("\n".join(lines), table).functions[0].labels == {"k": 0, "f": 0x30}
        changed = [*lines[:4], f"{CONTROL} NOP ;", *lines[4:]] if edit == "added" else [line for line in lines if "FADD" not in line]
        message = refused("\n".join(changed), table)
        assert "the address that RET takes from a register is a number elsewhere; keep the number of lines of this section" in message


class TestInverse:
    """`assemble(read_listing(print_listing(program)))` is the program."""

    def test_of_a_program_with_everything(self, table: Table) -> None:
        def line(text: str, origin: int | None) -> Line:
            return Line(parse_instruction(f"[B0----5:R1:W2:Y:S00:T4] {text}"), origin)

        functions = (
            Function(
                "k",
                7,
                (line("@!P0 BRA .+0x20", 0), line("NOP {x=0x5}", None), line("BRA .-0x10", 16), line("BRA .+0x40", 32)),
                {"k": 0, "$k$f": 32, "end": 64},
            ),
            Function("k", 9, (line("FMUL R0, |R1|.reuse, +QNAN(0x7fc12345)", 0),), {}),
            Function("odd name: \"x\"", None, (line("BRA .+0x0", 0),), {"odd name: \"x\"": 0}),
            Function("", 11, (), {}),
        )
        original = Program("sm_90a", functions, bytes(range(256)) * 40)
        assert assemble(read_listing(print_listing(original)), table) == original

    def test_of_a_listing_of_nvidia(self, community: str, table: Table) -> None:
        original = program(community, table)
        assert assemble(read_listing(print_listing(original)), table) == original

    def test_container_can_be_given(self, table: Table) -> None:
        listing = read_listing(own(f"{CONTROL} NOP ;"))
        assert assemble(listing, table).container is None
        assert assemble(listing, table, b"cubin").container == b"cubin"


def test_instructions_from_text_have_no_word(table: Table) -> None:
    (line,) = program(own(f"{CONTROL} /*0000*/ FADD R1, R2.reuse, c[0x0][0x160] ;"), table).functions[0].lines
    operands = tuple(Operand.parse(t) for t in ("R1", "R2.reuse", "c[0x0][0x160]"))
    assert line == Line(Instruction("FADD", (), operands, None, Control(4)), 0)
