"""Cubins through SSA: the very same bytes when nothing changes, also through fields alone, and code that grows."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest
from xdsl.dialects.builtin import ModuleOp

from sassir.asm import OPAQUE, Line, Program
from sassir.asm.parse import parse_instruction
from sassir.cubin.cubin import Cubin
from sassir.cubin.nvinfo import indirect_branches, with_branches
from sassir.dialect.instruction import SassBranch
from sassir.dialect.operations import KernelOp
from sassir.errors import ContainerError, EncodingError
from sassir.translate.cubin import jump_tables, read_module, read_program, write_cubin
from sassir.translate.emit import emit_program
from sassir.translate.lift import lift_program

CUBINS = sorted((Path(__file__).parent.parent / "cubins").glob("*.cubin"))


def load(name: str) -> bytes:
    return next(p for p in CUBINS if p.name == f"{name}.cubin").read_bytes()


def without_words(program: Program) -> Program:
    """The program as text would give it: no word is kept."""

    def bare(line: Line) -> Line:
        return line._replace(instruction=line.instruction._replace(word=None))

    return program._replace(functions=tuple([f._replace(lines=tuple(map(bare, f.lines))) for f in program.functions]))


@pytest.mark.parametrize("path", CUBINS, ids=lambda p: p.stem)
def test_every_committed_cubin_comes_back(path: Path) -> None:
    data = path.read_bytes()
    program = read_program(data, path.name)
    module = read_module(data, path.name)
    module.verify()
    assert emit_program(module) == program
    assert write_cubin(program) == data
    assert write_cubin(without_words(program)) == data
    assert write_cubin(program, from_fields=True) == data


@pytest.mark.parametrize("path", [p for p in CUBINS if "isa_" not in p.stem], ids=lambda p: p.stem)
def test_what_is_not_known_is_said(path: Path) -> None:
    """Of the committed kernels only calls to code of other files keep a kernel in place."""
    reasons = [k.fixed.data for k in read_module(path.read_bytes()).body.ops if isinstance(k, KernelOp) and k.fixed]
    assert all("CALL.ABS" in reason for reason in reasons)


def test_jump_tables_come_from_the_attributes() -> None:
    cubin = Cubin.read(load("jump.sm_90"))
    (table,) = jump_tables(cubin).values()
    assert table[0xF0] == ("target_130", "target_100", "target_660")
    branches = [op for op in read_module(cubin.data).walk() if isinstance(op, SassBranch) and op.MNEMONIC == "BRX"]
    assert [len(branch.successors) for branch in branches] == [len(targets) for targets in table.values()]


def test_a_jump_table_that_the_linker_left_empty_is_not_known() -> None:
    cubin = Cubin.read(load("jump.sm_90"))
    before = next(a for a in cubin.code[0].attributes if a.name == "INDIRECT_BRANCH_TARGETS")
    empty = with_branches(before, tuple([branch._replace(targets=(0,) * len(branch.targets)) for branch in indirect_branches(before)]))
    data = cubin.data.replace(before.data, empty.data)
    assert jump_tables(Cubin.read(data)) == {section.index: {} for section in cubin.code}
    assert [kernel.fixed is not None for kernel in read_module(data).body.ops if isinstance(kernel, KernelOp)] == [True]


Parse = Callable[[str], ModuleOp]
Show = Callable[..., str]
ALIGNMENT = 128
"""Of code sections."""
GROWN = ("axpy.sm_90", "loop.sm_80", "calls.sm_75", "calls.sm_90", "jump.sm_75", "jump.sm_90", "jump.sm_120")


def grown(module: ModuleOp, show: Show, parse: Parse) -> bytes:
    """The cubin with one more NOP behind each kernel's first instruction."""
    text = re.sub(r"^(.* at 0x0)$", r'\1\n    sass.nop ""() control<stall=1>', show(module), flags=re.MULTILINE)
    return write_cubin(emit_program(parse(text)))


def _without_offsets(module: str) -> str:
    """The text of a module without the names and numbers that come from offsets, and without its container."""
    return re.sub(r"\^x[0-9a-f]+|@x[0-9a-f]+|target_[0-9a-f]+| at 0x[0-9a-f]+|cubin_\w+", "", module.partition("{-#")[0])


