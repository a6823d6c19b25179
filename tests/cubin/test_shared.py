"""More shared memory for a kernel: a section that grows, or a new one."""

from __future__ import annotations

from pathlib import Path

import pytest

from sassir.cubin.code import Code
from sassir.cubin.cubin import Cubin
from sassir.cubin.summary import summarise

FOLDER = Path(__file__).parents[1] / "cubins"


def grown(data: bytes, size: int) -> bytes:
    """The same code, with more shared memory for the first kernel."""
    cubin = Cubin.read(data)
    section = cubin.code[0]
    same = {offset: offset for offset in range(0, len(section.data), 16)}
    return cubin.rebuild({section.index: Code(section.data, same, shared=size)})


@pytest.mark.parametrize(("name", "reserved"), [("axpy.sm_75", 0), ("axpy.sm_80", 0), ("axpy.sm_90", 1024), ("axpy.sm_120", 1024)])
def test_a_kernel_without_shared_memory_gets_a_section(name: str, reserved: int) -> None:
    data = (FOLDER / f"{name}.cubin").read_bytes()
    before, once, twice = (Cubin.read(d) for d in (data, grown(data, 512), grown(grown(data, 512), 256)))
    assert [summarise(c).kernels[0].shared for c in (before, once, twice)] == [0, reserved + 512, reserved + 768]
    added = once.elf.sections[len(before.elf.sections)]
    assert (added.name, added.info) == (f".nv.shared.{before.code[0].kernel}", before.code[0].index)
    for old, new in zip(before.elf.sections, once.elf.sections, strict=False):
        assert old.name == new.name
        if old.name != ".shstrtab":
            assert before.elf.content(old) == once.elf.content(new)
    assert len(once.elf.sections) == len(twice.elf.sections) == len(before.elf.sections) + 1


def test_the_segment_of_memory_without_bytes_grows_too() -> None:
    data = (FOLDER / "axpy.sm_90.cubin").read_bytes()
    sizes = [sum(s.memory_size for s in Cubin.read(d).elf.segments if s.flags & 2) for d in (data, grown(data, 512))]
    assert sizes == [0, 1024 + 512]
