"""sass-schedule where registers are short."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr

from sassir.analysis.flow import flow_of
from sassir.analysis.liveness import Liveness
from sassir.analysis.pressure import pressure
from sassir.asm import INSTRUCTION_BYTES, Function, Line
from sassir.asm.parse import parse_instruction
from sassir.dialect.facts import FACTS, FactsAttr, KernelFacts, facts_of
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.operations import UndefinedOp
from sassir.dialect.registers import REGISTERS
from sassir.machine import machine
from sassir.passes.check_allocation import CheckAllocation
from sassir.passes.schedule import Schedule
from sassir.passes.virtualise import Virtualise
from sassir.schedule.graph import Graph
from sassir.schedule.order import Pressure, schedule
from sassir.translate.lift import ARCH, lift_function


def test_a_block_of_which_no_warp_could_run_before_values_are_spilled_is_scheduled() -> None:
    """80 values at a time, where a block of 1,024 threads leaves 64 registers for each."""
    loads = [f"LDS R{i + 1}, [R0+{4 * i:#x}]" for i in range(80)]
    sums = [f"FADD R{i + 1}, R{i + 1}, R{i + 2}" for i in range(79)]
    stores = [f"STS [R0+{4 * i:#x}], R{i + 1}" for i in range(80)]
    text = ["S2R R0, SR_TID.X", "IMAD.SHL.U32 R0, R0, 0x4, RZ", *loads, *sums, *stores, "EXIT"]
    lines = tuple([Line(parse_instruction(line), INSTRUCTION_BYTES * i) for i, line in enumerate(text)])
    kernel = lift_function(Function("k", None, lines, {}), {})
    kernel.attributes[FACTS] = FactsAttr(KernelFacts(block=(1024, 1, 1), grid=(1000, 1, 1)))
    module = ModuleOp([kernel], {ARCH: StringAttr("sm_90")})
    Virtualise().apply(Context(), module)
    before = sorted(op.name for block in kernel.body.blocks for op in block.ops)
    Schedule().apply(Context(), module)
    module.verify()
    assert sorted(op.name for block in kernel.body.blocks for op in block.ops) == before


def test_predicates_are_kept_within_their_registers() -> None:
    """Twelve comparisons could all come before the chain of products that they guard; seven predicates have a register."""
    loads = [f"LDS R{i + 10}, [R0+{4 * i:#x}]" for i in range(12)]
    guarded = [line for i in range(12) for line in (f"ISETP.GE.AND P0, PT, R{i + 10}, R0, PT", *[f"@P0 FMUL R2, R2, R{i + 10}"] * 2)]
    text = ["S2R R0, SR_TID.X", "MOV R2, RZ", *loads, *guarded, "STS [R0], R2", "EXIT"]
    lines = tuple([Line(parse_instruction(line), INSTRUCTION_BYTES * i) for i, line in enumerate(text)])
    kernel = lift_function(Function("k", None, lines, {}), {})
    kernel.attributes[FACTS] = FactsAttr(KernelFacts(block=(32, 1, 1), grid=(1, 1, 1)))
    module = ModuleOp([kernel], {ARCH: StringAttr("sm_90")})
    Virtualise().apply(Context(), module)
    (graph,) = [Graph(block, facts_of(kernel), {}, machine("sm_90")) for block in kernel.body.blocks if len(list(block.ops)) > 12]
    free = Pressure(graph, (), ())
    for i in schedule(graph, Pressure(graph, (), ()), 255):
        free.take(graph.ops[i])
    assert free.without_room > 0
    before = [op for block in kernel.body.blocks for op in block.ops]
    Schedule().apply(Context(), module)
    assert [op for block in kernel.body.blocks for op in block.ops] != before
    assert pressure(Liveness(flow_of(kernel.body))).peak["P"] <= 7


def test_an_undefined_value_is_not_put_into_a_register_that_is_still_read() -> None:
    """MOV waits for nothing, but the comparison in front of it reads what R9 holds before."""
    text = [
        "S2R R0, SR_TID.X",
        "LDS R2, [R0]",
        "VIADD R9, R0, 0x4",
        "ISETP.GE.AND P0, PT, R9, R2, PT",
        "MOV R6, R9",
        *[f"LDS R3, [R{n}+0x20]" for n in (0, 3, 3, 3)],
        "@P0 LDS R3, [R0+0x8]",
        "STS [R6+0x10], R3",
        "EXIT",
    ]
    lines = tuple([Line(parse_instruction(line), INSTRUCTION_BYTES * i) for i, line in enumerate(text)])
    kernel = lift_function(Function("k", None, lines, {}), {})
    kernel.attributes[FACTS] = FactsAttr(KernelFacts(block=(32, 1, 1), grid=(1, 1, 1)))
    block = kernel.body.blocks[-1]
    move = next(op for op in block.ops if isinstance(op, SassInstruction) and op.MNEMONIC == "MOV")
    block.insert_op_before(undefined := UndefinedOp.of(REGISTERS[9]), move)
    move.operands[0] = undefined.value
    module = ModuleOp([kernel], {ARCH: StringAttr("sm_90")})
    CheckAllocation().apply(Context(), module)
    before = list(block.ops)
    Schedule().apply(Context(), module)
    assert list(block.ops) != before
    CheckAllocation().apply(Context(), module)
