"""What a counted loop tells of its arguments: no range is too small, and none is missed."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from xdsl.ir import Region, SSAValue

from sassir.analysis.affine import Affine, Form
from sassir.analysis.propagated import propagate
from sassir.analysis.propagation import Propagation
from sassir.analysis.ranges import WORD, Range
from sassir.dialect.operations import KernelOp

Parse = Callable[[str], Region]
LANE = '%thread = sass.s2r "=R, SR_TID.X"()\n%lane = sass.lop3<"LUT"> "=R, $R, 0x1f, RZ, 0xc0, !PT"(%thread)'
"""A number from 0 to 31."""


def values_of(kernel: KernelOp) -> dict[str | None, SSAValue]:
    blocks = kernel.body.blocks
    return {v.name_hint: v for block in blocks for v in (*block.args, *[r for op in block.ops for r in op.results])}


def loop(parse: Parse, step: str, leave: str = "") -> tuple[Propagation, dict[str | None, SSAValue]]:
    """A counter from 0 by 4 to below 64, and %x from a number of up to 31 on by `step`."""
    kernel = parse(
        f'%zero = sass.mov "=R, RZ"()\n{LANE}\nsass.next ^loop(%zero, %lane : R R)\n'
        f'^loop(%i: !sass.r, %x: !sass.r):\n%j = sass.iadd3 "=R, $R, 0x4, RZ"(%i)\n{step}\n{leave}'
        '%q = sass.isetp<"LT.AND"> "=P, PT, $R, 0x40, PT"(%j)\nsass.bra "^"() if %q ^loop(%j, %y : R R), ^done\n^done:'
    ).parent_op()
    assert isinstance(kernel, KernelOp)
    return propagate(kernel, "sm_90"), values_of(kernel)


@pytest.mark.parametrize(
    ("step", "x", "y"),
    [
        ('%y = sass.iadd3 "=R, $R, 0x20, RZ"(%x)', Range(0, 31 + 15 * 0x20), Range(0x20, 31 + 16 * 0x20)),
        ('%y = sass.iadd3 "=R, $R, 0x0, RZ"(%x)', Range(0, 31), Range(0, 31)),
    ],
)
def test_what_grows_with_the_counter_is_bounded(parse: Parse, step: str, x: Range, y: Range) -> None:
    known, values = loop(parse, step)
    assert (known.range(values["x"]), known.range(values["y"])) == (x, y)
    assert known.range(values["j"]) == Range(4, 0x40)


@pytest.mark.parametrize(
    "step",
    [
        '%y = sass.iadd3 "=R, $R, -0x1, RZ"(%x)',
        '%y = sass.iadd3 "=R, $R, 0x20000000, RZ"(%x)',
        '%y = sass.iadd3 "=R, $R, $R, RZ"(%x, %x)',
        '%o = sass.isetp<"EQ.AND"> "=P, PT, $R, 0x5, PT"(%lane)\n%y = sass.iadd3 "=R, $R, 0x1, RZ"(%x) if %o keep (%x)',
    ],
)
def test_what_may_wrap_around_or_grows_in_another_way_is_not(parse: Parse, step: str) -> None:
    known, values = loop(parse, step)
    assert known.range(values["x"]) == WORD


def test_a_way_out_in_the_middle_makes_it_no_larger(parse: Parse) -> None:
    out = '%o = sass.isetp<"EQ.AND"> "=P, PT, $R, 0x5, PT"(%lane)\nsass.bra "^"() if %o ^done, ^more\n^more:\n'
    known, values = loop(parse, '%y = sass.iadd3 "=R, $R, 0x2, RZ"(%x)', out)
    assert known.range(values["x"]) == Range(0, 31 + 30)


def test_an_index_that_goes_below_its_start_is_part_of_an_address_only_with_its_sign(parse: Parse) -> None:
    kernel = parse(f'{LANE}\n%left = sass.iadd3 "=R, $R, -0x1, RZ"(%lane)').parent_op()
    assert isinstance(kernel, KernelOp)
    forms, values = Affine(propagate(kernel, "sm_90")), values_of(kernel)
    here = forms.extended(values["lane"], True)
    assert forms.extended(values["left"], True) == Form((1 << 64) - 1, here.terms)
    assert forms.extended(values["left"], False).constant == 0
