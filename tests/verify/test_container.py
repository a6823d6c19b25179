"""The container checker: nothing in what NVIDIA's tools write, and each kind of damage is found by the rule that is about it."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from sassir.asm.parse import parse_instruction
from sassir.cubin.attribute_kinds import COOP_GROUP_MASK_REGIDS
from sassir.cubin.cubin import Cubin
from sassir.cubin.elf import PROGRAM_HEADER, SECTION_HEADER, SYMBOL, Section
from sassir.cubin.frames import read_frames
from sassir.cubin.nvinfo import Attribute, read_attributes, write_attributes
from sassir.encoders import table
from sassir.verify.container import check_container

CUBINS = sorted((Path(__file__).parents[1] / "cubins").glob("*.cubin"))
OFFSET, SIZE, LINK, INFO, ALIGNMENT = 24, 32, 40, 44, 48
"""Places in a section header."""
PARAM_CBANK = 0x0A


@pytest.mark.parametrize("path", CUBINS, ids=lambda path: path.name)
def test_nothing_in_files_of_nvidia(path: Path) -> None:
    assert check_container(path.read_bytes(), path.name) == []


class Patient:
    """A cubin that is about to be damaged."""

    def __init__(self, name: str) -> None:
        self.cubin = Cubin.read(next(path for path in CUBINS if path.name == f"{name}.cubin").read_bytes(), name)
        self.elf = self.cubin.elf
        self.data = bytearray(self.cubin.data)

    def section(self, name: str) -> Section:
        return self.elf.named(name)[0]

    def header(self, name: str, field: int, value: int) -> None:
        """Overwrite a field of a section header."""
        wide = field in (OFFSET, SIZE, ALIGNMENT)
        at = self.elf.section_table + SECTION_HEADER.size * self.section(name).index + field
        struct.pack_into("<Q" if wide else "<I", self.data, at, value)

    def symbol(self, name: str, **fields: int) -> None:
        """Overwrite `section`, `value` or `size` of a symbol."""
        symbol = next(s for s in self.cubin.symbols if s.name == name)
        at = self.section(".symtab").offset + SYMBOL.size * symbol.index
        for field, value in fields.items():
            place, code = {"section": (6, "<H"), "value": (8, "<Q"), "size": (16, "<Q")}[field]
            struct.pack_into(code, self.data, at + place, value)

    def word(self, section: str, at: int, value: int, code: str = "<I") -> None:
        """Overwrite a number in the content of a section."""
        struct.pack_into(code, self.data, self.section(section).offset + at, value)

    def segment(self, section: str, **fields: int) -> None:
        """Overwrite fields of the program header that begins with a section."""
        at = self.section(section).offset
        for i, segment in enumerate(self.elf.segments):
            if segment.offset == at:
                place = self.elf.segment_table + PROGRAM_HEADER.size * i
                PROGRAM_HEADER.pack_into(self.data, place, *segment._replace(**fields))

    def attribute(self, section: str, name: str, words: dict[int, int]) -> None:
        """Overwrite numbers of the first attribute of that name."""
        self.rewrite(section, name, lambda a: a.with_words(tuple([words.get(i, word) for i, word in enumerate(a.words)])))

    def rewrite(self, section: str, name: str, change: Callable[[Attribute], Attribute]) -> None:
        """Change the first attribute of that name, without changing its length."""
        info = self.section(section)
        attributes = list(read_attributes(self.elf.content(info)))
        at = next(i for i, a in enumerate(attributes) if a.name == name)
        attributes[at] = change(attributes[at])
        written = write_attributes(tuple(attributes))
        assert len(written) == info.size
        self.data[info.offset : info.end] = written

    def instruction(self, section: str, offset: int, text: str) -> None:
        """Overwrite an instruction."""
        at = self.section(section).offset + offset
        self.data[at : at + 16] = table(self.cubin.arch).encode(parse_instruction(f"[B------:R-:W-:Y:S05] {text}")).to_bytes(16, "little")

    def rules(self) -> set[str]:
        return {finding.rule for finding in check_container(bytes(self.data), "damaged")}


def frame(patient: Patient) -> int:
    """Where the first frame is."""
    return next(read_frames(patient.elf.content(patient.section(".debug_frame")), "")).at


def inline_into_itself(patient: Patient) -> None:
    """The first row of inlined code names a later row as its call."""
    lines = patient.elf.content(patient.section(".debug_line"))
    at = lines.index(bytes((0, 3, 0x90)))
    patient.word(".debug_line", at + 3, 60, "<B")


Inflict = Callable[[Patient], object]
DAMAGE: dict[str, tuple[str, str, Inflict]] = {}
"""By what it is: the rule that finds it, the file, and how it is done."""


def damage(what: str, rule: str, name: str, inflict: Inflict) -> None:
    """One row of the table."""
    DAMAGE[what] = rule, name, inflict


TEXT, INFO_OF, BANK, LINES = ".text.axpy", ".nv.info.axpy", ".nv.constant0.axpy", ".debug_line"
EXITS, TARGETS = "EXIT_INSTR_OFFSETS", "INDIRECT_BRANCH_TARGETS"

damage("a truncated file", "unreadable", "axpy.sm_90", lambda p: p.data.__delitem__(slice(0x200, None)))
damage("no ELF", "unreadable", "axpy.sm_90", lambda p: p.data.__setitem__(0, 0))
damage("a section over another", "section-overlap", "axpy.sm_90", lambda p: p.header(TEXT, OFFSET, p.section(".nv.info").offset))
damage("a section at an odd place", "section-alignment", "axpy.sm_90", lambda p: p.header(BANK, OFFSET, p.section(BANK).offset + 2))
damage("an alignment of three", "section-alignment", "axpy.sm_90", lambda p: p.header(TEXT, ALIGNMENT, 3))
damage("a link to nowhere", "section-link", "axpy.sm_90", lambda p: p.header(INFO_OF, LINK, 99))
damage("half an instruction", "code-size", "axpy.sm_90", lambda p: p.header(TEXT, SIZE, p.section(TEXT).size - 8))
damage("code without padding", "code-padding", "axpy.sm_90", lambda p: p.header(TEXT, SIZE, p.section(TEXT).size - 16))
damage("a segment beyond the file", "segment-bounds", "axpy.sm_90", lambda p: p.segment(TEXT, file_size=1 << 20, memory_size=1 << 20))
damage("a segment that ends in code", "segment-bounds", "axpy.sm_90", lambda p: p.segment(TEXT, file_size=32))
damage("code that is not loaded", "segment-missing", "axpy.sm_90", lambda p: p.segment(TEXT, type=0))
damage("a symbol in no section", "symbol-section", "axpy.sm_90", lambda p: p.symbol(BANK, section=500))
damage("a function beyond its section", "symbol-outside-section", "calls.sm_90", lambda p: p.symbol("$first$_Z6smoothfi", size=0x5000))
damage("an array beyond its memory", "symbol-outside-section", "unplaced.sm_90", lambda p: p.symbol("$___ZZ8unplacedE3row__25", size=0x201))
damage("a function between instructions", "symbol-boundary", "calls.sm_90", lambda p: p.symbol("$first$_Z6smoothfi", value=0x118))
damage("a kernel that is too short", "symbol-size", "axpy.sm_90", lambda p: p.symbol("axpy", size=0x80))
damage("a relocation beyond the code", "relocation-place", "hop.sm_90", lambda p: p.word(".rela.text.hop", 0, 0x7000, "<Q"))
damage("a relocation in an instruction", "relocation-place", "hop.sm_90", lambda p: p.word(".rela.text.hop", 0, 0x18, "<Q"))
damage("a relocation of another operand", "relocation-kind", "hop.sm_90", lambda p: p.word(".rela.text.hop", 8, 0x42))
damage("a relocation of no known type", "relocation-kind", "hop.sm_90", lambda p: p.word(".rela.text.hop", 8, 0xEE))
damage("an address behind the code", "relocation-target", "hop.sm_90", lambda p: p.word(".rela.text.hop", 40, 0x9990, "<Q"))
damage("a call of no function", "callgraph-symbol", "calls.sm_90", lambda p: p.word(".nv.callgraph", 0, 77))
damage("registers of no function", "attribute-symbol", "axpy.sm_90", lambda p: p.attribute(".nv.info", "REGCOUNT", {0: 1}))
damage("an exit that is none", "attribute-instruction", "axpy.sm_90", lambda p: p.attribute(INFO_OF, EXITS, {0: 0}))
damage("an exit between instructions", "attribute-offset", "axpy.sm_90", lambda p: p.attribute(INFO_OF, EXITS, {0: 8}))
damage("an exit behind the code", "attribute-offset", "axpy.sm_90", lambda p: p.attribute(INFO_OF, EXITS, {0: 1 << 16}))
damage("an exit that is not listed", "exit-not-listed", "axpy.sm_90", lambda p: p.instruction(TEXT, 0x10, "EXIT"))
damage(
    "a shuffle that is none", "attribute-instruction", "calls.sm_90",
    lambda p: p.attribute(".nv.info.second", "COOP_GROUP_INSTR_OFFSETS", {0: 0x10}),
)  # fmt: skip
damage(
    "a mask too many", "mask-count", "calls.sm_90",
    lambda p: p.rewrite(".nv.info.second", "CUDA_API_VERSION", lambda a: a._replace(id=COOP_GROUP_MASK_REGIDS)),
)  # fmt: skip
damage(
    "an mbarrier at another address", "mbarrier-register", "isa_tensor.sm_120a",
    lambda p: p.attribute(".nv.info.copies", "MBARRIER_INSTR_OFFSETS", {1: 5}),
)  # fmt: skip
damage(
    "an attribute of the wrong length", "attribute-form", "axpy.sm_90",
    lambda p: p.rewrite(INFO_OF, "KPARAM_INFO", lambda a: a._replace(id=PARAM_CBANK)),
)  # fmt: skip
damage("a branch target behind the code", "branch-target", "jump.sm_90", lambda p: p.attribute(".nv.info.jump", TARGETS, {3: 1 << 16}))
damage("a jump into nowhere", "jump-table", "jump.sm_90", lambda p: p.word(".nv.constant2.jump", 4, 0x18))
damage("a parameter over another", "parameter-overlap", "axpy.sm_90", lambda p: p.attribute(INFO_OF, "KPARAM_INFO", {1: 3}))
damage("a parameter area that is too large", "parameter-size", "axpy.sm_90", lambda p: p.header(BANK, SIZE, 0x20))
damage("parameters of another symbol", "parameter-bank", "axpy.sm_90", lambda p: p.attribute(INFO_OF, "PARAM_CBANK", {0: 1}))
damage("too few registers", "register-count", "axpy.sm_90", lambda p: p.instruction(TEXT, 0x10, "MOV R200, R0"))
damage(
    "two register counts", "register-count", "calls.cuda11.sm_75",
    lambda p: p.header(".text.first", INFO, p.section(".text.first").info + (1 << 24)),
)  # fmt: skip
damage("too few barriers", "barrier-count", "axpy.sm_90", lambda p: p.instruction(TEXT, 0x10, "BAR.SYNC.DEFER_BLOCKING 0x5"))
damage("too small a frame", "stack-size", "print.sm_90", lambda p: p.attribute(".nv.info", "FRAME_SIZE", {1: 0}))
damage("less stack than a frame", "stack-size", "print.sm_90", lambda p: p.attribute(".nv.info", "MIN_STACK_SIZE", {1: 4}))
damage("a branch out of the code", "control-flow", "loop.sm_90", lambda p: p.instruction(".text.loop", 0x10, "@P0 BRA .+0x9000"))
damage("a return address left behind", "control-flow", "calls.sm_90", lambda p: p.instruction(".text.second", 0x100, "MOV R4, 0x110"))
damage("a constant behind the bank", "constant-outside-bank", "axpy.sm_75", lambda p: p.header(BANK, SIZE, 0x160))
damage("another count for other SMs", "other-form", "axpy.sm_100", lambda p: p.attribute(".nv.merc.nv.info", "REGCOUNT", {1: 40}))
damage("a frame longer than its code", "frame-range", "axpy.sm_90", lambda p: p.word(".debug_frame", frame(p) + 8, 0x9000, "<Q"))
damage("lines without an end", "debug-form", "print.sm_90", lambda p: p.word(".debug_line", p.section(".debug_line").size - 1, 2, "<B"))
damage(
    "a line behind the code", "line-range", "print.sm_90", lambda p: p.word(".debug_line", p.section(".debug_line").size - 5, 0x7F, "<B")
)
damage("lines of no code", "line-range", "print.sm_90", lambda p: p.word(".rela.debug_line", 0, 0, "<Q"))
damage("a call inside of itself", "line-call", "inlined.sm_90", inline_into_itself)


@pytest.mark.parametrize("what", DAMAGE)
def test_damage_is_found_by_its_rule(what: str) -> None:
    rule, name, inflict = DAMAGE[what]
    patient = Patient(name)
    inflict(patient)
    assert rule in patient.rules()


@pytest.mark.parametrize("name", ["axpy.sm_100", "jump.sm_90", "inlined.sm_75", "hop.sm_120"])
def test_no_damage_raises(name: str) -> None:
    """Bytes of headers, tables and attributes set to anything: a finding or none, never an exception."""
    rng, sound = Random(name), Patient(name)
    code = {i for s in sound.cubin.code for i in range(sound.elf.sections[s.index].offset, sound.elf.sections[s.index].end)}
    places = [i for i in range(len(sound.data)) if i not in code]
    found = 0
    for _ in range(60):
        damaged = bytearray(sound.data)
        for at in rng.sample(places, 3):
            damaged[at] = rng.randrange(256)
        found += bool(check_container(bytes(damaged), name))
    assert found > 20
