"""Ranges through a whole kernel: what a carry, a comparison and a loop tell, and that no range is too small."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from xdsl.ir import Region, SSAValue

from sassir.analysis.propagated import propagate
from sassir.analysis.propagation import Propagation
from sassir.analysis.ranges import Range
from sassir.dialect.facts import KernelFacts, WordRange
from sassir.dialect.operations import KernelOp

Parse = Callable[[str], Region]
Known = Callable[[str], tuple[Callable[[str], Range], KernelOp]]


@pytest.fixture
def known(parse: Parse) -> Known:
    """The range of each value by its name, and the kernel."""

    def run(body: str) -> tuple[Callable[[str], Range], KernelOp]:
        kernel = parse(body).parent_op()
        assert isinstance(kernel, KernelOp)
        found = Propagation(kernel, KernelFacts(block=(128, 1, 1)), "sm_90")
        values: dict[str | None, SSAValue] = {}
        for block in kernel.body.blocks:
            values |= {v.name_hint: v for v in (*block.args, *[r for op in block.ops for r in op.results])}
        return lambda name: found.range(values[name]), kernel

    return run


def test_the_carries_of_a_sum_of_three_count_together(known: Known) -> None:
    """~i + n + n for i of n to 2n - 1, in 64 bits with an upper word of -1: which of the carries is set is not told, but one is."""
    ranges, _ = known(
        '%tid = sass.s2r "=R, SR_TID.X"()\n%i = sass.iadd3 "=R, $R, 0x80, RZ"(%tid)\n'
        '%not = sass.lop3<"LUT"> "=R, RZ, $R, RZ, 0x33, !PT"(%i)\n%n = sass.mov "=R, 0x80"()\n%m = sass.mov "=R, 0xffffffff"()\n'
        '%lo, %c, %d = sass.iadd3 "=R, =P, =P, $R, 0x80, $R"(%not, %n)\n%hi = sass.iadd3<"X"> "=R, $R, RZ, RZ, $P, $P"(%m, %c, %d)'
    )
    assert ranges("lo") == Range(0, 0x7F)
    assert ranges("hi") == Range(0, 0)


def test_a_bound_that_grows_reaches_what_was_learned_from_it(known: Known) -> None:
    """`x < n` in a loop in which n grows: the first n alone does not say what x can be where that holds."""
    ranges, _ = known(
        '%x = sass.s2r "=R, SR_TID.X"()\n%one = sass.mov "=R, 0x5"()\nsass.next ^loop(%one : R)\n'
        '^loop(%n: !sass.r):\n%p = sass.isetp<"LT.AND"> "=P, PT, $R, $R, PT"(%x, %n)\n'
        'sass.bra "^"() if %p ^less(%x : R), ^more\n'
        '^more:\n%next = sass.iadd3 "=R, $R, 0x1, RZ"(%n)\n%q = sass.isetp<"LT.AND"> "=P, PT, $R, 0x40, PT"(%next)\n'
        'sass.bra "^"() if %q ^loop(%next : R), ^less(%one : R)\n^less(%y: !sass.r):'
    )
    assert ranges("y").high >= 0x3E


def test_a_value_that_grows_goes_through_many_blocks(known: Known) -> None:
    """The counter of a loop of more blocks in a row than Python's recursion limit, each of which hands it on to the next."""
    count = 3000
    blocks = [f"sass.next ^b{i}(%v{i} : R)\n^b{i}(%v{i + 1}: !sass.r):\n" for i in range(count)]
    latch = f'%w = sass.iadd3 "=R, $R, 0x1, RZ"(%v{count})\n%p = sass.isetp<"LT.U32.AND"> "=P, PT, $R, 0x8, PT"(%w)\n'
    ranges, _ = known(
        '%v0 = sass.mov "=R, 0x5"()\n' + "".join(blocks) + latch + 'sass.bra "^"() if %p ^b0(%w : R), ^end(%w : R)\n^end(%x: !sass.r):'
    )
    assert ranges(f"v{count}") == Range(5, 7)
    assert ranges("x") == Range(8, 8)


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (KernelFacts(words=((0x228, 500),)), {"": 500, "U8": 244, "S8": 2**32 - 12, "U16": 500, "S16": 500}),
        (KernelFacts(words=((0x228, -3 & 0xFFFFFFFF),)), {"": 2**32 - 3, "U8": 253, "S8": 2**32 - 3, "U16": 0xFFFD, "S16": 2**32 - 3}),
        (KernelFacts(ranges=(WordRange(0x228, 3, 5),)), dict.fromkeys(("", "U8", "S8", "U16", "S16"), (3, 5))),
        (KernelFacts(ranges=(WordRange(0x228, 3, 500),)), {"": (3, 500), "U8": (0, 255), "S8": (0, 2**32 - 1), "U16": (3, 500)}),
        (KernelFacts(ranges=(WordRange(0x228, -5, -3),)), {"": (2**32 - 5, 2**32 - 3), "U8": (0, 255), "S16": (0, 2**32 - 1)}),
        (KernelFacts(ranges=(WordRange(0x228, -5, 3),)), {"": (0, 2**32 - 1), "U16": (0, 0xFFFF)}),
    ],
    ids=str,
)
def test_a_narrow_load_takes_the_low_bits_of_a_word(parse: Parse, facts: KernelFacts, expected: dict[str, int | tuple[int, int]]) -> None:
    for modifiers, number in expected.items():
        kernel = parse(f'%x = sass.ldc{f"<{chr(34)}{modifiers}{chr(34)}>" if modifiers else ""} "=R, c[0x0][0x228]"()').parent_op()
        assert isinstance(kernel, KernelOp)
        load = next(op for op in kernel.walk() if op.name == "sass.ldc")
        found = Propagation(kernel, facts, "sm_90").range(load.results[0])
        assert found == (Range(number, number) if isinstance(number, int) else number), modifiers


def test_it_is_kept_until_something_changes(known: Known) -> None:
    _, kernel = known('%a = sass.mov "=R, 0x1"()\n%b = sass.iadd3 "=R, $R, 0x1, RZ"(%a)\nsass.stg "[$R], $R"(%a, %b)')
    first = propagate(kernel, "sm_90")
    assert propagate(kernel, "sm_90") is first
    store = next(op for op in kernel.walk() if op.name == "sass.stg")
    store.operands[1] = store.operands[0]
    assert propagate(kernel, "sm_90") is not first
