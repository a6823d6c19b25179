"""Attributes of a kernel after its code changed: lists lose what went, and get what has to be in them."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from sassir.asm.instruction import Instruction
from sassir.asm.parse import parse_instruction
from sassir.cubin.code import Code, CodeSection
from sassir.cubin.cubin import Cubin
from sassir.cubin.nvinfo import Attribute, Format, decode, write_attributes
from sassir.encoders import table
from sassir.errors import ContainerError

CUBINS = Path(__file__).parent.parent / "cubins"


def read(name: str) -> Cubin:
    """A committed cubin."""
    return Cubin.read((CUBINS / f"{name}.cubin").read_bytes(), name)


def attribute(section: CodeSection, name: str) -> Attribute:
    """The one attribute of that name."""
    return next(a for a in section.attributes if a.name == name)


def word(arch: str, text: str) -> bytes:
    """An instruction as bytes."""
    return table(arch).encode(parse_instruction(text)).to_bytes(16, "little")


def test_an_instruction_that_went_takes_its_attributes_along() -> None:
    cubin = read("calls.sm_90")
    second = cubin.code[0]
    assert decode(attribute(second, "COOP_GROUP_INSTR_OFFSETS")) == (0xF0,)
    kept = [offset for offset in range(0, len(second.data), 16) if offset != 0xF0]
    code = Code(b"".join([second.data[o : o + 16] for o in kept]), {old: 16 * i for i, old in enumerate(kept)})
    after = Cubin.read(cubin.rebuild({second.index: code})).code[0]
    names = {a.name for a in after.attributes}
    assert not names & {"COOP_GROUP_INSTR_OFFSETS", "COOP_GROUP_MASK_REGIDS"}
    assert decode(attribute(after, "EXIT_INSTR_OFFSETS")) == (0x140,)
    assert [(f.offset, f.size) for f in after.functions] == [(0, 0x5F0), (0x150, 0x4A0)]


def decoded(cubin: Cubin, data: bytes) -> list[Instruction]:
    """The instructions of new code."""
    decode = table(cubin.arch).decode
    return [decode(high << 64 | low) for low, high in struct.iter_unpack("<QQ", data)]


def test_a_new_exit_and_a_new_vote_are_listed() -> None:
    cubin = read("calls.sm_90")
    second = cubin.code[0]
    new = word("sm_90", "[B------:R-:W-:-:S05] EXIT") + word("sm_90", "[B------:R-:W-:-:S05] VOTE.ANY R0, PT, PT")
    data = second.data[:0x20] + new + second.data[0x20:]
    moved = {o: o if o < 0x20 else o + 0x20 for o in range(0, len(second.data), 16)}
    after = Cubin.read(cubin.rebuild({second.index: Code(data, moved, moved, decoded(cubin, data))})).code[0]
    assert decode(attribute(after, "EXIT_INSTR_OFFSETS")) == (0x20, 0x170)
    assert decode(attribute(after, "INT_WARP_WIDE_INSTR_OFFSETS")) == (0x30,)
    assert decode(attribute(after, "COOP_GROUP_INSTR_OFFSETS")) == (0x110,)


def test_what_became_another_kind_of_instruction_is_listed_no_more() -> None:
    cubin = read("calls.sm_90")
    second = cubin.code[0]
    same = {o: o for o in range(0, len(second.data), 16)}
    data = second.data[:0xF0] + word("sm_90", "[B------:R-:W-:-:S05] MOV R0, R0") + second.data[0x100:]
    after = Cubin.read(cubin.rebuild({second.index: Code(data, same, same, decoded(cubin, data))})).code[0]
    assert not {"COOP_GROUP_INSTR_OFFSETS", "COOP_GROUP_MASK_REGIDS"} & {a.name for a in after.attributes}


def test_a_mask_in_a_register_is_forgotten_on_other_registers() -> None:
    cubin = read("calls.sm_90")
    masks = attribute(cubin.code[0], "COOP_GROUP_MASK_REGIDS")
    info = next(s for s in cubin.elf.sections if s.name == ".nv.info.second")
    in_register = write_attributes(tuple([a.with_words((0x05000007,)) if a == masks else a for a in cubin.code[0].attributes]))
    odd = Cubin.read(cubin.data[: info.offset] + in_register + cubin.data[info.end :])
    second = odd.code[0]
    same = {o: o for o in range(0, len(second.data), 16)}
    for renamed in (False, True):
        after = Cubin.read(odd.rebuild({second.index: Code(second.data, same, renamed=renamed)})).code[0]
        assert ("COOP_GROUP_MASK_REGIDS" in {a.name for a in after.attributes}) is not renamed
        assert decode(attribute(after, "COOP_GROUP_INSTR_OFFSETS")) == (0xF0,)


def test_an_mbarrier_is_listed_with_the_registers_of_its_address() -> None:
    cubin = read("isa_tensor.sm_120a")
    section = next(s for s in cubin.code if s.kernel == "copies")
    old = attribute(section, "MBARRIER_INSTR_OFFSETS").words
    at = next(old[i] for i in range(0, len(old), 4) if old[i + 1] == 3)
    other = word("sm_120a", "[B------:R-:W0:-:S05] SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R9+UR8], R0")
    data = section.data[:at] + other + section.data[at + 16 :]
    same = {o: o for o in range(0, len(data), 16)}
    after = Cubin.read(cubin.rebuild({section.index: Code(data, same, same, decoded(cubin, data))}))
    new = attribute(next(s for s in after.code if s.kernel == "copies"), "MBARRIER_INSTR_OFFSETS").words
    expected = {o: (9, 0x0008010A) if o == at else (old[i + 1], old[i + 3]) for i in range(0, len(old), 4) for o in old[i : i + 1]}
    assert {new[i]: (new[i + 1], new[i + 3]) for i in range(0, len(new), 4)} == expected


def test_an_attribute_of_unknown_form_stops_the_move_but_not_a_patch() -> None:
    cubin = read("axpy.sm_90")
    section = cubin.code[0]
    info = next(s for s in cubin.elf.sections if s.name == ".nv.info.axpy")
    strange = write_attributes((Attribute(0xEE, Format.SVAL, bytes(4)), *section.attributes[1:]))
    assert len(strange) == info.size
    odd = Cubin.read(cubin.data[: info.offset] + strange + cubin.data[info.offset + len(strange) :])
    stay = {section.index: Code(section.data, {i: i for i in range(0, len(section.data), 16)})}
    assert odd.rebuild(stay) == odd.data
    moved = Code(section.data[-16:] + section.data, {i: i + 16 for i in stay[section.index].moved})
    with pytest.raises(ContainerError, match="attribute 0xee may hold offsets, in an unknown form"):
        odd.rebuild({section.index: moved})
