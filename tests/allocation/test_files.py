"""Predicates and uniform registers that do not fit wait in registers of another file."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from sassir.allocation.allocate import Allocation, allocate
from sassir.allocation.registers import AllocationError
from sassir.allocation.storage import LOAD, REFUGE, STORE
from sassir.analysis.allocation import check_allocation
from sassir.analysis.ssa import verify_ssa
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.operations import KernelOp
from sassir.rewrite.build import encodable, instruction

Kernel = Callable[[str], KernelOp]
Allocated = Callable[..., tuple[KernelOp, Allocation]]

PREDICATES = "\n".join([f'%p{i} = sass.isetp<"LT.AND"> "=P, PT, $R, {i:#x}, PT"(%r)' for i in range(10)])
OF_TWO = "\n".join([f'%p{i} = sass.isetp<"LT.AND"> "=P, PT, $R, $R, PT"(%r, %t)' for i in range(10)])
SELECTS = "\n".join([f'%s{i} = sass.sel "=R, $R, RZ, $P"(%r, %p{i})\nsass.stg "[$R], $R"(%r, %s{i})' for i in range(10)])
UNIFORM_PREDICATES = "\n".join([f'%q{i} = sass.uisetp<"LT.AND"> "=UP, UPT, $UR, {i:#x}, UPT"(%u)' for i in range(10)])
UNIFORM_SELECTS = "\n".join([f'%v{i} = sass.usel "=UR, $UR, URZ, $UP"(%u, %q{i})' for i in range(10)])
UNIFORM = "\n".join([f'%u{i} = sass.r2ur "=UR, $R"(%r)' for i in range(70)])
MOVES = "\n".join([f'%m{i} = sass.mov "=R, $UR"(%u{i})\nsass.stg "[$R], $R"(%r, %m{i})' for i in range(70)])
CALL = 'sass.call<"ABS.NOINC"> "@0x0"() ^back link "ABS47_34 f"\n^back:\n'
T = '%t = sass.s2r "=R, SR_TID.X"()\n'
R, U = '%r = sass.s2r "=R, SR_CLOCKLO"()\n', '%u = sass.s2ur "=UR, SR_CTAID.X"()\n'


@pytest.mark.parametrize(
    ("body", "store", "load"),
    [
        (R + T + OF_TWO + "\n" + SELECTS, "SEL", "ISETP"),
        (U + UNIFORM_PREDICATES + "\n" + UNIFORM_SELECTS, "USEL", "UISETP"),
        (R + UNIFORM + "\n" + MOVES, "MOV", "R2UR"),
        (CALL + R + T + OF_TWO + "\n" + SELECTS, "SEL", "ISETP"),
    ],
    ids=["P", "UP", "UR", "P behind a call of another section"],
)
def test_they_come_back(body: str, store: str, load: str, kernel: Kernel, allocated: Allocated) -> None:
    before = [op.MNEMONIC for op in kernel(body).body.walk() if isinstance(op, SassInstruction)]
    k, found = allocated(body)
    after = [op.MNEMONIC for op in k.body.walk() if isinstance(op, SassInstruction)]
    assert after.count(store) > before.count(store)
    assert after.count(load) == before.count(load) + found.loads > before.count(load)


def test_comparisons_with_one_register_are_made_again(allocated: Allocated) -> None:
    """The three that do not fit: none is saved, and of the ten that were there, what nobody reads any more goes."""
    k, found = allocated(R + PREDICATES + "\n" + SELECTS)
    after = [op.MNEMONIC for op in k.body.walk() if isinstance(op, SassInstruction)]
    assert found.loads > 0
    assert after.count("SEL") == 10
    assert after.count("ISETP") == 10


def test_a_comparison_is_not_made_again_with_another_value(allocated: Allocated) -> None:
    """What was compared is added to, and nobody else needs it then; what is made again compares what it was."""
    new = '%n = sass.viadd "=R, $R, 0x1"(%r)\n'
    selects = SELECTS.replace("(%r, %p", "(%n, %p").replace("(%r, %s", "(%n, %s")
    _, found = allocated(R + PREDICATES + "\n" + new + selects)
    assert found.loads > 0


def test_a_predicate_that_is_undefined_on_one_way_may_wait_too(allocated: Allocated) -> None:
    """decode_kernel of nVJPEG: ten predicates meet, of which one way defines none."""

    def passed(name: str) -> str:
        return ", ".join([f"%{name}{i}" for i in range(10)]) + " : " + " ".join(["P"] * 10)

    arguments = ", ".join([f"%p{i}: !sass.p" for i in range(10)])
    branch = f'%c = sass.isetp<"LT.AND"> "=P, PT, $R, 0x5, PT"(%r)\nsass.bra "^"() if %c ^join({passed("u")}), ^set\n'
    rest = f"^set:\n{OF_TWO.replace('%p', '%d')}\nsass.next ^join({passed('d')})\n^join({arguments}):\n"
    _, found = allocated(R + T + branch + rest + SELECTS, [f"u{i}" for i in range(10)], "p")
    assert found.loads > 0


def test_predicates_that_are_saved_by_number_may_leave_too(kernel: Kernel) -> None:
    """P0 to P6 are saved alone, as ptxas spills them; P2 is also saved together with P4, and both stay where they are."""
    fixed = "\n".join([f'%p{i} = sass.isetp<"LT.AND"> "=P, PT, $R, {i:#x}, PT"(%r) : R -> P{i}' for i in range(7)])
    saves = "\n".join([f'%w{i} = sass.p2r "=R, PR, RZ, {1 << i:#x}; $P"(%p{i}) : P{i} -> R' for i in range(7)])
    both = '%w7 = sass.p2r "=R, PR, RZ, 0x14; $P $P"(%p2, %p4) : P2 P4 -> R'
    stores = "\n".join([f'sass.stg "[$R], $R"(%r, %w{i})' for i in range(8)])
    selects = re.sub(r"(%p([0-6]))\)", r"\1) : R P\2 -> R", SELECTS)
    k = kernel("\n".join([R + fixed, *PREDICATES.splitlines()[7:], selects, saves, both, stores]))
    allocate(k, "sm_90")
    verify_ssa(k.body)
    check_allocation(k.body)
    ops = [op for op in k.body.walk() if isinstance(op, SassInstruction)]
    assert [op.template.text for op in ops if op.MNEMONIC == "P2R"] == ["=R, PR, RZ, 0x14; $P $P"]
    assert {f"=R, RZ, {1 << i:#x}, !$P" for i in range(7)} <= {op.template.text for op in ops if op.MNEMONIC == "SEL"}


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"])
@pytest.mark.parametrize("file", REFUGE)
def test_every_architecture_has_the_instructions(file: str, arch: str) -> None:
    assert encodable(instruction(STORE[file]), arch)
    assert encodable(instruction(LOAD[file]), arch)


def test_nothing_uniform_is_added_where_only_some_threads_run(kernel: Kernel) -> None:
    branch = '%p = sass.isetp<"LT.AND"> "=P, PT, $R, 0x5, PT"(%r)\nsass.bra "^"() if %p ^out, ^some\n^some:\n'
    with pytest.raises(AllocationError, match=r"sass\.r2ur.* would have to be added where only some threads of the warp may run"):
        allocate(kernel(R + UNIFORM + "\n" + branch + MOVES + "\nsass.next ^out\n^out:"), "sm_90")
