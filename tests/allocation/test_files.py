"""Predicates and uniform registers that do not fit wait in registers of another file."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sassir.allocation.allocate import allocate
from sassir.allocation.registers import AllocationError
from sassir.allocation.storage import LOAD, REFUGE, STORE
from sassir.analysis.allocation import check_allocation
from sassir.analysis.ssa import verify_ssa
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.operations import KernelOp
from sassir.rewrite.build import encodable, instruction

Kernel = Callable[[str], KernelOp]
SameValues = Callable[[KernelOp], Callable[[], None]]

PREDICATES = "\n".join([f'%p{i} = sass.isetp<"LT.AND"> "=P, PT, $R, {i:#x}, PT"(%r)' for i in range(10)])
SELECTS = "\n".join([f'%s{i} = sass.sel "=R, $R, RZ, $P"(%r, %p{i})\nsass.stg "[$R], $R"(%r, %s{i})' for i in range(10)])
UNIFORM_PREDICATES = "\n".join([f'%q{i} = sass.uisetp<"LT.AND"> "=UP, UPT, $UR, {i:#x}, UPT"(%u)' for i in range(10)])
UNIFORM_SELECTS = "\n".join([f'%v{i} = sass.usel "=UR, $UR, URZ, $UP"(%u, %q{i})' for i in range(10)])
UNIFORM = "\n".join([f'%u{i} = sass.r2ur "=UR, $R"(%r)' for i in range(70)])
MOVES = "\n".join([f'%m{i} = sass.mov "=R, $UR"(%u{i})\nsass.stg "[$R], $R"(%r, %m{i})' for i in range(70)])
CALL = 'sass.call<"ABS.NOINC"> "@0x0"() ^back link "ABS47_34 f"\n^back:\n'
R, U = '%r = sass.s2r "=R, SR_CLOCKLO"()\n', '%u = sass.s2ur "=UR, SR_CTAID.X"()\n'


@pytest.mark.parametrize(
    ("body", "store", "load"),
    [
        (R + PREDICATES + "\n" + SELECTS, "SEL", "ISETP"),
        (U + UNIFORM_PREDICATES + "\n" + UNIFORM_SELECTS, "USEL", "UISETP"),
        (R + UNIFORM + "\n" + MOVES, "MOV", "R2UR"),
        (CALL + R + PREDICATES + "\n" + SELECTS, "SEL", "ISETP"),
    ],
    ids=["P", "UP", "UR", "P behind a call of another section"],
)
def test_they_come_back(body: str, store: str, load: str, kernel: Kernel, same_values: SameValues) -> None:
    k = kernel(body)
    before = [op.MNEMONIC for op in k.body.walk() if isinstance(op, SassInstruction)]
    check = same_values(k)
    found = allocate(k, "sm_90")
    verify_ssa(k.body)
    check_allocation(k.body)
    check()
    after = [op.MNEMONIC for op in k.body.walk() if isinstance(op, SassInstruction)]
    assert after.count(store) > before.count(store)
    assert after.count(load) == before.count(load) + found.loads > before.count(load)


def test_predicates_wait_where_a_call_comes_back(kernel: Kernel, same_values: SameValues) -> None:
    """Control does not get there from the start of the kernel, but there is no address to make there either."""
    behind = (PREDICATES + "\n" + SELECTS).replace("%r)", "%r_1)").replace("(%r,", "(%r_1,")
    k = kernel(R + 'sass.exit ""()\n^back:\n' + R.replace("%r", "%r_1") + behind)
    check = same_values(k)
    assert allocate(k, "sm_75").loads > 0
    verify_ssa(k.body)
    check_allocation(k.body)
    check()


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"])
@pytest.mark.parametrize("file", REFUGE)
def test_every_architecture_has_the_instructions(file: str, arch: str) -> None:
    assert encodable(instruction(STORE[file]), arch)
    assert encodable(instruction(LOAD[file]), arch)


def test_nothing_uniform_is_added_where_only_some_threads_run(kernel: Kernel) -> None:
    branch = '%p = sass.isetp<"LT.AND"> "=P, PT, $R, 0x5, PT"(%r)\nsass.bra "^"() if %p ^out, ^some\n^some:\n'
    with pytest.raises(AllocationError, match=r"sass\.r2ur.* would have to be added where only some threads of the warp may run"):
        allocate(kernel(R + UNIFORM + "\n" + branch + MOVES + "\nsass.next ^out\n^out:"), "sm_90")
