"""The allocation checker accepts what the lifter makes, and finds planted bugs."""

from __future__ import annotations

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin
from xdsl.parser import Parser

from sassir.analysis.allocation import check_allocation
from sassir.dialect import SASS
from sassir.errors import TranslationError


def check(body: str) -> None:
    ctx = Context()
    ctx.load_dialect(Builtin)
    ctx.load_dialect(SASS)
    module = Parser(ctx, f'sass.kernel @k {{\n^entry(%r1: !sass.r<R1>, %p0: !sass.p<P0>):\n{body}\nsass.exit ""()\n}}').parse_module()
    (kernel,) = module.body.ops
    check_allocation(kernel.regions[0])


def test_a_value_in_its_register() -> None:
    check('%a = sass.mov "=R, $R"(%r1) : R1 -> R2\n%b = sass.mov "=R, $R"(%a) : R2 -> R3')


def test_an_overwritten_value() -> None:
    with pytest.raises(TranslationError, match=r"sass\.fadd .* reads a value from !sass.r<R1>, which holds another one there"):
        check('%a = sass.mov "=R, 0x1"() : -> R1\n%b = sass.fadd "=R, $R, $R"(%r1, %a) : R1 R1 -> R3')


ONE_ARM = """
sass.bra "^"() if %p0 ^join({arm}), ^then : P0
^then:
%b = sass.mov "=R, 0x2"() : -> R2
sass.next ^join({then})
^join{arguments}:
%c = sass.mov "=R, $R"({used}) : R2 -> R3
"""


def test_a_value_that_holds_on_one_path_only() -> None:
    body = '%a = sass.mov "=R, 0x1"() : -> R2' + ONE_ARM.format(arm="", then="", arguments="", used="%a").replace("^join()", "^join")
    with pytest.raises(TranslationError, match=r"reads a value from !sass\.r<R2>"):
        check(body)


def test_a_block_argument_joins_the_paths() -> None:
    join = "(%j: !sass.r<R2>)"
    check('%a = sass.mov "=R, 0x1"() : -> R2' + ONE_ARM.format(arm="%a : R2", then="%b : R2", arguments=join, used="%j"))


def test_a_value_used_before_it_is_made() -> None:
    with pytest.raises(TranslationError, match="reads a value"):
        check('%b = sass.mov "=R, $R"(%a) : R2 -> R3\n%a = sass.mov "=R, 0x1"() : -> R2')


def test_a_value_that_went_around_the_loop() -> None:
    """On the way back R2 holds %b, not %a."""
    with pytest.raises(TranslationError, match=r"reads a value from !sass\.r<R2>"):
        check("""
%a = sass.mov "=R, 0x1"() : -> R2
sass.next ^loop
^loop:
%b = sass.iadd3 "=R, $R, 0x1, RZ"(%a) : R2 -> R2
sass.bra "^"() if %p0 ^loop, ^out : P0
^out:""")
