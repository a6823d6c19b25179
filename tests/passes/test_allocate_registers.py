"""sass-allocate-registers: its options, and that what comes out is a cubin."""

from __future__ import annotations

from pathlib import Path

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from sassir.allocation.launch import LaunchBounds, launch_bounds
from sassir.allocation.registers import AllocationError
from sassir.analysis.allocation import check_allocation
from sassir.cubin.cubin import Cubin
from sassir.cubin.summary import KernelSummary, summarise
from sassir.dialect.facts import FACTS, FactsAttr, KernelFacts, used_facts
from sassir.dialect.operations import KernelOp
from sassir.passes.allocate_registers import AllocateRegisters
from sassir.passes.assign_control import AssignControl
from sassir.passes.virtualise import Virtualise
from sassir.translate.cubin import read_module, write_cubin
from sassir.translate.emit import emit_program

CUBINS = Path(__file__).parents[1] / "cubins"


def virtual(name: str) -> ModuleOp:
    module = read_module((CUBINS / f"{name}.cubin").read_bytes(), name)
    Virtualise().apply(Context(), module)
    return module


def kernel_of(module: ModuleOp) -> KernelOp:
    (kernel,) = module.body.ops
    assert isinstance(kernel, KernelOp)
    return kernel


def written(module: ModuleOp) -> KernelSummary:
    """What the cubin says of its kernel."""
    AssignControl().apply(Context(), module)
    (summary,) = summarise(Cubin.read(write_cubin(emit_program(module)))).kernels
    return summary


def test_every_value_gets_a_register() -> None:
    AllocateRegisters().apply(Context(), module := virtual("calls.sm_90"))
    for kernel in module.body.ops:
        assert isinstance(kernel, KernelOp)
        check_allocation(kernel.body)


def test_the_cubin_keeps_its_counts() -> None:
    (before,) = summarise(Cubin.read((CUBINS / "cupy_ew3d.sm_90.cubin").read_bytes())).kernels
    AllocateRegisters().apply(Context(), module := virtual("cupy_ew3d.sm_90"))
    after = written(module)
    assert (after.registers, after.stack, after.shared) == (before.registers, before.stack, before.shared) == (34, 0, 0)


def test_max_registers_is_not_exceeded() -> None:
    AllocateRegisters(max_registers=24).apply(Context(), module := virtual("cupy_ew3d.sm_90"))
    after = written(module)
    assert after.registers is not None
    assert after.registers <= 24
    assert after.stack
    assert after.stack % 16 == 0


def test_spills_go_to_shared_memory() -> None:
    module = virtual("cupy_ew3d.sm_90")
    kernel = kernel_of(module)
    kernel.attributes[FACTS] = FactsAttr(KernelFacts(block=(64, 2, 1)))
    AllocateRegisters(max_registers=24, spill_to="shared").apply(Context(), module)
    after = written(module)
    assert after.registers is not None
    assert after.registers <= 24
    assert after.stack == 0
    assert (after.shared - 1024) % (128 * 4) == 0
    assert used_facts(kernel) == ("block",)


def test_shared_memory_needs_the_size_of_the_block() -> None:
    with pytest.raises(AllocationError, match=r"kernel cupy_ew3d.*how many threads a block has is not known"):
        AllocateRegisters(max_registers=24, spill_to="shared").apply(Context(), virtual("cupy_ew3d.sm_90"))


def test_a_limit_that_cannot_be_met_names_kernel_operation_and_count() -> None:
    with pytest.raises(AllocationError, match=r"kernel cupy_ew3d: `.*` needs \d+ R registers at once; \d may be used"):
        AllocateRegisters(max_registers=8).apply(Context(), virtual("cupy_ew3d.sm_90"))


def test_launch_bounds_leave_no_more_registers_than_a_block_can_have() -> None:
    module = virtual("cupy_ew3d.sm_90")
    section = kernel_of(module).section
    assert section is not None
    assert launch_bounds(module) == {section.data: LaunchBounds(None, 0)}
    counts = [LaunchBounds(threads).registers("sm_90") for threads in (32, 256, 257, 512, 1024)]
    assert counts == [255, 255, 168, 128, 64]
