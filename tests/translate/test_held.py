"""Registers that an instruction needs although no operand names them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from sassir.asm import Function, Program
from sassir.dialect.instruction import SassBranch, SassInstruction
from sassir.dialect.operations import KernelOp
from sassir.translate.callees import Callees
from sassir.translate.cubin import read_module
from sassir.translate.emit import emit_function, emit_program
from sassir.translate.lift import lift_function, lift_program

Build = Callable[..., Function]

CALLER = """
MOV R4, 0x1
MOV R9, 0x2
MOV R7, 0x3
MOV R20, 0x0
MOV R21, 0x0
CALL.ABS.NOINC 0x0
STS [R9], R4
EXIT
"""
LINKS = {0x30: "ABS32_LO_32 return_60", 0x40: "ABS32_HI_32 return_60", 0x50: "ABS47_34 callee"}
CALLEE = "IADD3 R4, R4, R5, RZ\nMOV R6, R4\nRET.ABS.NODEC R20 0x0"


@pytest.fixture
def caller(function: Build) -> Function:
    return function(CALLER, {"return_60": 0x60})._replace(links=LINKS)


def held(kernel: KernelOp) -> list[str]:
    """The registers in the hidden holes of the only call."""
    (call,) = [op for op in kernel.walk() if isinstance(op, SassInstruction) and op.MNEMONIC == "CALL"]
    template = call.template.data
    return [str(v.type).partition("<")[2][:-1] for v in call.reads[len(template.holes[: template.visible]) :]]


def test_a_call_of_unknown_code_holds_all_that_was_written(caller: Function) -> None:
    kernel = lift_function(caller, {})
    assert held(kernel) == ["R4", "R7", "R9", "R20", "R21"]
    assert kernel.fixed is None
    assert emit_function(kernel) == caller


def test_a_call_of_known_code_holds_what_that_reads_and_what_is_read_later(caller: Function, function: Build) -> None:
    """R7 is neither; R5 is read by the callee, though nobody wrote it."""
    program = Program("sm_80", (caller, function(CALLEE)._replace(name="callee", section=8)), None)
    module = lift_program(program)
    first, _ = (op for op in module.body.ops if isinstance(op, KernelOp))
    assert held(first) == ["R4", "R5", "R9", "R20", "R21"]
    assert emit_program(module) == program


def test_what_comes_back_is_new(caller: Function) -> None:
    kernel = lift_function(caller, {})
    call = next(op for op in kernel.walk() if isinstance(op, SassBranch) and op.MNEMONIC == "CALL")
    assert call.produces
    assert [str(a.type) for a in call.successors[0].args] == ["!sass.r<R4>", "!sass.r<R9>"]


def test_two_functions_of_one_name_are_unknown(function: Build) -> None:
    twice = Program("sm_80", (function(CALLEE)._replace(name="f"), function("EXIT")._replace(name="f")), None)
    assert Callees(twice, {}).reads("ABS47_34 f") is None
    assert Callees(twice, {}).reads("ABS47_34 g") is None
    assert Callees(twice, {}).reads(None) is None


def test_a_callee_that_calls_unknown_code_is_unknown(caller: Function) -> None:
    assert Callees(Program("sm_80", (caller._replace(name="f"),), None), {}).reads("ABS47_34 f") is None


def test_matrix_instructions_hold_their_registers_until_they_are_waited_for() -> None:
    """HGMMA reads its first matrix from registers, and writes the last, while other instructions run."""
    data = (Path(__file__).parents[1] / "cubins" / "isa_tensor.sm_90a.cubin").read_bytes()
    for kernel in read_module(data).body.ops:
        ops = [op for op in kernel.walk() if isinstance(op, SassInstruction)]
        matrix = [op for op in ops if op.MNEMONIC == "HGMMA"]
        if matrix:
            wait = next(op for op in ops if op.MNEMONIC == "WARPGROUP" and op.modifiers is not None and "DEPBAR" in op.modifiers.data)
            assert {r for op in matrix for r in op.results} & set(wait.reads)
            vector = [v for op in matrix for v in op.reads if str(v.type).startswith("!sass.r<")]
            assert {v.type for v in vector} <= {v.type for v in wait.reads}
            return
    pytest.fail("no kernel with HGMMA")
