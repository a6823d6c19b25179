"""Lifting: which values, blocks and labels a function becomes, and what is said when something is not known."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sassir.asm import Function, Program
from sassir.dialect.instruction import SassBranch, SassInstruction
from sassir.dialect.operations import KernelOp, OpaqueOp
from sassir.errors import TranslationError
from sassir.translate.emit import emit_function, emit_program
from sassir.translate.lift import lift_function, lift_program

Build = Callable[..., Function]

LOOP = """
MOV R0, RZ
FADD R2, R2, R3
IADD3 R0, R0, 0x1, RZ
ISETP.GE.AND P0, PT, R0, R4, PT
@!P0 BRA .-0x30
STG.E desc[UR4][R6.64], R2
EXIT
BRA .+0x0
NOP
"""

CALL = """
MOV R20, 0x30
MOV R21, 0x0
CALL.REL.NOINC .+0x20
EXIT
IADD3 R4, R4, 0x1, RZ
RET.REL.NODEC R20 .-0x50
"""


def instructions(kernel: KernelOp) -> list[SassInstruction]:
    return [op for op in kernel.walk() if isinstance(op, SassInstruction)]


def same_after_lifting(function: Function, fixed: str | None = None) -> KernelOp:
    """Lift, check that emitting gives the function back, and that what is unknown is said."""
    kernel = lift_function(function, {})
    kernel.verify()
    assert emit_function(kernel) == function
    assert (kernel.fixed.data if kernel.fixed else None) == fixed
    return kernel


def test_each_result_is_a_new_value(function: Build) -> None:
    kernel = same_after_lifting(function("IADD3 R1, R1, R2, RZ\nIADD3 R1, R1, R2, RZ\nEXIT"))
    first, second, _ = instructions(kernel)
    assert [v.owner for v in second.reads] == [first, kernel.body.blocks[0]]


def test_values_live_on_entry_are_arguments(function: Build) -> None:
    kernel = same_after_lifting(function("STG.E desc[UR4][R2.64+0x10], R9\nEXIT"))
    assert [str(t) for t in kernel.body.blocks[0].arg_types] == [
        "!sass.r<R2>", "!sass.r<R3>", "!sass.r<R9>", "!sass.ur<UR4>", "!sass.ur<UR5>",
    ]  # fmt: skip


def test_zero_registers_stay_text(function: Build) -> None:
    (op, _) = instructions(same_after_lifting(function("IADD3 R1, PT, PT, RZ, RZ, RZ\nEXIT")))
    assert op.template.text == "=R, PT, PT, RZ, RZ, RZ"


def test_a_wide_operand_is_several_values(function: Build) -> None:
    (op, _) = instructions(same_after_lifting(function("DFMA R8, R2, R4, -R6\nEXIT")))
    assert op.template.text == "=R2, $R2, $R2, -$R2"
    assert (len(op.results), len(op.reads)) == (2, 6)


def test_a_guarded_result_keeps_the_old_value(function: Build) -> None:
    (old, op, _) = instructions(same_after_lifting(function("MOV R1, 0x1\n@!P3 MOV R1, R2\nEXIT")))
    assert op.guard is not None
    assert op.guard.type == op.guard.type.from_name("P3")  # type: ignore[attr-defined]
    assert op.unless is not None
    assert op.kept == (old.results[0],)


def test_a_guard_that_never_holds_stays(function: Build) -> None:
    (op, _) = instructions(same_after_lifting(function("@!PT LDS RZ, [RZ]\nEXIT")))
    assert op.constant_guard is not None
    assert op.constant_guard.data == "!PT"


def test_registers_that_text_hides_are_values(function: Build) -> None:
    (op, _) = instructions(same_after_lifting(function("R2P PR, R1, 0x3\nEXIT")))
    assert op.template.text == "PR, $R, 0x3; =P =P"


def test_loop_values_are_block_arguments(function: Build) -> None:
    kernel = same_after_lifting(function(LOOP))
    loop = kernel.body.blocks[1]
    assert [str(t) for t in loop.arg_types] == ["!sass.r<R0>", "!sass.r<R2>"]
    branch = loop.last_op
    assert isinstance(branch, SassBranch)
    assert list(branch.successors) == [loop, kernel.body.blocks[2]]
    assert [str(v.type) for v in branch.forwarded(0)] == ["!sass.r<R0>", "!sass.r<R2>"]


def test_unreachable_tail_is_kept(function: Build) -> None:
    tail = same_after_lifting(function(LOOP)).body.blocks[3]
    assert tail.last_op is not None
    assert list(tail.last_op.successors) == [tail]


def test_a_loop_to_the_first_instruction_gets_an_entry_block(function: Build) -> None:
    kernel = same_after_lifting(function("IADD3 R0, R0, 0x1, RZ\nBRA .-0x10"))
    assert [op.name for op in kernel.body.blocks[0].ops] == ["sass.next"]


def test_a_label_on_the_first_instruction_stays_in_the_loop(function: Build) -> None:
    kernel = same_after_lifting(function("IADD3 R0, R0, 0x1, RZ\nBRA .-0x10", {"start": 0}))
    assert [op.name for op in kernel.body.blocks[1].ops] == ["sass.label", "sass.iadd3", "sass.bra"]


def test_a_call_is_a_jump_and_its_return_address_a_label(function: Build) -> None:
    kernel = same_after_lifting(function(CALL))
    ops = instructions(kernel)
    assert ops[0].template.text == "=R, &"
    assert ops[0].place is not None
    call, ret = (op for op in ops if op.MNEMONIC in ("CALL", "RET"))
    blocks = list(kernel.body.blocks)
    assert list(call.successors) == [blocks[2]]
    assert list(ret.successors) == [blocks[1]]


@pytest.mark.parametrize("branch", ["BRA.CONV .+0x20", "BRA.DIV UR4, .+0x20", "BRA.CONV ~URZ, .+0x20"])
def test_a_branch_that_goes_by_which_threads_run_may_go_on(function: Build, branch: str) -> None:
    """On sm_75 it may name no mask."""
    code = function(f"{branch}\nNOP\nEXIT")
    kernel = lift_function(code, {})
    first, behind, target = kernel.body.blocks
    assert first.last_op is not None
    assert list(first.last_op.successors) == [target, behind]
    assert emit_function(kernel) == code


def test_labels_of_the_function_come_back(function: Build) -> None:
    same_after_lifting(function(CALL, {"helper": 0x40, "end": 0x60}))


def test_reconvergence_point_is_a_label(function: Build) -> None:
    kernel = same_after_lifting(function("BSSY B0, .+0x30\n@P0 BRA .+0x10\nBSYNC B0\nEXIT"))
    assert instructions(kernel)[0].template.text == "=B, ^"
    assert instructions(kernel)[0].place is not None


LOST_RETURN = """
CALL.REL.NOINC .+0x20
EXIT
RET.REL.NODEC R20 .-0x20
"""


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("FROB.U8 R1, R2\nEXIT", "FROB.U8 R1, R2 at 0x0 is opaque: the registers of FROB.U8 are not known"),
        ("OPAQUE 0x1234\nEXIT", "OPAQUE 0x1234 at 0x0 is opaque: no encoder table describes its word"),
        ("BRX R2 .+0x0", "BRX R2, .+0x0 at 0x0 goes to places that no attribute of the file tells"),
        ("BRA .+0x1000", "BRA .+0x1000 at 0x0 names 0x1000, which is no instruction of the section"),
        (LOST_RETURN, "CALL.REL.NOINC .+0x20 at 0x0 returns to an address that no instruction of the section names"),
        ("BSYNC B0\nEXIT", "BSYNC B0 at 0x0 waits for a barrier whose BSSY does not name the next instruction"),
    ],
)  # fmt: skip
def test_what_is_not_known_is_named(function: Build, code: str, reason: str) -> None:
    same_after_lifting(function(code), reason)


def test_an_unknown_instruction_has_no_values(function: Build) -> None:
    op = instructions(lift_function(function("FROB.U8 R1, R2\nEXIT"), {}))[0]
    assert isinstance(op, OpaqueOp)
    assert (*op.operands, *op.results) == ()


def test_jump_table_targets_are_successors(function: Build) -> None:
    code = function("BRX R2 .+0x0\nEXIT\nEXIT", {"a": 0x10, "b": 0x20})
    kernel = lift_function(code, {0: ("a", "b")})
    assert emit_function(kernel) == code
    assert kernel.fixed is None
    (branch, *_) = instructions(kernel)
    assert list(branch.successors) == list(kernel.body.blocks)[1:]


def test_every_source_of_a_number_in_the_return_register_must_be_clear(function: Build) -> None:
    """0x30 in R20 is the return address of the call; the second one could be data, so the code must stay in place."""
    kernel = lift_function(function(f"{CALL.strip()}\nMOV R20, 0x30"), {})
    assert kernel.fixed is not None
    assert "may or may not write a return address" in kernel.fixed.data


def test_a_label_inside_of_an_instruction_is_refused(function: Build) -> None:
    with pytest.raises(TranslationError, match="label odd is at 0x8; expected a multiple of 16"):
        lift_function(function("EXIT", {"odd": 8}), {})


def test_a_program_of_several_functions_comes_back(function: Build) -> None:
    functions = (function(LOOP), function(CALL)._replace(name="other", section=9), function("EXIT")._replace(section=11))
    program = Program("sm_90", functions, b"the file")
    assert emit_program(lift_program(program)) == program
