"""Spilling: what leaves, where it is kept, how it comes back, and what is refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sassir.allocation.allocate import Allocation, allocate
from sassir.allocation.registers import AllocationError
from sassir.analysis.allocation import check_allocation
from sassir.analysis.ssa import verify_ssa
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.operations import KernelOp

Kernel = Callable[[str], KernelOp]
SameValues = Callable[[KernelOp], Callable[[], None]]


@pytest.fixture
def spilled(kernel: Kernel, same_values: SameValues) -> Callable[[str, int], tuple[list[str], Allocation]]:
    """The instructions of a kernel that was allocated with this register count, and checked."""

    def run(body: str, most: int) -> tuple[list[str], Allocation]:
        check = same_values(k := kernel(body))
        found = allocate(k, "sm_90", most)
        verify_ssa(k.body)
        check_allocation(k.body)
        check()
        assert found.registers <= most
        return [op.MNEMONIC for op in k.body.walk() if isinstance(op, SassInstruction)], found

    return run


Spilled = Callable[[str, int], tuple[list[str], Allocation]]


def made(count: int, how: str) -> str:
    return "\n".join([f"%v{i} = {how.format(i)}" for i in range(count)]) + "\n"


def used(count: int) -> str:
    return "\n".join([f'sass.stg "[$R], $R"(%v0, %v{i})' for i in range(count)]) + "\n"


CLOCK = 'sass.s2r "=R, SR_CLOCKLO"()'
CONSTANT = 'sass.ldc "=R, c[0x0][{:#x}]"()'


def test_nothing_leaves_while_there_is_room(spilled: Spilled) -> None:
    names, found = spilled(made(12, CLOCK) + used(12), 12 + 1 + 2)  # R1 is left to the stack pointer
    assert "STL" not in names
    assert found.loads == 0


def test_each_value_is_stored_once_and_loaded_where_it_is_read(spilled: Spilled) -> None:
    names, found = spilled(made(20, CLOCK) + used(20) + used(20), 16)
    assert names.count("STL") <= 20
    assert names.count("LDL") == found.loads >= 6


def test_the_value_that_is_needed_last_leaves(kernel: Kernel) -> None:
    k = kernel(made(8, CLOCK) + 'sass.stg "[$R], $R"(%v1, %v2)\n' + used(8).replace("%v0", "%v7"))
    allocate(k, "sm_90", 8 + 2)
    stores = [op for op in k.body.walk() if isinstance(op, SassInstruction) and op.MNEMONIC == "STL"]
    assert {op.reads[1].name_hint for op in stores} <= {"v6", "v5"}


def test_constants_are_made_again_and_take_no_slot(spilled: Spilled) -> None:
    names, found = spilled(made(20, CONSTANT) + used(20) + used(20), 16)
    assert "STL" not in names
    assert 20 < names.count("LDC") <= 20 + found.loads


LOOP = """sass.next ^loop({first} : {types})
^loop({arguments}):
{body}
sass.bra "^"() if %p ^loop({next} : {types}), ^out
^out:
{after}"""


def loop(count: int, body: str, after: str, step: str = 'sass.iadd3 "=R, $R, 0x1, RZ"(%x{0})') -> str:
    """A loop with `count` values that each iteration changes."""
    arguments = ", ".join([f"%x{i}: !sass.r" for i in range(count)])
    steps = "\n".join([f"%y{i} = {step.format(i)}" for i in range(count)])
    names = [", ".join([f"%{letter}{i}" for i in range(count)]) for letter in "vy"]
    types = " ".join(["R"] * count)
    test = '%p = sass.isetp<"NE.AND"> "=P, PT, $R, RZ, PT"(%y0)'
    text = LOOP.format(first=names[0], next=names[1], types=types, arguments=arguments, body=f"{steps}\n{test}\n{body}", after=after)
    return made(count, CLOCK) + text


def test_more_values_go_round_a_loop_than_there_are_registers(spilled: Spilled) -> None:
    names, _ = spilled(loop(20, "", used(20).replace("%v", "%y")), 14)
    assert names.count("STL") > 0


def test_a_loop_that_turns_more_values_than_there_are_registers(spilled: Spilled) -> None:
    text = loop(14, "", used(14).replace("%v", "%y")).replace("^loop(%y0, %y1,", "^loop(%y1, %y0,")
    spilled(text, 12)


def test_what_only_lives_through_a_loop_leaves_before_it(kernel: Kernel) -> None:
    k = kernel(made(8, CLOCK).replace("%v", "%w") + loop(6, "", used(6).replace("%v", "%y") + used(8).replace("%v", "%w")))
    allocate(k, "sm_90", 10 + 2)
    inside = [op.MNEMONIC for op in k.body.blocks[1].ops if isinstance(op, SassInstruction)]
    assert not {"STL", "LDL"}.intersection(inside)


def test_values_that_were_never_written_take_no_slot(kernel: Callable[..., KernelOp]) -> None:
    k = kernel("\n".join([f'sass.stg "[$R], $R"(%z0, %z{i})' for i in range(30)]), [f"z{i}" for i in range(30)])
    assert allocate(k, "sm_90", 12).registers <= 12
    assert not [op for op in k.body.walk() if isinstance(op, SassInstruction) and op.MNEMONIC == "STL"]


def test_an_operation_that_needs_more_than_there_is(kernel: Kernel) -> None:
    outs = ", ".join([f"%r{i}" for i in range(16)])
    body = made(4, CLOCK) + f'{outs} = sass.ldtm<"x16"> "=R16, tmem[$UR]"(%u)\n' + used(4)
    with pytest.raises(AllocationError, match=r"sass\.ldtm.* needs 1[67] R registers at once; 1\d may be used"):
        allocate(kernel('%u = sass.umov "=UR, URZ"()\n' + body), "sm_100", 15)


def test_a_register_that_must_stay_beyond_the_limit(kernel: Kernel) -> None:
    with pytest.raises(AllocationError, match=r"%a must stay in R40, but only 30 registers may be used"):
        allocate(kernel('%a = sass.s2r "=R, SR_CLOCKLO"() : -> R40\nsass.stg "[$R], $R"(%a, %a) : R40 R40'), "sm_90", 32)
