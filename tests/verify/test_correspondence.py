"""Code that grew, shrank and changed its order: the file is sound, means the same at every place, and nvdisasm reads it."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from sassir.asm.parse import parse_instruction
from sassir.cubin.cubin import Cubin
from sassir.cubin.nvinfo import read_attributes, write_attributes
from sassir.dialect.instruction import SassBranch, SassInstruction
from sassir.dialect.operations import KernelOp
from sassir.dialect.registers import SassRegister
from sassir.encoders import table
from sassir.translate.cubin import read_module, write_cubin
from sassir.translate.emit import emit_program
from sassir.verify.container import check_container
from sassir.verify.correspondence import Moved, Seams, check_correspondence

CUBINS = [p for p in sorted((Path(__file__).parents[1] / "cubins").glob("*.cubin")) if not p.name.startswith("debug")]
BENCH = Path(__file__).parents[2] / "bench"
REMOVED = ("BAR", "ST", "STG", "STS")
"""Without results, so that nothing misses them."""

Change = Callable[[ModuleOp], object]


@pytest.fixture(scope="module")
def growth() -> Any:
    """bench/growth.py"""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(BENCH), *sys.path])
        spec = importlib.util.spec_from_file_location("growth", BENCH / "growth.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return module


def changed(original: bytes, *changes: Change) -> tuple[bytes, dict[int, Moved]]:
    """The file after changes of its module, and where its instructions went."""
    module = read_module(original)
    for change in changes:
        change(module)
    program = emit_program(module)
    return write_cubin(program), {f.section: f.moved() for f in program.functions if f.section is not None}


def bodies(module: ModuleOp) -> list[list[Operation]]:
    """The operations of each block of each kernel that may move."""
    kernels = [op for op in module.body.ops if isinstance(op, KernelOp) and op.fixed is None]
    return [list(block.ops) for kernel in kernels for block in kernel.body.blocks]


def registers(values: Sequence[SSAValue]) -> set[int | None]:
    return {value.type.number for value in values if isinstance(value.type, SassRegister)}


def shuffle(module: ModuleOp) -> None:
    """Swap neighbours that do not use each other's registers."""
    for ops in bodies(module):
        for a, b in pairwise(ops):
            if not all(isinstance(op, SassInstruction) and not isinstance(op, SassBranch) for op in (a, b)) or a.next_op is not b:
                continue
            written = registers(a.results), registers(b.results)
            if written[0] & (written[1] | registers(b.operands)) or written[1] & registers(a.operands):
                continue
            b.detach()
            a.parent.insert_op_before(b, a)  # type: ignore[union-attr]


def remove(module: ModuleOp) -> None:
    """Take out every second store and barrier."""
    found = [op for ops in bodies(module) for op in ops if isinstance(op, SassInstruction) and op.MNEMONIC in REMOVED]
    for op in found[::2]:
        op.detach()


def sound(before: bytes, after: bytes, moved: dict[int, Moved]) -> None:
    assert check_container(after) == []
    assert check_correspondence(before, after, moved) == []


@pytest.mark.parametrize("path", CUBINS, ids=lambda path: path.name)
def test_grown_at_a_hundred_places(path: Path, growth: Any) -> None:
    before = path.read_bytes()
    after, moved = changed(before, lambda module: growth.insert_nops(module, growth.PLACES, Random(path.name)))
    sound(before, after, moved)
    assert len(after) > len(before) + 16 * growth.PLACES


@pytest.mark.parametrize("path", CUBINS, ids=lambda path: path.name)
def test_shuffled_and_shrunk(path: Path) -> None:
    before = path.read_bytes()
    sound(before, *changed(before, shuffle, remove))


@pytest.mark.parametrize("name", ["calls.sm_90", "jump.sm_75", "hop.sm_120", "isa_tensor.sm_90a"])
def test_nvdisasm_reads_it(name: str, growth: Any, tmp_path: Path) -> None:
    before = next(path for path in CUBINS if path.name == f"{name}.cubin").read_bytes()
    after, _ = changed(before, lambda module: growth.insert_nops(module, growth.PLACES, Random(name)), shuffle, remove)
    assert "EXIT" in disassembled(after, tmp_path, "-c")


@pytest.mark.parametrize("name", ["print.sm_75", "inlined.sm_90", "inlined.sm_120"])
def test_nvdisasm_shows_the_same_lines(name: str, growth: Any, tmp_path: Path) -> None:
    """Each instruction below the same lines, those of the calls around it included, in whatever order."""
    before = next(path for path in CUBINS if path.name == f"{name}.cubin").read_bytes()
    after, _ = changed(before, lambda module: growth.insert_nops(module, growth.PLACES, Random(name)), shuffle)
    old, new = (sources(disassembled(data, tmp_path, "-c", "-gi")) for data in (before, after))
    assert new == old
    assert len({lines for lines, _ in old}) > 3


