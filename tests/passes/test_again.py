"""A pass that found nothing to change looks at the kernel again only once that has changed; nothing is lost by it."""

from __future__ import annotations

import gc

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.passes import ModulePass

from sassir.analysis.propagated import propagate
from sassir.asm import INSTRUCTION_BYTES, Function, Line
from sassir.asm.parse import parse_instruction
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.operations import KernelOp
from sassir.optimize import collection_paused
from sassir.passes.gvn import GlobalValueNumbering
from sassir.passes.specialize import Specialize
from sassir.passes.virtualise import Virtualise
from sassir.translate.lift import ARCH, lift_function

CODE = """S2R R0, SR_TID.X
IADD3 R1, R0, R2, RZ
IADD3 R3, R0, R4, RZ
STG.E [R1], R3
EXIT"""


def _kernel() -> tuple[ModuleOp, KernelOp]:
    lines = tuple([Line(parse_instruction(line), INSTRUCTION_BYTES * i) for i, line in enumerate(CODE.splitlines())])
    made = lift_function(Function("k", None, lines, {}), {})
    module = ModuleOp([made], {ARCH: StringAttr("sm_90")})
    Virtualise().apply(Context(), module)
    return module, made


def _ops(kernel: KernelOp) -> list[SassInstruction]:
    return [op for block in kernel.body.blocks for op in block.ops if isinstance(op, SassInstruction)]


@pytest.mark.parametrize("step", [GlobalValueNumbering(), Specialize()])
def test_it_does_what_became_possible(step: ModulePass) -> None:
    """The two sums become one and the same; or a copy of what they add."""
    module, kernel = _kernel()
    step.apply(Context(), module)
    assert step.name in propagate(kernel, "sm_90").settled
    first, second = [op for op in _ops(kernel) if op.MNEMONIC == "IADD3"]
    if isinstance(step, GlobalValueNumbering):
        second.operands = first.operands
    else:
        second.template = type(second.template).of("=R, $R, RZ, RZ")
        second.operands = [second.operands[0]]
    assert step.name not in propagate(kernel, "sm_90").settled
    step.apply(Context(), module)
    module.verify()
    assert [op.MNEMONIC for op in _ops(kernel)].count("IADD3") == 1


def test_garbage_is_collected_again_after_a_failure() -> None:
    assert gc.isenabled()
    with pytest.raises(ValueError, match="on purpose"):
        _fail_without_collection()
    assert gc.isenabled()


def _fail_without_collection() -> None:
    with collection_paused():
        assert not gc.isenabled()
        raise ValueError("on purpose")
