"""The checker that the other tests rely on finds planted bugs."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from xdsl.ir import Operation

from sassir.allocation.allocate import allocate
from sassir.dialect import internals
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.operations import KernelOp

Kernel = Callable[[str], KernelOp]
SameValues = Callable[[KernelOp], Callable[[], None]]

MANY = "\n".join([f'%c{i} = sass.s2r "=R, SR_CLOCKLO"()' for i in range(24)])
SUMS = [f'%s{i} = sass.iadd3 "=R, $R, $R, RZ"(%s{i - 1}, %c{i})' for i in range(1, 24)]
SUM = "\n".join([MANY, '%s0 = sass.mov "=R, $R"(%c0)', *SUMS])


def ops(kernel: KernelOp, mnemonic: str) -> list[SassInstruction]:
    return [op for op in kernel.body.walk() if isinstance(op, SassInstruction) and mnemonic == op.MNEMONIC]


def test_an_untouched_kernel_passes(kernel: Kernel, same_values: SameValues) -> None:
    check = same_values(k := kernel(SUM))
    allocate(k, "sm_90", 18)
    assert ops(k, "LDL")
    check()


def test_a_load_from_another_slot_is_found(kernel: Kernel, same_values: SameValues) -> None:
    check = same_values(k := kernel(SUM))
    allocate(k, "sm_90", 18)
    first, second = ops(k, "LDL")[:2]
    first.template = second.template
    with pytest.raises(AssertionError, match="need not be"):
        check()


def test_a_missing_store_is_found(kernel: Kernel, same_values: SameValues) -> None:
    check = same_values(k := kernel(SUM))
    allocate(k, "sm_90", 18)
    drop(ops(k, "STL")[0])
    with pytest.raises(AssertionError, match="need not be"):
        check()


def test_an_exchanged_operand_is_found(kernel: Kernel, same_values: SameValues) -> None:
    check = same_values(k := kernel(SUM))
    allocate(k, "sm_90")
    add = ops(k, "IADD3")[0]
    add.operands = tuple(reversed(internals.operands(add)))
    with pytest.raises(AssertionError, match="need not be"):
        check()


def drop(op: Operation) -> None:
    op.detach()
    op.erase()