def sources(listing: str) -> Counter[tuple[tuple[str, ...], str]]:
    """How often each instruction, places left out, stands below these lines. NOPs are left out."""
    found: Counter[tuple[tuple[str, ...], str]] = Counter()
    lines: tuple[str, ...] = ()
    fresh = False
    for line in listing.splitlines():
        if "//##" in line:
            lines = (*(lines if fresh else ()), line.strip())
            fresh = True
        elif match := re.match(r"\s+/\*[0-9a-f]{4,}\*/\s+(.*?)\s*;", line):
            fresh = False
            if match[1] != "NOP":
                found[lines, re.sub(r"`\(\S+\)|0x[0-9a-f]+", "", match[1])] += 1
    return found


def disassembled(data: bytes, folder: Path, *options: str) -> str:
    """What NVIDIA's disassembler prints."""
    (folder / "code.cubin").write_bytes(data)
    done = subprocess.run([nvdisasm(), *options, str(folder / "code.cubin")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def nvdisasm() -> str:
    """The tool, from PATH or from its wheel."""
    if found := shutil.which("nvdisasm"):
        return found
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        for path in Path(folder).glob("*/bin/nvdisasm"):
            return str(path)
    pytest.skip("nvdisasm is not installed (pip install nvidia-cuda-nvdisasm)")


def patched(name: str, section: str, offset: int, text: str) -> tuple[bytes, bytes]:
    """A file, and the same with another instruction."""
    before = next(path for path in CUBINS if path.name == f"{name}.cubin").read_bytes()
    cubin = Cubin.read(before)
    at = cubin.elf.named(section)[0].offset + offset
    word = table(cubin.arch).encode(parse_instruction(text))
    return before, before[:at] + word.to_bytes(16, "little") + before[at + 16 :]


def differences(before: bytes, after: bytes) -> set[str]:
    return {finding.rule for finding in check_correspondence(before, after, {})}


@pytest.mark.parametrize(
    ("rule", "name", "section", "offset", "text"),
    [
        ("other-instruction", "axpy.sm_90", ".text.axpy", 0x10, "[B------:R-:W-:-:S05] MOV R9, R9"),
        ("other-instruction", "axpy.sm_90", ".text.axpy", 0x30, "[B------:R-:W-:-:S05] NOP"),
        ("other-instruction", "calls.sm_90", ".text.second", 0x100, "[B0-----:R-:W-:Y:S07] MOV R4, 0x130"),
        ("other-place", "loop.sm_90", ".text.loop", 0x140, "[B------:R-:W-:-:S06] @!P0 BRA .-0x10"),
    ],
)
def test_another_instruction_is_noticed(rule: str, name: str, section: str, offset: int, text: str) -> None:
    assert rule in differences(*patched(name, section, offset, text))


def test_another_list_and_another_target_are_noticed() -> None:
    before = next(path for path in CUBINS if path.name == "jump.sm_90.cubin").read_bytes()
    cubin = Cubin.read(before)
    info = cubin.elf.named(".nv.info.jump")[0]
    for name, rule, at in (("EXIT_INSTR_OFFSETS", "other-list", 0), ("INDIRECT_BRANCH_TARGETS", "other-place", 3)):
        attributes = [
            a.with_words((*a.words[:at], a.words[at] + 16, *a.words[at + 1 :])) if a.name == name else a
            for a in read_attributes(cubin.elf.content(info))
        ]
        after = before[: info.offset] + write_attributes(tuple(attributes)) + before[info.end :]
        assert rule in differences(before, after)


def test_another_line_is_noticed() -> None:
    before = next(path for path in CUBINS if path.name == "print.sm_90.cubin").read_bytes()
    lines = Cubin.read(before).elf.named(".debug_line")[0]
    at = before.index(bytes((3, 2, 1)), lines.offset)  # advance two lines, then a row
    assert "other-line" in differences(before, before[: at + 1] + b"\3" + before[at + 2 :])


def test_a_seam_lies_between_what_stood_before_and_behind() -> None:
    """Two instructions, then a target, then two: added ones at 0x20 and 0x30 may be on either side of it."""
    seams = Seams({0x00: 0x10, 0x10: 0x00, 0x20: 0x50, 0x30: 0x40}, 0x40, 0x60)
    assert [new for new in range(0, 0x61, 0x10) if seams.agree(0x20, new)] == [0x20, 0x30, 0x40]
    assert [new for new in range(0, 0x61, 0x10) if seams.agree(0x40, new)] == [0x60]
