"""The stack frame grows, and the cubin follows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from xdsl.context import Context

from sassir.allocation.allocate import allocate
from sassir.allocation.registers import AllocationError
from sassir.allocation.stack import grow_frame
from sassir.cubin.cubin import Cubin
from sassir.cubin.summary import summarise
from sassir.dialect.operations import KernelOp
from sassir.errors import SassirWarning
from sassir.passes.assign_control import AssignControl
from sassir.passes.virtualise import Virtualise
from sassir.rewrite.kernels import free_kernels
from sassir.translate.cubin import read_module, write_cubin
from sassir.translate.emit import emit_function, emit_program
from sassir.translate.resources import stack_frame

CUBINS = Path(__file__).parents[1] / "cubins"
Kernel = Callable[[str], KernelOp]
INITIAL = '%r1 = sass.ldc "=R, c[0x0][0x28]"() : -> R1\n'
FRAME = INITIAL + '%sp = sass.iadd3 "=R, $R, -0x18, RZ"(%r1) : R1 -> R1\n'


def frame(kernel: KernelOp, arch: str = "sm_90") -> int | None:
    allocate(kernel, arch)
    return stack_frame([line.instruction for line in emit_function(kernel).lines], arch)


def test_a_kernel_without_frame_gets_one(kernel: Kernel) -> None:
    k = kernel(INITIAL)
    assert grow_frame(k, "sm_90", 20)[1] == 0
    assert frame(k) == 32


def test_a_kernel_without_stack_pointer_gets_one(kernel: Kernel) -> None:
    for arch in ("sm_75", "sm_90", "sm_100", "sm_120"):
        k = kernel('%a = sass.s2r "=R, SR_CLOCKLO"()')
        assert grow_frame(k, arch, 4)[1] == 0
        assert frame(k, arch) == 16


def test_new_room_lies_behind_what_the_kernel_had(kernel: Kernel) -> None:
    k = kernel(FRAME + 'sass.stl "[$R], RZ"(%sp) : R1')
    assert grow_frame(k, "sm_90", 4)[1] == 0x18
    assert frame(k) == 0x18 + 16


def test_a_frame_that_is_added_as_a_complement(kernel: Kernel) -> None:
    k = kernel(FRAME.replace("iadd3", "viadd").replace("-0x18, RZ", "0xffffffe8") + 'sass.stl "[$R], RZ"(%sp) : R1')
    assert grow_frame(k, "sm_90", 4)[1] == 0x18
    assert frame(k) == 0x18 + 16


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (INITIAL + '%sp = sass.iadd3 "=R, $R, $R, RZ"(%r1, %r1) : R1 R1 -> R1', "not just lowered by the size of the frame"),
        (FRAME + '%in = sass.iadd3 "=R, $R, -0x8, RZ"(%sp) : R1 -> R1\nsass.stl "[$R], RZ"(%in) : R1', "moves inside of the kernel"),
        (INITIAL + INITIAL.replace("%r1", "%again"), "loaded in more than one place"),
    ],
)
def test_a_stack_pointer_that_is_not_understood(body: str, message: str, kernel: Kernel) -> None:
    with pytest.raises(AllocationError, match=message):
        grow_frame(kernel(body), "sm_90", 4)


@pytest.mark.parametrize("name", ["cupy_ew3d.sm_90", "loop.sm_80", "isa_scalar.sm_75", "isa_scalar.sm_100a", "isa_scalar.sm_120a"])
@pytest.mark.filterwarnings("ignore::sassir.errors.SassirWarning")
def test_the_cubin_says_how_much_stack_its_kernels_take(name: str) -> None:
    assert issubclass(SassirWarning, Warning)
    data = (CUBINS / f"{name}.cubin").read_bytes()
    module = read_module(data, name)
    Virtualise().apply(Context(), module)
    before = {k.name: k for k in summarise(Cubin.read(data)).kernels}
    spilled: list[str] = []
    for kernel, arch in free_kernels(module):
        count = before[kernel.function.data].registers
        assert count is not None
        try:
            found = allocate(kernel, arch, max(12, count // 2))
        except AllocationError:
            break
        spilled += [kernel.function.data] if found.loads else []
    else:
        AssignControl().apply(Context(), module)
        for kernel in summarise(Cubin.read(write_cubin(emit_program(module)))).kernels:
            old = before[kernel.name]
            assert (kernel.stack or 0) >= (old.stack or 0)
            assert kernel.registers is not None
            assert old.registers is not None
            assert kernel.registers <= old.registers or kernel.name not in spilled
