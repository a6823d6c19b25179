"""Room in shared memory: where it is, how much there is, and what the cubin says of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from xdsl.context import Context

from sassir.allocation.allocate import allocate
from sassir.allocation.registers import AllocationError
from sassir.allocation.room import SharedMemory
from sassir.analysis.allocation import check_allocation
from sassir.analysis.ssa import verify_ssa
from sassir.cubin.cubin import Cubin
from sassir.cubin.summary import summarise
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.operations import KernelOp
from sassir.passes.assign_control import AssignControl
from sassir.passes.virtualise import Virtualise
from sassir.rewrite.kernels import free_kernels
from sassir.translate.cubin import read_module, write_cubin
from sassir.translate.emit import emit_program

CUBINS = Path(__file__).parents[1] / "cubins"
Kernel = Callable[[str], KernelOp]
SameValues = Callable[[KernelOp], Callable[[], None]]

MADE = "\n".join([f'%v{i} = sass.s2r "=R, SR_CLOCKLO"()' for i in range(20)]) + "\n"
USED = "\n".join([f'sass.stg "[$R], $R"(%v0, %v{i})' for i in range(20)]) + "\n"


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_89", "sm_90", "sm_100", "sm_120"])
def test_values_wait_in_shared_memory(arch: str, kernel: Kernel, same_values: SameValues) -> None:
    check = same_values(k := kernel(MADE + USED))
    allocate(k, arch, 16, lambda kernel, arch: SharedMemory(kernel, arch, 200, 0))
    verify_ssa(k.body)
    check_allocation(k.body)
    check()
    places = [op.template.text for op in k.body.walk() if isinstance(op, SassInstruction) and op.MNEMONIC == "STS"]
    assert places
    row = 4 * 224
    slots = sorted([int(text.partition("+")[2].partition("]")[0], 16) for text in places])
    assert slots == [-row * i for i in range(len(slots), 0, -1)]


def test_the_size_of_the_block_must_be_known(kernel: Kernel) -> None:
    with pytest.raises(AllocationError, match="how many threads a block has is not known"):
        allocate(kernel(MADE + USED), "sm_90", 16, lambda kernel, arch: SharedMemory(kernel, arch, None, 0))


def test_more_than_a_kernel_can_have(kernel: Kernel) -> None:
    with pytest.raises(AllocationError, match=r"45000 \+ \d+ bytes are more than the 49152"):
        allocate(kernel(MADE + USED), "sm_90", 16, lambda kernel, arch: SharedMemory(kernel, arch, 1024, 45000))


def test_the_cubin_asks_for_it() -> None:
    data = (CUBINS / "cupy_ew3d.sm_90.cubin").read_bytes()
    module = read_module(data)
    Virtualise().apply(Context(), module)
    for kernel, arch in free_kernels(module):
        allocate(kernel, arch, 24, lambda kernel, arch: SharedMemory(kernel, arch, 64, 0))
    AssignControl().apply(Context(), module)
    (before,), (after,) = summarise(Cubin.read(data)).kernels, summarise(Cubin.read(write_cubin(emit_program(module)))).kernels
    assert (before.shared, after.stack) == (0, before.stack)
    assert after.shared > 1024
    assert after.shared % 256 == 0