@pytest.mark.parametrize("name", GROWN)
def test_grown_code_decodes_to_the_same_kernel_but_for_nops(name: str, show: Show, parse: Parse) -> None:
    """All displacements, return addresses and jump tables follow: lifting the grown file gives the same IR but for NOPs.

    There is one new NOP, and as many as fill the code section again.
    """
    data = load(name)
    new = grown(read_module(data), show, parse)
    sizes = [len(Cubin.read(file).code[0].data) for file in (data, new)]
    assert sizes[1] == sizes[0] + ALIGNMENT
    old, grew = (re.sub(r"    sass\.nop .*\n", "", _without_offsets(show(read_module(file)))) for file in (data, new))
    assert grew == old


@pytest.mark.parametrize("name", ["calls.sm_90", "jump.sm_75"])
def test_nvdisasm_reads_grown_code(name: str, show: Show, parse: Parse, tmp_path: Path) -> None:
    """A second opinion: apart from the added NOP, nvdisasm prints the same code, with labels in the same places."""
    tool = shutil.which("nvdisasm") or _from_wheel()
    if tool is None:
        pytest.skip("nvdisasm is not installed (pip install nvidia-cuda-nvdisasm)")
    listings: list[list[str]] = []
    for data in (load(name), grown(read_module(load(name)), show, parse)):
        path = tmp_path / "k.cubin"
        path.write_bytes(data)
        text = subprocess.run([tool, "-c", str(path)], capture_output=True, text=True, check=True).stdout
        lines = [re.sub(r"/\*\w+\*/|0x[0-9a-f]+", "", line).split() for line in text.splitlines() if "NOP" not in line]
        listings.append([" ".join(line) for line in lines])
    assert listings[0] == listings[1]


def _from_wheel() -> str | None:
    spec = find_spec("nvidia")
    found = [p for place in (spec.submodule_search_locations or []) for p in Path(place).glob("cu*/bin/nvdisasm")] if spec else []
    return str(found[0]) if found else None


def test_changed_instruction_is_encoded_and_the_others_kept() -> None:
    program = read_program(load("axpy.sm_90"))
    (function,) = program.functions
    lines = list(function.lines)
    at = next(i for i, line in enumerate(lines) if line.instruction.mnemonic == "NOP")
    lines[at] = lines[at]._replace(instruction=parse_instruction("[B------:R-:W-:-:S04] MOV R2, 0x1234"))
    data = write_cubin(program._replace(functions=(function._replace(lines=tuple(lines)),)))
    again = read_program(data).functions[0].lines
    assert again[at].instruction.text == "MOV R2, 0x1234"
    assert [line for i, line in enumerate(again) if i != at] == [line for i, line in enumerate(function.lines) if i != at]


def test_unencodable_instruction_is_named() -> None:
    program = read_program(load("axpy.sm_90"))
    line = program.functions[0].lines[0]._replace(instruction=parse_instruction("[B------:R-:W-:-:S04] FROB R1, R2"))
    function = program.functions[0]._replace(lines=(line, *program.functions[0].lines[1:]))
    with pytest.raises(EncodingError, match="kernel axpy, offset 0x0, `FROB R1, R2`"):
        write_cubin(program._replace(functions=(function,)))


def test_container_that_does_not_fit() -> None:
    program = read_program(load("axpy.sm_90"))
    (function,) = program.functions
    for wrong, message in (
        (program._replace(container=None), "give one with --onto FILE"),
        (program._replace(container=load("axpy.sm_80")), "the code is for sm_90, but its container for sm_80"),
        (program._replace(functions=(function._replace(section=1),)), "the container has no code in section 1"),
        (program._replace(functions=(function._replace(section=None, name="b"),)), "0 sections of the container have that name; it has"),
        (program._replace(functions=(function, function)), "already has code"),
    ):
        with pytest.raises(ContainerError, match=message):
            write_cubin(wrong, from_fields=True)


def test_a_listing_without_sections_is_matched_by_name() -> None:
    program = read_program(load("axpy.sm_90"))
    functions = tuple([f._replace(section=None) for f in program.functions])
    assert write_cubin(program._replace(functions=functions)) == program.container


def test_a_word_that_no_table_describes_stays(show: Show, parse: Parse) -> None:
    data = bytearray(load("axpy.sm_90"))
    (section,) = Cubin.read(bytes(data)).code
    at = bytes(data).index(section.data) + 16
    data[at : at + 2] = (int.from_bytes(data[at : at + 2], "little") | 0xFFF).to_bytes(2, "little")
    program = read_program(bytes(data))
    assert program.functions[0].lines[1].instruction.mnemonic == OPAQUE
    text = show(lift_program(program))
    assert 'fixed "OPAQUE' in text
    assert write_cubin(emit_program(parse(text))) == bytes(data)
