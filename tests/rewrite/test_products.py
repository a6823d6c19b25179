"""Chains of wide products: one instruction, and the same 64-bit number at the end, also where carries happen on the way."""

from __future__ import annotations

from xdsl.ir import SSAValue

from sassir.analysis.folding import fold
from sassir.asm import INSTRUCTION_BYTES, Function, Line
from sassir.asm.parse import parse_instruction
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.operations import KernelOp
from sassir.passes.dce import drop_dead_code
from sassir.passes.virtualise import virtualise
from sassir.rewrite.products import collapse_products
from sassir.translate.lift import lift_function

BASES = [0, 1, 0xFFFF_FFFF, 0xFFFF_FFF0, 0x7_FFFF_8000, 0xFFFF_FFFF_FFFF_FFF0, 0x1234_5678_9ABC_DEF0]


def kernel_of(text: str) -> KernelOp:
    """Steps of R2 and R3, which are then stored to."""
    code = [parse_instruction(line) for line in f"{text}\nSTG.E desc[UR4][R2.64], R9 ;\nEXIT ;".splitlines() if line.strip()]
    kernel = lift_function(Function("k", None, tuple([Line(c, INSTRUCTION_BYTES * i) for i, c in enumerate(code)]), {}), {})
    assert virtualise(kernel) is None
    return kernel


def unknown(bank: int, offset: int) -> None:
    """What constant memory holds."""


def stored_to(kernel: KernelOp, base: int, factor: int) -> int:
    """The address at the end, where R2 and R3 are `base` at first and R5 is `factor`."""
    (block,) = kernel.body.blocks
    first: dict[str, int] = {"R2": base & 0xFFFFFFFF, "R3": base >> 32, "R5": factor & 0xFFFFFFFF}
    values: dict[SSAValue, int] = {}
    for argument in block.args:
        values[argument] = first.pop((argument.name_hint or "").upper(), 0)
    assert "R2" not in first
    assert "R3" not in first
    for op in block.ops:
        if isinstance(op, SassInstruction) and op.results:
            found = fold(op, [values[v] for v in op.reads], unknown, "sm_90")
            assert found is not None
            values.update(zip(op.results, found, strict=True))
        elif isinstance(op, SassInstruction) and op.MNEMONIC == "STG":
            return values[op.reads[3]] << 32 | values[op.reads[2]]
    raise AssertionError("the kernel has no store")


def collapsed(text: str) -> tuple[int, int]:
    """The number of instructions before and after; the address is checked for many bases."""
    before, after = kernel_of(text), kernel_of(text)
    collapse_products(after, "sm_90")
    drop_dead_code(after.body)
    after.verify()
    for base in BASES:
        for factor in (0, 1, -1, 0x400, 0x7FFFFFFF, -0x80000000):
            assert stored_to(after, base, factor) == stored_to(before, base, factor)
    sizes = [sum(isinstance(op, SassInstruction) for op in k.walk()) - 2 for k in (before, after)]
    return sizes[0], sizes[1]


def test_products_of_one_factor_become_one() -> None:
    text = "IMAD.WIDE R2, R5, 0x4, R2 ;\n" * 15
    assert collapsed(text) == (15, 1)
    assert collapsed("IMAD.WIDE.U32 R2, R5, 0x4, R2 ;\n" * 3) == (3, 1)


def test_signed_and_unsigned_products_are_not_mixed() -> None:
    assert collapsed("IMAD.WIDE.U32 R2, R5, 0x4, R2 ;\nIMAD.WIDE R2, R5, 0x4, R2 ;\n") == (2, 2)


def test_products_of_different_factors_stay() -> None:
    assert collapsed("IMAD.WIDE R2, R5, 0x4, R2 ;\nIMAD.WIDE R2, R6, 0x4, R2 ;\n") == (2, 2)


def test_numbers_whose_sum_has_more_than_31_bits_stay() -> None:
    assert collapsed("IMAD.WIDE R2, R5, 0x7ffffff0, R2 ;\n" * 2) == (2, 2)


def test_a_sum_that_something_else_uses_stays() -> None:
    step = "IMAD.WIDE R2, R5, 0x4, R2 ;\n"
    kernel = kernel_of(f"{step}STG.E desc[UR4][R2.64], R9 ;\n{step}")
    assert collapse_products(kernel, "sm_90") == 0


def test_a_guarded_step_stays() -> None:
    text = "IMAD.WIDE R2, R5, 0x4, R2 ;\n@P1 IMAD.WIDE R2, R5, 0x4, R2 ;\n"
    kernel = kernel_of(text)
    assert collapse_products(kernel, "sm_90") == 0
