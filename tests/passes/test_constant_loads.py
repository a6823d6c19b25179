"""sass-constant-loads: only loads of what nobody writes while the kernel runs are marked."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr

from sassir.asm import INSTRUCTION_BYTES, Function, Line
from sassir.asm.parse import parse_instruction
from sassir.dialect.facts import FACTS, FactsAttr, KernelFacts, Pointer, used_facts
from sassir.dialect.instruction import SassInstruction
from sassir.emulator import emulate
from sassir.launch import read_launch_file
from sassir.optimize import Pipeline, Task, optimise_cubin
from sassir.passes.constant_loads import ConstantLoads
from sassir.passes.virtualise import Virtualise
from sassir.rewrite.build import name_of
from sassir.translate.cubin import read_program
from sassir.translate.lift import ARCH, lift_function

BENCH = Path(__file__).parents[2] / "bench"
BUFFERS = (Pointer(0x210, 256, 0x1000), Pointer(0x218, 256, 0x1000))


def loads(body: str, noalias: bool = True, arch: str = "sm_90") -> tuple[list[str], tuple[str, ...]]:
    """The names of the loads of a kernel with buffers in R2 and R4, and the facts used."""
    text = ["LDC.64 R2, c[0x0][0x210]", "LDC.64 R4, c[0x0][0x218]", *body.strip().splitlines(), "EXIT"]
    lines = tuple([Line(parse_instruction(line), INSTRUCTION_BYTES * i) for i, line in enumerate(text)])
    made = lift_function(Function("k", None, lines, {}), {})
    made.attributes[FACTS] = FactsAttr(KernelFacts(pointers=BUFFERS, noalias=noalias))
    module = ModuleOp([made], {ARCH: StringAttr(arch)})
    Virtualise().apply(Context(), module)
    ConstantLoads().apply(Context(), module)
    module.verify()
    ops = [op for block in made.body.blocks for op in block.ops if isinstance(op, SassInstruction)]
    return [name_of(op) for op in ops if op.MNEMONIC == "LDG"], used_facts(made)


COPY = "LDG.E{width} R8, desc[UR4][R2.64]\nSTG.E{width} desc[UR4][R4.64], R8"


@pytest.mark.parametrize("width", ["", ".U8", ".U16", ".64", ".128"])
def test_a_buffer_that_is_only_read(width: str) -> None:
    assert loads(COPY.format(width=width)) == ([f"LDG.E{width}.CONSTANT"], ("noalias",))


def test_turing_names_the_scope_last() -> None:
    assert loads("LDG.E.SYS R8, [R2]\nSTG.E.SYS [R4], R8", arch="sm_75") == (["LDG.E.CONSTANT.SYS"], ("noalias",))


def test_a_barrier_is_no_hindrance() -> None:
    found, _ = loads("BAR.SYNC.DEFER_BLOCKING 0x0\n" + COPY.format(width=""))
    assert found == ["LDG.E.CONSTANT"]


UNCHANGED = {
    "a buffer that is written": "LDG.E R8, desc[UR4][R4.64]\nSTG.E desc[UR4][R4.64+0x400], R8",
    "a store to an address that was loaded": "LDG.E.64 R6, desc[UR4][R2.64]\nSTG.E desc[UR4][R6.64], R8",
    "a fence, behind which another kernel's data may be": "MEMBAR.SC.GPU\n" + COPY.format(width=""),
    "a strong load": "LDG.E.STRONG.GPU R8, desc[UR4][R2.64]\nSTG.E desc[UR4][R4.64], R8",
}


@pytest.mark.parametrize("why", UNCHANGED)
def test_what_stays(why: str) -> None:
    found, used = loads(UNCHANGED[why])
    assert not any("CONSTANT" in name for name in found)
    assert used == ()


def test_without_the_fact_nothing_is_marked() -> None:
    assert loads(COPY.format(width=""), noalias=False) == (["LDG.E"], ())


def test_a_kernel_of_the_suite_computes_the_same() -> None:
    original, file = (BENCH / "cubins" / "jacobi2d.sm_90.cubin").read_bytes(), read_launch_file(BENCH / "launch" / "jacobi2d.toml")
    launch = file.launch("small")
    made = optimise_cubin(Task(original, "jacobi2d", Pipeline("test", 1, ("sass-constant-loads",)), file.facts, launch))
    marked = [line for f in read_program(made.cubin).functions for line in f.lines if "CONSTANT" in line.instruction.modifiers]
    assert len(marked) == 5, "four neighbours and the right-hand side"
    before, after = emulate(original, launch), emulate(made.cubin, launch)
    assert all(np.array_equal(before[k].view(np.uint8), after[k].view(np.uint8)) for k in before)
