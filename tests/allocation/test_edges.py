"""Copies where control goes from one block to another."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from sassir.allocation.allocate import Allocation, allocate
from sassir.allocation.registers import AllocationError
from sassir.dialect.instruction import SassBranch
from sassir.dialect.operations import KernelOp
from sassir.translate.emit import emit_function

Kernel = Callable[[str], KernelOp]
Allocated = Callable[[str], tuple[KernelOp, Allocation]]
START = '%a = sass.s2r "=R, SR_CLOCKLO"()\n%b = sass.s2r "=R, SR_CLOCKLO"()\n%p = sass.isetp<"NE.AND"> "=P, PT, $R, $R, PT"(%a, %b)\n'


@pytest.fixture
def allocated(allocated: Allocated) -> Allocated:
    """The fixture of this folder; the kernel can be emitted as well."""

    def run(body: str) -> tuple[KernelOp, Allocation]:
        k, found = allocated(body)
        emit_function(k)
        return k, found

    return run


def test_a_loop_that_exchanges_two_values(allocated: Allocated) -> None:
    body = 'sass.next ^loop(%a, %b : R R)\n^loop(%x: !sass.r, %y: !sass.r):\nsass.stg "[$R], $R"(%x, %y)\n'
    k, found = allocated(START + body + 'sass.bra "^"() if %p ^loop(%y, %x : R R), ^out\n^out:')
    assert found.copies == 3
    assert len(k.body.blocks) == 3, "nobody reads the values behind the loop, so they are exchanged before the branch"


def test_a_loop_that_exchanges_values_for_which_its_end_waits(allocated: Allocated) -> None:
    body = 'sass.next ^loop(%a, %b : R R)\n^loop(%x: !sass.r, %y: !sass.r):\nsass.stg "[$R], $R"(%x, %y)\n'
    k, found = allocated(START + body + 'sass.bra "^"() if %p ^loop(%y, %x : R R), ^out\n^out:\nsass.stg "[$R], $R"(%x, %y)')
    assert found.copies == 3
    loop, back, out = list(k.body.blocks)[1:]
    last = loop.last_op
    assert isinstance(last, SassBranch)
    assert last.unless is not None, "the way out is the branch now"
    assert [*last.successors] == [out, back]


def test_a_loop_that_rotates_three_values(allocated: Allocated) -> None:
    body = 'sass.next ^loop(%a, %b, %a : R R R)\n^loop(%x: !sass.r, %y: !sass.r, %z: !sass.r):\nsass.stg "[$R], $R"(%x, %y)\n'
    _, found = allocated(START + body + 'sass.bra "^"() if %p ^loop(%y, %z, %x : R R R), ^out\n^out:\nsass.stg "[$R], $R"(%y, %z)')
    assert found.copies >= 6


def test_no_copy_for_a_value_that_becomes_an_argument(allocated: Allocated) -> None:
    body = 'sass.next ^loop(%a : R)\n^loop(%x: !sass.r):\n%y = sass.iadd3 "=R, $R, 0x1, RZ"(%x)\n'
    k, found = allocated(START + body + 'sass.bra "^"() if %p ^loop(%y : R), ^out\n^out:')
    assert found.copies == 0
    assert len(k.body.blocks) == 3


def test_one_value_for_two_arguments(allocated: Allocated) -> None:
    body = 'sass.bra "^"() if %p ^join(%a, %a : R R), ^else\n^else:\nsass.next ^join(%a, %b : R R)\n^join(%x: !sass.r, %y: !sass.r):\n'
    _, found = allocated(START + body + 'sass.stg "[$R], $R"(%x, %y)')
    assert found.copies == 1


def test_the_taken_edge_of_a_branch_gets_a_block_of_its_own(allocated: Allocated) -> None:
    body = 'sass.bra "^"() if %p ^join(%b : R), ^else\n^else:\nsass.next ^join(%a : R)\n^join(%x: !sass.r):\n'
    k, found = allocated(START + body + 'sass.stg "[$R], $R"(%x, %b)\nsass.stg "[$R], $R"(%a, %b)')
    assert found.copies == 2
    assert k.body.blocks[3].last_op is not None
    assert k.body.blocks[3].last_op.name == "sass.bra"


JUMP = '%lo, %hi = sass.ldc<"64"> "=R2, c[0x2][$R]"(%a)\nsass.brx "$R2, &"(%lo, %hi) @base ^one({one} : R R), ^two({two} : R R)\n'
ARMS = (
    '^one(%x: !sass.r, %y: !sass.r):\nsass.label private @base\nsass.stg "[$R], $R"(%x, %y)\nsass.exit ""()\n'
    '^two(%z: !sass.r, %w: !sass.r):\nsass.stg "[$R], $R"(%z, %w)'
)


def test_values_for_computed_places(allocated: Allocated) -> None:
    _, found = allocated(START + JUMP.format(one="%a, %b", two="%a, %b") + ARMS)
    assert found.copies == 0


def test_computed_places_that_share_values_in_another_order(allocated: Allocated) -> None:
    _, found = allocated(START + JUMP.format(one="%a, %b", two="%b, %a") + ARMS)
    assert found.copies == 0


def test_computed_places_that_cannot_agree(kernel: Kernel) -> None:
    again = JUMP.format(one="%y, %x", two="%x, %y").replace("%lo, %hi", "%lo2, %hi2").replace("(%a)", "(%x)")
    loop = ARMS.replace('sass.stg "[$R], $R"(%x, %y)\nsass.exit ""()', again)
    with pytest.raises(AllocationError, match=r"sass\.brx.*expect one register to hold different values"):
        allocate(kernel(START + JUMP.format(one="%a, %b", two="%a, %b") + loop), "sm_90")


def test_a_computed_place_where_other_control_comes_too(allocated: Allocated) -> None:
    """The place of one RET also takes what a plain branch passes: `%a` stays in its register for the other place all the same."""
    body = (
        '%lo = sass.mov "=R, &"() @one\n%hi = sass.mov "=R, 0x0"()\nsass.bra "^"() if %p ^one(%b, %b : R R), ^call\n'
        '^call:\nsass.ret<"REL.NODEC"> "$R2, ^"(%lo, %hi) @base ^one(%a, %b : R R), ^two\n'
        "^one(%x: !sass.r, %y: !sass.r):\nsass.label private @one\n"
        'sass.stg "[$R], $R"(%x, %y)\nsass.stg "[$R], $R"(%y, %a)\nsass.stg "[$R], $R"(%b, %a)\nsass.exit ""()\n'
        '^two:\nsass.label private @base\nsass.stg "[$R], $R"(%b, %a)'
    )
    k, found = allocated(START + body)
    assert found.copies > 0
    ret = next(op for op in k.walk() if op.name == "sass.ret")
    assert not ret.successors[0].args
    assert [op.name for op in ret.successors[0].ops if op.name != "sass.mov"] == ["sass.label", "sass.next"]


def _random_loop(rng: random.Random) -> str:
    """Values that are alive all along a loop, are moved in it for wide operands, and are handed on to its arguments."""
    values, arguments = [f"v{i}" for i in range(rng.randint(4, 7))], [f"x{i}" for i in range(rng.randint(1, 3))]

    def passed(pool: list[str]) -> str:
        return ", ".join([f"%{rng.choice(pool)}" for _ in arguments]) + " : " + " ".join(["R"] * len(arguments))

    text = [f'%{value} = sass.s2r "=R, SR_CLOCKLO"()' for value in values]
    text += ['%c = sass.isetp<"LT.AND"> "=P, PT, $R, 0x5, PT"(%v0)', f"sass.next ^loop({passed(values)})"]
    text.append(f"^loop({', '.join([f'%{argument}: !sass.r' for argument in arguments])}):")
    pool = [*values, *arguments]
    for i in range(rng.randint(1, 4)):
        width = rng.choice((2, 4))
        group = ", ".join([f"%{value}" for value in rng.sample(pool, width)])
        text.append(f'sass.sts<"{32 * width}"> "[$R], $R{width}"(%v0, {group})')
        if rng.random() < 0.5:
            text.append(f'%t{i} = sass.iadd3 "=R, $R, $R, RZ"(%{rng.choice(pool)}, %{rng.choice(pool)})')
            pool.append(f"t{i}")
    text += [f'sass.bra "^"() if %c ^loop({passed(pool)}), ^out', "^out:"]
    return "\n".join([*text, *[f'sass.stg "[$R], $R"(%v0, %{value})' for value in rng.sample(values, 3)]])


@pytest.mark.parametrize("seed", range(28, 428))
def test_what_moves_in_a_loop_is_handed_on_from_where_it_is(seed: int, allocated: Allocated) -> None:
    """In the first of these, a value goes back to its register at the end of the loop, and is an argument in the one that it leaves."""
    allocated(_random_loop(random.Random(seed)))
