"""Code that grows, shrinks and changes its order: everything that refers to it follows. nvdisasm reads the result as a second opinion."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest

from sassir.cubin.code import Code, CodeSection, words
from sassir.cubin.cubin import Cubin
from sassir.cubin.frames import Advance, read_frames
from sassir.cubin.nvinfo import Attribute, indirect_branches, write_attributes
from sassir.errors import ContainerError, SassirWarning

CUBINS = [p for p in sorted((Path(__file__).parent.parent / "cubins").glob("*.cubin")) if not p.name.startswith("debug")]
EXIT, BRX, BRXU = 0x94D, 0x949, 0x958
NOP = 0x000FC000_00000000_00000000_00007918.to_bytes(16, "little")
OPCODE = 0xFFF


def read(name: str) -> Cubin:
    """A committed cubin."""
    path = next(path for path in CUBINS if path.name == f"{name}.cubin")
    return Cubin.read(path.read_bytes(), path.name)


def opcodes(section: CodeSection) -> list[int]:
    """The opcode of each instruction."""
    return [word & OPCODE for word in words(section)]


def attribute(section: CodeSection, name: str) -> Attribute:
    """The one attribute of that name."""
    return next(a for a in section.attributes if a.name == name)


def with_nops(section: CodeSection, every: int = 5) -> Code:
    """The code with a NOP before each fifth instruction; labels say that no branch target has one inside its block."""
    data = bytearray()
    moved: dict[int, int] = {}
    for offset in range(0, len(section.data), 16):
        if offset and offset // 16 % every == 0:
            data += NOP
        moved[offset] = len(data)
        data += section.data[offset : offset + 16]
    return Code(bytes(data), moved, moved)


def nvdisasm(path: Path, *options: str) -> str:
    """What NVIDIA's disassembler prints for a cubin; the test is skipped where there is none."""
    tool = shutil.which("nvdisasm")
    package = find_spec("nvidia")
    if tool is None and package and package.submodule_search_locations:
        found = [next(Path(place).glob("*/bin/nvdisasm"), None) for place in package.submodule_search_locations]
        tool = next((str(path) for path in found if path), None)
    if tool is None:
        pytest.skip("nvdisasm is not installed (pip install nvidia-cuda-nvdisasm)")
    done = subprocess.run([tool, *options, str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("path", CUBINS, ids=lambda path: path.name)
def test_grown_code_is_found_again_and_its_exits_with_it(path: Path) -> None:
    before = Cubin.read(path.read_bytes())
    grown = {section.index: with_nops(section) for section in before.code}
    after = Cubin.read(before.rebuild(grown))
    for old, new in zip(before.code, after.code, strict=True):
        moved = grown[old.index].moved
        assert new.data == grown[old.index].data
        assert after.elf.sections[new.index].offset % 128 == 0
        assert [(f.name, f.offset) for f in new.functions] == [(f.name, moved[f.offset]) for f in old.functions]
        assert [f.offset + f.size for f in new.functions] == [moved.get(f.offset + f.size, len(new.data)) for f in old.functions]
        assert [(r.offset, r.type, r.symbol) for r in new.relocations] == [(moved[r.offset], r.type, r.symbol) for r in old.relocations]
        assert [(a.id, len(a.data)) for a in new.attributes] == [(a.id, len(a.data)) for a in old.attributes]
        for exits in (a.words for a in new.attributes if a.name == "EXIT_INSTR_OFFSETS"):
            assert {opcodes(new)[offset // 16] for offset in exits} == {EXIT}


@pytest.mark.parametrize("path", CUBINS, ids=lambda path: path.name)
def test_what_is_not_code_keeps_its_bytes_and_its_alignment(path: Path) -> None:
    before = Cubin.read(path.read_bytes())
    after = Cubin.read(before.rebuild({section.index: with_nops(section) for section in before.code}))
    follows = re.compile(r"\.text|\.nv\.info\.|\.symtab|\.rela?\.|\.debug|\.nv_debug_line|\.nv\.constant2")
    for old, new in zip(before.elf.sections, after.elf.sections, strict=True):
        if not follows.match(old.name):
            assert before.elf.content(old) == after.elf.content(new), old.name
        if old.alignment and old.offset % old.alignment == 0:
            assert new.offset % old.alignment == 0, old.name
    for segment in after.elf.segments:
        assert segment.offset + segment.file_size <= len(after.data)


@pytest.mark.parametrize("name", ["axpy.sm_75", "calls.cuda11.sm_90", "calls.cuda12.sm_120", "hop.sm_90", "jump.sm_120", "print.sm_90"])
def test_nvdisasm_reads_the_grown_file(name: str, tmp_path: Path) -> None:
    cubin = read(name)
    grown = {section.index: with_nops(section) for section in cubin.code}
    (tmp_path / "grown.cubin").write_bytes(cubin.rebuild(grown))
    listing = nvdisasm(tmp_path / "grown.cubin", "-c")
    assert len(re.findall(r"^\s+/\*[0-9a-f]{4,}\*/", listing, re.MULTILINE)) == sum(len(code.data) // 16 for code in grown.values())


def test_lines_follow_their_instructions(tmp_path: Path) -> None:
    """nvdisasm shows the same line before the same instruction, except for the NOPs in between."""
    cubin = read("print.sm_90")

    def lines(data: bytes) -> list[str]:
        (tmp_path / "print.cubin").write_bytes(data)
        listing = nvdisasm(tmp_path / "print.cubin", "-c", "-g")
        shown = [re.sub(r"/\*[0-9a-f]+\*/|`\(\S+\)", "", line).strip() for line in listing.splitlines()]
        return [line for line in shown if "File" in line or (line.endswith(";") and "NOP" not in line)]

    before = lines(cubin.data)
    assert sum("line 4" in line for line in before) >= 2
    assert lines(cubin.rebuild({section.index: with_nops(section) for section in cubin.code})) == before


@pytest.mark.parametrize("name", ["jump.sm_75", "jump.sm_90", "jump.sm_120"])
def test_jump_tables_follow_their_targets(name: str) -> None:
    before = read(name)
    section = before.code[0]
    grown = with_nops(section)
    after = Cubin.read(before.rebuild({section.index: grown}))
    old = indirect_branches(attribute(section, "INDIRECT_BRANCH_TARGETS"))
    new = indirect_branches(attribute(after.code[0], "INDIRECT_BRANCH_TARGETS"))
    assert [b.targets for b in new] == [tuple(grown.moved[t] for t in b.targets) for b in old]
    assert {opcodes(after.code[0])[b.offset // 16] for b in new} <= {BRX, BRXU}
    tables = [c.elf.content(next(s for s in c.elf.sections if s.name.startswith(".nv.constant2"))) for c in (before, after)]
    old_words, new_words = (struct.unpack(f"<{len(table) // 4}I", table) for table in tables)
    assert new_words == tuple(grown.moved[word] for word in old_words)


def test_a_table_word_that_may_not_be_an_offset_stops_the_move() -> None:
    cubin = read("jump.sm_90")
    table = next(s for s in cubin.elf.sections if s.name.startswith(".nv.constant2"))
    odd = Cubin.read(cubin.data[: table.offset] + struct.pack("<I", 0x3F800000) + cubin.data[table.offset + 4 :])
    with pytest.raises(ContainerError, match="0x3f800000, neither a listed branch target nor a function"):
        odd.rebuild({odd.code[0].index: with_nops(odd.code[0])})


def test_constants_in_bank_2_are_not_taken_for_code_offsets() -> None:
    """The same bank 2 without an indirect branch is data: words that look like offsets stay."""
    cubin = read("jump.sm_90")
    info = next(s for s in cubin.elf.sections if s.name == ".nv.info.jump")
    attributes = cubin.code[0].attributes
    listed = attribute(cubin.code[0], "INDIRECT_BRANCH_TARGETS")
    other = write_attributes(tuple([a._replace(id=0x43) if a == listed else a for a in attributes]))  # UCODE_SECTION_DATA
    data = Cubin.read(cubin.data[: info.offset] + other + cubin.data[info.offset + len(other) :])
    table = next(s for s in cubin.elf.sections if s.name.startswith(".nv.constant2"))
    after = Cubin.read(data.rebuild({data.code[0].index: with_nops(data.code[0])}))
    assert after.elf.content(after.elf.sections[table.index]) == cubin.elf.content(table)


def test_return_addresses_in_relocations_follow() -> None:
    """In a relocatable object the return address behind a call is `hop + 0x240`."""
    before = read("hop.sm_90")
    hop = next(s for s in before.code if s.kernel == "hop")
    grown = with_nops(hop)
    after = Cubin.read(before.rebuild({hop.index: grown}))
    new = next(s for s in after.code if s.kernel == "hop")
    for old_one, new_one in zip(hop.relocations, new.relocations, strict=True):
        assert new_one.offset == grown.moved[old_one.offset]
        assert new_one.addend == (grown.moved[old_one.addend or 0] if old_one.symbol_name == "hop" else old_one.addend)


def test_call_frames_follow() -> None:
    """The frame of the device function starts where its symbol does now, and is as long as it is."""
    before = read("calls.sm_90")
    after = Cubin.read(before.rebuild({section.index: with_nops(section) for section in before.code}))
    frames = next(s for s in after.elf.sections if s.name == ".debug_frame")
    relocations = next(r for i, r in after.relocations.items() if after.elf.sections[i].info == frames.index)
    content = after.elf.content(frames)
    sizes = {
        (after.symbols[r.symbol].section, r.addend): struct.unpack_from("<Q", content, r.offset + 8)[0]
        for r in relocations
        if content[r.offset - 20 : r.offset - 16] == b"\xff\xff\xff\xff"  # where a frame begins
    }
    for section in after.code:
        kernel, function = section.functions
        assert sizes[section.index, kernel.offset] == function.offset
        assert sizes[section.index, function.offset] == function.size


def test_call_frames_stay_in_their_function() -> None:
    """An instruction of the device function, a constant, may go in front of a loop of the kernel; what it stood behind stays."""
    before = read("calls.sm_90")
    section = next(s for s in before.code if s.kernel == "second")
    function, last = section.functions[1].offset, len(section.data) - 16
    moved = {old: old for old in range(0, len(section.data), 16)} | {0x10: last, last: 0x10}
    data = b"".join(section.data[old : old + 16] for old in sorted(moved, key=moved.__getitem__))
    after = Cubin.read(before.rebuild({section.index: Code(data, moved, {function: function})}))
    old, new = (cubin.elf.content(next(s for s in cubin.elf.sections if s.name == ".debug_frame")) for cubin in (before, after))
    frames = [[frame for frame in read_frames(content, "") if frame.size == section.functions[1].size] for content in (old, new)]
    assert [frame.advances for frame in frames[0]] == [frame.advances for frame in frames[1]] == [(Advance(frames[0][0].at + 17, 944),)]


def test_code_with_full_debug_information_stays_where_it_is() -> None:
    path = Path(__file__).parent.parent / "cubins" / "debug.sm_90.cubin"
    cubin = Cubin.read(path.read_bytes(), path.name)
    section = cubin.code[0]
    assert cubin.rebuild({section.index: Code(section.data, {o: o for o in range(0, len(section.data), 16)})}) == cubin.data
    with pytest.raises(ContainerError, match=r"\.nv_debug_info_reg_sass: code with full debug information cannot move; .* -lineinfo"):
        cubin.rebuild({section.index: with_nops(section)})


def test_the_form_for_other_sms_stays_and_the_user_is_told() -> None:
    cubin = read("axpy.sm_100")
    grown = with_nops(cubin.code[0])
    with pytest.warns(SassirWarning, match=r"axpy\.sm_100\.cubin: axpy: changed for sm_100 alone; .* \(\.nv\.capmerc\) is the original's"):
        after = Cubin.read(cubin.rebuild({cubin.code[0].index: grown}))
    for old, new in zip(cubin.elf.sections, after.elf.sections, strict=True):
        if "merc" in old.name:
            assert after.elf.content(new) == cubin.elf.content(old)


def test_same_length_is_patched_in_place() -> None:
    cubin = read("axpy.sm_90")
    section = cubin.code[0]
    data = section.data[16:32] + section.data[16:]
    rebuilt = cubin.rebuild({section.index: Code(data, {i: i for i in range(0, len(data), 16)})})
    start = cubin.elf.sections[section.index].offset
    assert rebuilt == cubin.data[:start] + data + cubin.data[start + len(data) :]


@pytest.mark.parametrize(
    ("data", "moved", "message"),
    [
        (b"", {}, "0 bytes of new code"),
        (bytes(24), {}, "24 bytes of new code"),
        (bytes(32), {0: 64}, "new offset 0x40"),
        (bytes(32), {0: 0, 16: 0}, "two old instructions"),
    ],
)
def test_a_wrong_map_is_refused(data: bytes, moved: dict[int, int], message: str) -> None:
    cubin = read("axpy.sm_90")
    with pytest.raises(ContainerError, match=rf"axpy.sm_90.cubin: \.text\.axpy: .*{message}"):
        cubin.rebuild({cubin.code[0].index: Code(data, moved)})


def test_a_section_without_code_is_refused() -> None:
    with pytest.raises(ContainerError, match="section 3 holds no code"):
        read("axpy.sm_90").rebuild({3: Code(bytes(16), {})})
