"""sass-assign-control: control codes from nothing that the checker accepts, and that are no tighter or looser than needed."""

from __future__ import annotations

from pathlib import Path

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block

from sassir.asm import INSTRUCTION_BYTES, Function, Line, Program
from sassir.asm.control import Control
from sassir.asm.parse import parse_instruction
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.operations import KernelOp, NextOp
from sassir.passes.assign_control import AssignControl
from sassir.translate.cubin import read_module, write_cubin
from sassir.translate.emit import emit_program
from sassir.translate.lift import lift_program
from sassir.verify.schedule import check_schedule

CUBINS = sorted((Path(__file__).parents[1] / "cubins").glob("*.cubin"))


def assigned(module: ModuleOp) -> Program:
    """The program after the pass."""
    AssignControl().apply(Context(), module)
    return emit_program(module)


def kernels(module: ModuleOp) -> list[KernelOp]:
    return [op for op in module.body.ops if isinstance(op, KernelOp)]


@pytest.mark.parametrize("path", CUBINS, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore::sassir.errors.SassirWarning")
def test_the_checker_accepts_it(path: Path) -> None:
    module = read_module(path.read_bytes())
    movable = {kernel.function.data for kernel in kernels(module) if kernel.fixed is None}
    made = assigned(module)
    assert [f for f in check_schedule(made) if f.kernel in movable] == []
    write_cubin(made)


@pytest.mark.parametrize("name", ["aes_tconst.sm_90", "loop.sm_80", "calls.sm_100"])
def test_the_codes_that_were_there_do_not_matter(name: str) -> None:
    data = (Path(__file__).parents[1] / "cubins" / f"{name}.cubin").read_bytes()
    bare = read_module(data)
    for op in bare.walk():
        if isinstance(op, SassInstruction):
            op.properties.pop("control", None)
    assert [f.lines for f in assigned(bare).functions] == [f.lines for f in assigned(read_module(data)).functions]


def program(text: str, arch: str = "sm_90") -> Program:
    """One function of one instruction a line."""
    code = [parse_instruction(line.strip()) for line in text.strip().splitlines()]
    function = Function("k", None, tuple([Line(c, INSTRUCTION_BYTES * i) for i, c in enumerate(code)]), {})
    return Program(arch, (function,), None)


def test_a_kernel_that_must_stay_keeps_its_codes() -> None:
    before = program("IADD3 R2, R2, 0x1, RZ\nBRX R2, -0x20\nEXIT")
    module = lift_program(before)
    assert [kernel.fixed is not None for kernel in kernels(module)] == [True]
    assert assigned(module) == before


def codes(text: str, arch: str = "sm_90") -> list[str]:
    """The instructions of a text, one a line, with the control codes that they get."""
    made = assigned(lift_program(program(text, arch)))
    assert check_schedule(made) == []
    return [f"{line.instruction.control} {line.instruction}" for line in made.functions[0].lines]


def test_a_pipe_is_free_before_its_next_instruction_whatever_stands_between() -> None:
    made = codes("""
        LDG.E R4, desc[UR4][R2.64]
        MOV R8, 0x4
        LDG.E R5, desc[UR4][R2.64+0x4]
        MUFU.RCP R6, R9
        MOV R10, 0x5
        MUFU.RCP R7, R9
        EXIT
    """)
    stalls = [int(line.split("]")[0][-2:]) for line in made[:6]]
    assert sum(stalls[0:2]) == 4
    assert sum(stalls[3:5]) == 8


def test_fixed_latencies_become_stalls_and_late_ones_waits() -> None:
    assert codes("""
        S2R R0, SR_TID.X
        MOV R2, 0x4
        IADD3 R1, R0, R2, RZ
        IADD3 R1, R1, 0x1, RZ
        ISETP.GE.AND P0, PT, R1, R2, PT
        @P0 EXIT
        EXIT
    """) == [
        "[B------:R-:W0:-:S01] S2R R0, SR_TID.X",
        "[B------:R-:W-:Y:S04] MOV R2, 0x4",
        "[B0-----:R-:W-:Y:S04] IADD3 R1, R0, R2, RZ",
        "[B------:R-:W-:Y:S04] IADD3 R1, R1, 0x1, RZ",
        "[B------:R-:W-:Y:S13] ISETP.GE.AND P0, PT, R1, R2, PT",
        "[B------:R-:W-:-:S05] @P0 EXIT",
        "[B------:R-:W-:-:S05] EXIT",
    ]  # fmt: skip


def test_loads_that_are_needed_together_share_a_scoreboard() -> None:
    first, second, _, third, *_ = codes("""
        LDG.E R1, desc[UR4][R8.64]
        LDG.E R2, desc[UR4][R8.64+0x4]
        FADD R3, R1, R2
        LDG.E R4, desc[UR4][R8.64+0x8]
        FADD R5, R4, R3
        STG.E desc[UR4][R8.64], R5
        EXIT
    """)
    assert (":W0:" in first, ":W0:" in second, ":W0:" in third) == (True, True, True)


def test_loads_that_are_needed_one_after_the_other_do_not() -> None:
    first, second, *_ = codes("""
        LDG.E R0, desc[UR4][R8.64]
        LDG.E R1, desc[UR4][R8.64+0x4]
        MUFU.RCP R0, R0
        FADD R2, R0, R1
        EXIT
    """)
    assert (":W0:" in first, ":W1:" in second) == (True, True)


def test_nothing_is_drained_at_the_end_of_a_block() -> None:
    lines = codes("""
        LDG.E R1, desc[UR4][R8.64]
        @P0 BRA .+0x20
        IADD3 R2, R2, 0x1, RZ
        FADD R3, R1, R2
        STG.E desc[UR4][R8.64], R3
        EXIT
    """)
    assert [line[:10] for line in lines] == ["[B------:R"] * 3 + ["[B0-----:R"] + ["[B------:R"] * 2


def test_what_a_loop_reads_from_before_is_awaited_before_it() -> None:
    lines = codes("""
        HMMA.16816.F32 R4, R12, R16, R4
        FADD R4, R4, R0
        @P0 BRA .-0x10
        STG.E desc[UR4][R8.64], R4
        EXIT
    """)
    stalls = [Control.parse(line[: line.index("]") + 1]).stall for line in lines]
    assert "NOP" in lines[1]  # a matrix product takes longer than any stall count
    assert sum(stalls[:2]) == 24
    assert stalls[3] == 5


def test_an_operand_of_a_store_is_released_by_a_younger_load_of_its_queue() -> None:
    store, _, add, move, *_ = codes("""
        STG.E desc[UR4][R8.64], R1
        LDG.E R2, desc[UR4][R8.64+0x4]
        FADD R3, R2, R2
        MOV R1, 0x1
        STG.E desc[UR4][R8.64], R1
        EXIT
    """)
    assert store.startswith("[B------:R-:W-")
    assert add.startswith("[B0-----")
    assert move.startswith("[B------")


def test_complementary_guards_do_not_wait_for_each_other() -> None:
    _, other, reader, *_ = codes("""
        @P0 LDG.E R1, desc[UR4][R8.64]
        @!P0 MOV R1, RZ
        FADD R2, R1, R1
        STG.E desc[UR4][R8.64], R2
        EXIT
    """)
    assert other.startswith("[B------")
    assert reader.startswith("[B0-----")


def test_operands_that_the_next_instruction_reads_in_the_same_slot_are_marked() -> None:
    lines = codes("""
        FFMA R0, R4, R5, R6
        FFMA R1, R4, R7, R6
        FFMA R4, R4, R5, R6
        FFMA R2, R4, R5, R6
        EXIT
    """)
    assert [line.partition("] ")[2] for line in lines[:4]] == [
        "FFMA R0, R4.reuse, R5, R6.reuse",
        "FFMA R1, R4.reuse, R7, R6.reuse",
        "FFMA R4, R4, R5, R6",
        "FFMA R2, R4, R5, R6",
    ]


def test_groups_of_asynchronous_copies_keep_the_scoreboard_that_depbar_counts() -> None:
    lines = codes("""
        LDGSTS.E [R1], desc[UR4][R8.64]
        LDGDEPBAR
        LDG.E R2, desc[UR4][R10.64]
        DEPBAR.LE SB0, 0x0
        FADD R2, R2, R2
        STG.E desc[UR4][R8.64], R2
        EXIT
    """)
    assert ":W0:" in lines[1]
    assert ":W0:" not in lines[2]


def test_before_unknown_code_everything_is_over() -> None:
    lines = codes("""
        LDG.E R4, desc[UR4][R8.64]
        HFMA2.MMA R5, R6, R7, R6
        MOV R20, 0x50
        MOV R21, 0x0
        CALL.ABS.NOINC R2
        EXIT
    """)
    call = Control.parse(lines[4].partition("] ")[0] + "]")
    assert 0 in call.wait
    assert ":W0:" in lines[0]


def test_only_what_a_barrier_is_about_comes_later_than_it() -> None:
    bar, move, load, *_ = codes("""
        BAR.SYNC.DEFER_BLOCKING 0x0
        MOV R1, 0x1
        LDS R4, [R8]
        STS [R8], R4
        EXIT
    """)
    stalls = [Control.parse(line.partition("] ")[0] + "]").stall for line in (bar, move)]
    assert stalls == [1, 5]
    assert load.endswith("LDS R4, [R8]")


def test_a_block_without_instructions_hides_nothing() -> None:
    module = lift_program(program("MOV R4, 0x1\nHMMA.16816.F32 R4, R12, R16, R4\nFADD R4, R4, R0\n@P0 BRA .-0x10\nEXIT"))
    (kernel,) = kernels(module)
    first = next(iter(kernel.body.blocks))
    assert isinstance(first.last_op, NextOp)
    loop = first.last_op.target
    between = Block(arg_types=[argument.type for argument in loop.args])
    between.add_op(NextOp.create(operands=list(between.args), successors=[loop]))
    kernel.body.insert_block(between, 1)
    first.last_op.successors = [between]
    assert check_schedule(assigned(module)) == []


def test_operands_do_not_wait_for_a_result_that_is_needed_later() -> None:
    """black_scholes overwrites the address of a load two blocks before it needs what was loaded."""
    suite = Path(__file__).parents[2] / "bench" / "cubins"
    (function,) = assigned(read_module((suite / "black_scholes.sm_90.cubin").read_bytes())).functions
    load = function.lines[0x110 // INSTRUCTION_BYTES].instruction
    overwriting = function.lines[0x280 // INSTRUCTION_BYTES].instruction
    assert (load.mnemonic, overwriting.mnemonic) == ("LDG", "LOP3")
    assert load.control is not None
    assert overwriting.control is not None
    assert load.control.write not in overwriting.control.wait
    assert load.control.read in overwriting.control.wait
