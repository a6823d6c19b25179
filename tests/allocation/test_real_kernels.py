"""Every kernel of tests/cubins: with its own registers as a wish, without knowing them, and with three quarters of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from sassir.allocation.allocate import allocate
from sassir.allocation.registers import AllocationError
from sassir.analysis.allocation import check_allocation
from sassir.analysis.ssa import verify_ssa
from sassir.asm.program import Function
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.operations import KernelOp
from sassir.translate.cubin import read_program
from sassir.translate.emit import emit_function

CUBINS = sorted((Path(__file__).parents[1] / "cubins").glob("*.cubin"))
Freed = Callable[[str], list[tuple[KernelOp, str]]]
SameValues = Callable[[KernelOp], Callable[[], None]]


def highest(function: Function) -> int:
    """The highest general register in the text of a function."""
    names = [r for line in function.lines for o in line.instruction.operands for r in o.registers]
    return max([int(name[1:]) for name in names if name[0] == "R" and name != "RZ"], default=-1)


@pytest.mark.parametrize("name", [path.stem for path in CUBINS])
def test_the_original_registers_come_back(name: str, freed: Freed) -> None:
    before = {f.name: f for f in read_program((CUBINS[0].parent / f"{name}.cubin").read_bytes()).functions}
    for kernel, arch in freed(name):
        found = allocate(kernel, arch)
        assert (found.copies, found.loads) == (0, 0)
        check_allocation(kernel.body)
        new, old = emit_function(kernel), before[kernel.function.data]
        assert [line.origin for line in new.lines] == [line.origin for line in old.lines]
        for a, b in zip(new.lines, old.lines, strict=True):
            assert [o.registers for o in a.instruction.operands] == [o.registers for o in b.instruction.operands]


@pytest.mark.parametrize("name", [path.stem for path in CUBINS])
def test_registers_that_are_not_known(name: str, freed: Freed, same_values: SameValues) -> None:
    before = {f.name: highest(f) + 3 for f in read_program((CUBINS[0].parent / f"{name}.cubin").read_bytes()).functions}
    for kernel, arch in freed(name):
        for op in kernel.body.walk():
            if isinstance(op, SassInstruction):
                op.origin = None
        check = same_values(kernel)
        found = allocate(kernel, arch)
        verify_ssa(kernel.body)
        check_allocation(kernel.body)
        check()
        assert found.loads == 0
        assert found.registers <= -(-before[kernel.function.data] // 8) * 8


@pytest.mark.parametrize("name", [path.stem for path in CUBINS])
def test_three_quarters_of_the_registers(name: str, freed: Freed, same_values: SameValues) -> None:
    before = {f.name: highest(f) + 3 for f in read_program((CUBINS[0].parent / f"{name}.cubin").read_bytes()).functions}
    for kernel, arch in freed(name):
        most = max(20, before[kernel.function.data] * 3 // 4)
        check = same_values(kernel)
        try:
            found = allocate(kernel, arch, most)
        except AllocationError as refused:
            message = str(refused)
            assert "registers" in message or "stack pointer" in message
            continue
        verify_ssa(kernel.body)
        check_allocation(kernel.body)
        check()
        assert found.registers <= most
