"""Counts of registers, barriers and stack follow the code, wherever a toolkit keeps them."""

from __future__ import annotations

from pathlib import Path

import pytest

from sassir.asm.parse import parse_instruction
from sassir.asm.program import Line, Program
from sassir.cubin.code import Code, Resources
from sassir.cubin.cubin import Cubin
from sassir.cubin.nvinfo import SymbolValue, decode
from sassir.cubin.resources import counts, header_registers
from sassir.cubin.summary import summarise
from sassir.errors import ContainerError
from sassir.translate.cubin import read_program, write_cubin
from sassir.translate.resources import resources
from sassir.verify.container import check_container

FOLDER = Path(__file__).parent.parent / "cubins"
CUBINS = sorted(FOLDER.glob("*.cubin"))
TOOLKITS = ["calls.cuda11.sm_75", "calls.cuda11.sm_90", "calls.cuda12.sm_90", "calls.cuda12.sm_120", "calls.sm_80", "calls.sm_120"]


def read(name: str) -> Cubin:
    return Cubin.read((FOLDER / f"{name}.cubin").read_bytes(), name)


def with_counts(cubin: Cubin, kernel: str, new: Resources) -> Cubin:
    """The file whose kernel has the same code and other counts."""
    section = next(s for s in cubin.code if s.kernel == kernel)
    same = {offset: offset for offset in range(0, len(section.data), 16)}
    return Cubin.read(cubin.rebuild({section.index: Code(section.data, same, resources=new)}), "new")


@pytest.mark.parametrize("path", CUBINS, ids=lambda path: path.name)
def test_the_rule_gives_what_ptxas_counted(path: Path) -> None:
    cubin = Cubin.read(path.read_bytes())
    for function in read_program(cubin.data).functions:
        section = next(s for s in cubin.code if s.index == function.section)
        before = counts(cubin, section)
        assert resources(function, before, cubin.arch) == Resources(before.registers, before.barriers)


@pytest.mark.parametrize("name", TOOLKITS)
def test_new_counts_are_where_the_toolkit_keeps_them(name: str) -> None:
    cubin = read(name)
    after = with_counts(cubin, "second", Resources(registers=40, barriers=3, stack=24))
    for old, new in zip(summarise(cubin).kernels, summarise(after).kernels, strict=True):
        if new.name == "second":
            assert (new.registers, new.barriers, new.stack) == (40, 3, 24)
        else:
            assert new == old
    headers = [header_registers(c.elf.sections[c.code[0].index]) for c in (cubin, after)]
    assert headers in ([0, 0], [headers[0], 40])


def test_the_stack_of_a_kernel_includes_what_it_calls() -> None:
    cubin = read("print.sm_90")
    after = with_counts(cubin, "print", Resources(stack=40))
    values = {a.name: v.value for a in after.file_attributes if isinstance(v := decode(a), SymbolValue)}
    assert (values["FRAME_SIZE"], values["MIN_STACK_SIZE"]) == (40, 40)


def test_without_barriers_the_attribute_goes() -> None:
    after = with_counts(read("calls.sm_90"), "second", Resources(barriers=0))
    second = next(s for s in after.code if s.kernel == "second")
    assert "NUM_BARRIERS" not in {a.name for a in second.attributes}
    assert counts(after, second).barriers == 0


def test_a_device_function_may_not_need_more_than_a_kernel_that_may_call_it() -> None:
    cubin = read("hop.sm_90")
    function = next(s for s in cubin.code if s.head and not s.head.entry)
    with pytest.raises(ContainerError, match=r"the new code has 99 registers, more than \.text\.hop, which may call it, has room for"):
        with_counts(cubin, function.kernel, Resources(registers=99))


def edited(name: str, kernel: str, at: int, text: str) -> Cubin:
    """The file with another instruction in a kernel."""
    program = read_program((FOLDER / f"{name}.cubin").read_bytes())
    functions = list(program.functions)
    i = next(i for i, f in enumerate(functions) if f.name == kernel)
    lines = list(functions[i].lines)
    lines[at] = Line(parse_instruction(f"[B------:R-:W-:-:S05] {text}"), lines[at].origin)
    functions[i] = functions[i]._replace(lines=tuple(lines))
    after = write_cubin(Program(program.arch, tuple(functions), program.container))
    assert not any(finding.error for finding in check_container(after))
    return Cubin.read(after)


@pytest.mark.parametrize("name", ["axpy.sm_75", "axpy.sm_90", "axpy.sm_120"])
def test_another_instruction_changes_the_counts(name: str) -> None:
    after = edited(name, "axpy", 1, "MOV R99, R0")
    assert counts(after, after.code[0]).registers == 99 + 1 + 2
    after = edited(name, "axpy", 1, "BAR.SYNC.DEFER_BLOCKING 0x2")
    assert counts(after, after.code[0]).barriers == 3


def test_a_kernel_that_calls_other_code_keeps_its_registers() -> None:
    before = read("print.sm_90")
    function = read_program(before.data).functions[0]
    assert resources(function, Resources(registers=60), before.arch).registers == 60
