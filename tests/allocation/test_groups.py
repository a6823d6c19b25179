"""Groups in a row, values that several groups want, and results that replace what lives on."""

from __future__ import annotations

from collections.abc import Callable

from sassir.allocation.allocate import Allocation
from sassir.allocation.registers import fixed
from sassir.dialect import internals
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.operations import KernelOp

Allocated = Callable[[str], tuple[KernelOp, Allocation]]
FOUR = "\n".join([f'%{name} = sass.s2r "=R, SR_CLOCKLO"()' for name in "abcd"]) + "\n"


def last(kernel: KernelOp, mnemonic: str) -> SassInstruction:
    return [op for op in kernel.body.walk() if isinstance(op, SassInstruction) and mnemonic == op.MNEMONIC][-1]


def registers(op: SassInstruction) -> list[int | None]:
    return [fixed(v) for v in internals.operands(op)]


def test_four_values_made_apart_get_four_registers_in_a_row(allocated: Allocated) -> None:
    k, found = allocated(FOUR + 'sass.stg<"128"> "[$R2], $R4"(%a, %b, %b, %a, %d, %c)')
    first = registers(last(k, "STG"))[2]
    assert first is not None
    assert registers(last(k, "STG"))[2:] == [first + i for i in range(4)]
    assert first % 4 == 0
    assert found.copies > 0


def test_no_copies_where_one_order_will_do(allocated: Allocated) -> None:
    _, found = allocated(FOUR + 'sass.stg<"128"> "[$R], $R4"(%a, %d, %c, %b, %a)\nsass.stg<"64"> "[$R], $R2"(%b, %d, %c)')
    assert found.copies == 0


def test_one_value_in_all_places_of_a_group(allocated: Allocated) -> None:
    k, found = allocated(FOUR + 'sass.stg<"128"> "[$R], $R4"(%b, %a, %a, %a, %a)')
    assert found.copies in (3, 4)
    assert len(set(registers(last(k, "STG"))[1:])) == 4


def test_groups_that_contradict_each_other(allocated: Allocated) -> None:
    _, found = allocated(FOUR + 'sass.stg<"64"> "[$R], $R2"(%c, %a, %b)\nsass.stg<"64"> "[$R], $R2"(%c, %b, %a)')
    assert 0 < found.copies <= 3


def test_a_wide_accumulator(allocated: Allocated) -> None:
    outs = ", ".join([f"%r{i}" for i in range(64)])
    descriptor = '%u0, %u1, %u2, %u3 = sass.uldc<"128"> "=UR4, c[0x0][0x210]"()\n'
    k, found = allocated(FOUR + descriptor + f'{outs} = sass.hgmma<"64x128x16.F32"> "=R64, gdesc[$UR4], RZ, !UPT"(%u0, %u1, %u2, %u3)')
    first = fixed(last(k, "HGMMA").results[0])
    assert first is not None
    assert first % 8 == 0
    assert found.copies == 0


def test_a_guarded_result_replaces_a_value_that_lives_on(allocated: Allocated) -> None:
    body = '%p = sass.isetp<"NE.AND"> "=P, PT, $R, RZ, PT"(%a)\n%n = sass.mov "=R, $R"(%b) if %p keep (%a)\nsass.stg "[$R], $R"(%n, %a)'
    k, found = allocated(FOUR + body)
    move = next(op for op in k.body.walk() if isinstance(op, SassInstruction) and op.guard is not None)
    assert move.kept[0].type == move.results[0].type
    assert found.copies == 1


def test_two_guarded_results_replace_the_same_value(allocated: Allocated) -> None:
    body = '%p = sass.isetp<"NE.AND"> "=P, PT, $R, RZ, PT"(%a)\n'
    body += '%m, %n = sass.ldc<"64"> "=R2, c[0x0][$R]"(%b) if %p keep (%a, %a)\nsass.stg<"64"> "[$R], $R2"(%c, %m, %n)'
    _, found = allocated(FOUR + body)
    assert 0 < found.copies <= 2


def test_a_result_may_lie_where_operands_die(allocated: Allocated) -> None:
    product = '%lo, %hi = sass.imad<"WIDE"> "=R2, $R, $R, $R2"(%a, %b, %c, %d)\n'
    k, found = allocated(FOUR + product + 'sass.stg<"64"> "[$R2], $R"(%lo, %hi, %lo)')
    assert fixed(last(k, "IMAD").results[0]) in registers(last(k, "IMAD"))
    assert (found.copies, found.registers) == (0, 1 + 4 + 2)  # R1 is left to the stack pointer
