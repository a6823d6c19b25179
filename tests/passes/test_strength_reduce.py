"""sass-strength-reduce: fewer instructions for the same addresses, whatever the index is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import SSAValue

from sassir.analysis.arguments import arguments
from sassir.analysis.folding import fold
from sassir.asm import INSTRUCTION_BYTES, Function, Line
from sassir.asm.parse import parse_instruction
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.operations import KernelOp
from sassir.emulator import emulate
from sassir.launch import read_launch_file
from sassir.optimize import Pipeline, Task, optimise_cubin, read_pipeline
from sassir.passes.strength_reduce import StrengthReduce
from sassir.passes.virtualise import Virtualise
from sassir.rewrite.build import name_of
from sassir.translate.cubin import read_program
from sassir.translate.lift import ARCH, lift_function

BENCH = Path(__file__).parents[2] / "bench"
POINTER = {0x208: 0x0, 0x20C: 0x0, 0x210: 0xFFFFFF00, 0x214: 0x7, 0x160: 0xFFFFFF00, 0x164: 0x7}
"""Words of the constant bank; the pointer is such that there often is a carry."""
INDICES = [0, 1, 0x80, 0x3FFFFFFF, 0x55555555, 0x7FFFFFFF, 0x80000000, 0xC0000000, 0xFFFFFF80, 0xFFFFFFFF]


def lifted(body: str, arch: str) -> tuple[ModuleOp, KernelOp]:
    """A kernel of these instructions, with an index in R0."""
    text = ["S2R R0, SR_LANEID", *body.strip().splitlines(), "EXIT"]
    lines = tuple([Line(parse_instruction(line), INSTRUCTION_BYTES * i) for i, line in enumerate(text)])
    kernel = lift_function(Function("k", None, lines, {}), {})
    module = ModuleOp([kernel], {ARCH: StringAttr(arch)})
    Virtualise().apply(Context(), module)
    return module, kernel


def instructions(kernel: KernelOp) -> list[SassInstruction]:
    return [op for block in kernel.body.blocks for op in block.ops if isinstance(op, SassInstruction)]


def stored(kernel: KernelOp, index: int, arch: str) -> list[int | None]:
    """What the last store gets: the words of its address, and its value."""
    values: dict[SSAValue, int | None] = {}
    for op in instructions(kernel):
        if op.MNEMONIC == "S2R":
            values[op.results[0]] = index
        elif op.MNEMONIC in ("LDC", "ULDC"):
            place = arguments(op)[-1].constant
            assert place is not None
            values.update({r: POINTER[place[1] + 4 * i] for i, r in enumerate(op.results)})
        elif op.results:
            found = fold(op, [values[v] for v in op.reads], lambda bank, offset: POINTER[offset], arch)
            assert found is not None, op
            values.update(zip(op.results, found, strict=True))
        elif op.MNEMONIC == "STG":
            return [values[v] for v in op.reads]
    raise AssertionError("no store")


def reduced(body: str, arch: str = "sm_90") -> list[str]:
    """What `body` is reduced to, as mnemonics, once both store the same for every index."""
    _, before = lifted(body, arch)
    module, after = lifted(body, arch)
    StrengthReduce().apply(Context(), module)
    module.verify()
    for index in INDICES:
        assert stored(after, index, arch)[-3:] == stored(before, index, arch)[-3:], hex(index)
    return [name_of(op) for op in instructions(after) if op.MNEMONIC not in ("S2R", "EXIT", "STG")]


LOADS = "ULDC.64 UR4, c[0x0][0x208]\nLDC.64 R8, c[0x0][0x210]\n"
UNIFORM = "ULDC.64 UR4, c[0x0][0x208]\nULDC.64 UR6, c[0x0][0x210]\n"
STORE = "\nSTG.E desc[UR4][R2.64], R0"
KEPT = ["ULDC.64", "LDC.64"]


@pytest.mark.parametrize(
    "body",
    [
        "IADD3 R2, P0, R0, R8, RZ\nLEA.HI.X.SX32 R3, R0, R9, 0x1, P0",
        "LEA R2, P0, R0, R8, 0x2\nLEA.HI.X.SX32 R3, R0, R9, 0x2, P0",
        "SHF.R.S32.HI R5, RZ, 0x1f, R0\nLEA R2, P0, R0, R8, 0x1\nLEA.HI.X R3, R0, R9, R5, 0x1, P0",
        "SHF.R.S32.HI R5, RZ, 0x1f, R0\nIADD3 R2, P0, R8, R0, RZ\nIADD3.X R3, R9, R5, RZ, P0, !PT",
    ],
)
def test_a_pointer_and_an_index_with_its_sign(body: str) -> None:
    assert reduced(LOADS + body + STORE) == [*KEPT, "IMAD.WIDE"]


def test_an_index_without_a_sign() -> None:
    body = "LEA R2, P0, R0, R8, 0x3\nLEA.HI.X R3, R0, R9, RZ, 0x3, P0"
    assert reduced(LOADS + body + STORE) == [*KEPT, "IMAD.WIDE.U32"]


def test_an_index_that_is_a_product_is_multiplied_at_once_where_it_cannot_overflow() -> None:
    body = "LOP3.LUT R6, R0, 0xff, RZ, 0xc0, !PT\nIMAD R7, R6, 0x3, RZ\nIADD3 R2, P0, R7, R8, RZ\nLEA.HI.X.SX32 R3, R7, R9, 0x1, P0"
    assert reduced(LOADS + body + STORE) == [*KEPT, "LOP3.LUT", "IMAD.WIDE"]


def test_an_index_that_may_overflow_is_multiplied_before() -> None:
    body = "IMAD R7, R0, 0x3, RZ\nIADD3 R2, P0, R7, R8, RZ\nLEA.HI.X.SX32 R3, R7, R9, 0x1, P0"
    assert reduced(LOADS + body + STORE) == [*KEPT, "IMAD", "IMAD.WIDE"]


def test_a_pointer_in_uniform_registers_is_loaded_into_others_some_instructions_earlier() -> None:
    body = "SHF.R.S32.HI R5, RZ, 0x1f, R0\nLEA R2, P0, R0, UR6, 0x1\nLEA.HI.X R3, R0, UR7, R5, 0x1, P0"
    waiting = "\n".join([f"IADD3 R0, R0, R{i}, RZ" for i in (10, 11, 12)])
    found = reduced(UNIFORM + f"MOV R10, 0x1\nMOV R11, 0x2\nMOV R12, 0x3\n{waiting}\n" + body + STORE)
    assert found == ["ULDC.64", "LDC.64", "MOV", "MOV", "MOV", "IADD3", "IADD3", "IADD3", "IMAD.WIDE"]


def test_a_pointer_in_constant_memory_takes_a_register_for_the_factor() -> None:
    body = "SHF.R.S32.HI R5, RZ, 0x1f, R0\nLEA R2, P0, R0, c[0x0][0x160], 0x2\nLEA.HI.X R3, R0, c[0x0][0x164], R5, 0x2, P0"
    assert sorted(reduced("ULDC.64 UR4, c[0x0][0x208]\n" + body + STORE, "sm_80")) == ["IMAD.WIDE", "MOV", "ULDC.64"]


UNCHANGED = {
    "the carry goes elsewhere": "IADD3 R2, P0, R0, R8, RZ\nLEA.HI.X.SX32 R3, R0, R9, 0x1, P0\nSEL R0, R2, R3, P0",
    "the sign of another number": "IADD3 R5, R0, 0x1, RZ\nIADD3 R2, P0, R0, R8, RZ\nLEA.HI.X.SX32 R3, R5, R9, 0x1, P0",
    "another shift in the upper word": "LEA R2, P0, R0, R8, 0x2\nLEA.HI.X.SX32 R3, R0, R9, 0x3, P0",
    "a guarded sum": "ISETP.NE.AND P1, PT, R0, 0x1, PT\nMOV R2, R8\nMOV R3, R9\n@P1 IADD3 R2, P0, R0, R8, RZ\n"
    "@P1 LEA.HI.X.SX32 R3, R0, R9, 0x1, P0",
}


@pytest.mark.parametrize("why", UNCHANGED)
def test_what_stays(why: str) -> None:
    module, _ = lifted(LOADS + UNCHANGED[why] + STORE, "sm_90")
    before = str(module)
    StrengthReduce().apply(Context(), module)
    assert str(module) == before


def test_a_pointer_that_has_to_stay_in_uniform_registers_is_not_loaded_again() -> None:
    body = "IADD3 R2, P0, R0, UR6, RZ\nLEA.HI.X.SX32 R3, R0, UR7, 0x1, P0\nMOV R0, UR6"
    assert reduced(UNIFORM + body + STORE) == ["ULDC.64", "ULDC.64", "IADD3", "LEA.HI.X.SX32", "MOV"]


@pytest.mark.parametrize("name", ["IMAD.WIDE", "IMAD.WIDE.U32"])
def test_a_wide_product_of_which_one_word_is_needed(name: str) -> None:
    body = f"LDC.64 R2, c[0x0][0x210]\nMOV R4, 0x7\nMOV R5, 0x9\n{name} R6, R0, 0x6, R4\nSTG.E desc[UR4][R2.64], R6"
    assert reduced("ULDC.64 UR4, c[0x0][0x208]\n" + body) == ["ULDC.64", "LDC.64", "MOV", "IMAD"]


def test_a_step_by_a_shifted_number_is_a_sum() -> None:
    body = "LDC.64 R2, c[0x0][0x210]\nMOV R4, 0x400\nLEA R5, R4, R0, 0x5\nSTG.E desc[UR4][R2.64], R5"
    assert reduced("ULDC.64 UR4, c[0x0][0x208]\n" + body) == ["ULDC.64", "LDC.64", "IADD3"]


@pytest.mark.parametrize("kernel", ["rgb2gray_u8", "cupy_l2norm", "cupy_where"])
def test_kernels_of_the_suite_get_shorter_and_compute_the_same(kernel: str) -> None:
    original, file = (BENCH / "cubins" / f"{kernel}.sm_90.cubin").read_bytes(), read_launch_file(BENCH / "launch" / f"{kernel}.toml")
    launch, whole = file.launch("small"), read_pipeline("launch")
    without = Pipeline("test", 1, tuple([step for step in whole.passes if step != "sass-strength-reduce"]))
    made, other = [optimise_cubin(Task(original, kernel, pipeline, file.facts, launch)).cubin for pipeline in (whole, without)]
    assert _length(made) < _length(other)
    before, after = emulate(original, launch), emulate(made, launch)
    assert all(np.array_equal(before[k].view(np.uint8), after[k].view(np.uint8)) for k in before)


def _length(cubin: bytes) -> int:
    return sum(line.instruction.mnemonic != "NOP" for function in read_program(cubin).functions for line in function.lines)
