"""The allocation checker accepts what the lifter makes, and finds planted bugs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from xdsl.ir import Region

from sassir.analysis.allocation import check_allocation
from sassir.dialect.operations import KernelOp
from sassir.errors import TranslationError
from sassir.translate.cubin import read_module

Parse = Callable[[str], Region]
CUBINS = sorted((Path(__file__).parents[1] / "cubins").glob("*.cubin"))


@pytest.mark.parametrize("path", CUBINS, ids=lambda p: p.stem)
def test_the_compiler_is_right(path: Path) -> None:
    for kernel in read_module(path.read_bytes()).body.ops:
        assert isinstance(kernel, KernelOp)
        check_allocation(kernel.body)


def test_a_value_in_its_register(parse: Parse) -> None:
    check_allocation(parse('%a = sass.mov "=R, $R"(%r1) : R1 -> R2\n%b = sass.mov "=R, $R"(%a) : R2 -> R3'))


def test_an_overwritten_value(parse: Parse) -> None:
    with pytest.raises(TranslationError, match=r"sass\.fadd .* reads a value from !sass.r<R1>, which holds another one there"):
        check_allocation(parse('%a = sass.mov "=R, 0x1"() : -> R1\n%b = sass.fadd "=R, $R, $R"(%r1, %a) : R1 R1 -> R3'))


ONE_ARM = """
sass.bra "^"() if %p0 ^join({arm}), ^then : P0
^then:
%b = sass.mov "=R, 0x2"() : -> R2
sass.next ^join({then})
^join{arguments}:
%c = sass.mov "=R, $R"({used}) : R2 -> R3
"""


def test_a_value_that_holds_on_one_path_only(parse: Parse) -> None:
    body = '%a = sass.mov "=R, 0x1"() : -> R2' + ONE_ARM.format(arm="", then="", arguments="", used="%a").replace("^join()", "^join")
    with pytest.raises(TranslationError, match=r"reads a value from !sass\.r<R2>"):
        check_allocation(parse(body))


def test_a_block_argument_joins_the_paths(parse: Parse) -> None:
    join = "(%j: !sass.r<R2>)"
    body = ONE_ARM.format(arm="%a : R2", then="%b : R2", arguments=join, used="%j")
    check_allocation(parse('%a = sass.mov "=R, 0x1"() : -> R2' + body))


def test_a_value_used_before_it_is_made(parse: Parse) -> None:
    with pytest.raises(TranslationError, match="reads a value"):
        check_allocation(parse('%b = sass.mov "=R, $R"(%a) : R2 -> R3\n%a = sass.mov "=R, 0x1"() : -> R2'))


def test_a_value_that_went_around_the_loop(parse: Parse) -> None:
    """On the way back R2 holds %b, not %a."""
    with pytest.raises(TranslationError, match=r"reads a value from !sass\.r<R2>"):
        check_allocation(
            parse("""
%a = sass.mov "=R, 0x1"() : -> R2
sass.next ^loop
^loop:
%b = sass.iadd3 "=R, $R, 0x1, RZ"(%a) : R2 -> R2
sass.bra "^"() if %p0 ^loop, ^out : P0
^out:""")
        )


TWO = '%a = sass.mov "=R, 0x1"() : -> R2\n%b = sass.mov "=R, 0x2"() : -> R3\n'


def test_two_registers_swapped(parse: Parse) -> None:
    """A swap needs a third register: the second move reads what the first one wrote."""
    with pytest.raises(TranslationError, match=r"%\w+ = sass\.mov .* reads a value from !sass\.r<R3>"):
        check_allocation(parse(TWO + '%c = sass.mov "=R, $R"(%a) : R2 -> R3\n%d = sass.mov "=R, $R"(%b) : R3 -> R2'))


def test_a_copy_dropped(parse: Parse) -> None:
    """%b was saved in R6 before R3 was written again; without the copy, R6 holds nothing."""
    copy = '%c = sass.mov "=R, $R"(%b) : R3 -> R6\n'
    rest = '%d = sass.mov "=R, 0x3"() : -> R3\n%e = sass.fadd "=R, $R, $R"({}, %d) : {} R3 -> R7'
    check_allocation(parse(TWO + copy + rest.format("%c", "R6")))
    with pytest.raises(TranslationError, match=r"reads a value from !sass\.r<R3>"):
        check_allocation(parse(TWO + rest.format("%b", "R3")))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ('%a, %b = sass.mov<"64"> "=R2, $R2"(%r4, %r5) : R4 R5 -> R7 R8', "R7, R8; expected the first to be a multiple of 2"),
        ('%a, %b = sass.mov<"64"> "=R2, $R2"(%r4, %r5) : R4 R5 -> R6 R8', "R6, R8; expected 2 registers in a row"),
        ('%a, %b, %c, %d = sass.ldg<"E.128"> "=R4, [$R2.64]"(%r4, %r5) : R4 R5 -> R6 R7 R8 R9', "expected the first to be a multiple of 4"),
        ('%b0 = sass.bssy "=B, ^"() @x : -> B0\n%r, %b1 = sass.bmov<"32.CLEAR"> "=R, $=B"(%b0) : B0 -> R8 B1', "reads B0 and writes B1"),
    ],
)
def test_a_misplaced_group(parse: Parse, body: str, message: str) -> None:
    with pytest.raises(TranslationError, match=message):
        check_allocation(parse(body))


def test_a_guard_that_was_overwritten(parse: Parse) -> None:
    with pytest.raises(TranslationError, match=r"reads a value from !sass\.p<P0>"):
        check_allocation(
            parse("""
%p = sass.isetp<"NE.AND"> "=P, PT, $R, RZ, PT"(%r1) : R1 -> P0
%a = sass.mov "=R, 0x1"() if %p0 keep (%r4) : P0 R4 -> R4""")
        )


def test_a_kept_value_in_another_register(parse: Parse) -> None:
    """Where the guard fails, R6 would not hold %r4."""
    with pytest.raises(TranslationError, match="a result in R6 keeps a value in R4"):
        check_allocation(parse('%a = sass.mov "=R, 0x1"() if %p0 keep (%r4) : P0 R4 -> R6'))


def test_a_kept_value_that_was_overwritten(parse: Parse) -> None:
    with pytest.raises(TranslationError, match=r"reads a value from !sass\.r<R4>"):
        check_allocation(
            parse("""
%b = sass.mov "=R, 0x2"() : -> R4
%a = sass.mov "=R, 0x1"() if %p0 keep (%r4) : P0 R4 -> R4""")
        )


def test_an_argument_in_the_wrong_register(parse: Parse) -> None:
    with pytest.raises(TranslationError, match="passes a value in R4 as an argument in R6"):
        check_allocation(parse("sass.next ^next(%r4 : R4)\n^next(%x: !sass.r<R6>):"))


def test_two_results_in_one_register(parse: Parse) -> None:
    with pytest.raises(TranslationError, match="writes two values into one register"):
        check_allocation(parse('%a, %b = sass.isetp<"NE.AND"> "=P, =P, $R, RZ, PT"(%r1) : R1 -> P1 P1'))


def test_a_value_without_a_register(parse: Parse) -> None:
    with pytest.raises(TranslationError, match=r"%a is a !sass\.r; allocate registers first"):
        check_allocation(parse('%a = sass.mov "=R, 0x1"() : -> R'))
