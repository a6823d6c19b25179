"""SSA form: planted bugs that MLIR's own checks do not find, and real code, freed and not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from xdsl.ir import Region

from sassir.analysis.ssa import verify_ssa
from sassir.dialect.operations import KernelOp
from sassir.errors import TranslationError
from sassir.passes.virtualise import virtualise
from sassir.translate.cubin import read_module

Parse = Callable[[str], Region]
CUBINS = sorted((Path(__file__).parents[1] / "cubins").glob("*.cubin"))


@pytest.mark.parametrize("path", CUBINS, ids=lambda p: p.stem)
def test_real_code_is_ssa(path: Path) -> None:
    for kernel in read_module(path.read_bytes()).body.ops:
        assert isinstance(kernel, KernelOp)
        verify_ssa(kernel.body)
        virtualise(kernel)
        verify_ssa(kernel.body)


def test_a_value_of_a_dominating_block(parse: Parse) -> None:
    verify_ssa(parse('%a = sass.mov "=R, 0x1"()\nsass.next ^b\n^b:\n%b = sass.mov "=R, $R"(%a)'))


MAKE, READ, ELSEWHERE = '%a = sass.mov "=R, 0x1"()', '%b = sass.mov "=R, $R"(%a)', "uses %a, which is not made on every path to it"
FORK = 'sass.bra "^"() if %p0 ^left, ^right : P0\n^left:\n'


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (f"{READ}\n{MAKE}", "uses %a before it is made"),
        (f"{READ}\nsass.next ^b\n^b:\n{MAKE}", ELSEWHERE),
        (f"{FORK}{MAKE}\nsass.next ^right\n^right:\n{READ}", ELSEWHERE),
        (f'{FORK}{MAKE}\nsass.exit ""()\n^right:\n{READ}', ELSEWHERE),
        (f"sass.next ^loop\n^loop:\n{READ}\n{MAKE}\nsass.next ^loop\n^out:", "uses %a before it is made"),
        (f'{READ}\nsass.bra "^"() ^self\n^self:\n{MAKE}', ELSEWHERE),
    ],
    ids=["same block", "later block", "one arm", "other arm", "around the loop", "behind a branch"],
)
def test_a_definition_that_does_not_dominate(parse: Parse, body: str, message: str) -> None:
    with pytest.raises(TranslationError, match=message):
        verify_ssa(parse(body))


def test_a_value_that_only_another_entry_makes(parse: Parse) -> None:
    """Nothing leads to ^island, so what it uses must be its own argument."""
    with pytest.raises(TranslationError, match="uses %a, which is not made on every path"):
        verify_ssa(parse('%a = sass.mov "=R, 0x1"()\nsass.exit ""()\n^island:\n%b = sass.mov "=R, $R"(%a)'))


def test_no_value_comes_through_a_call_of_other_code(parse: Parse) -> None:
    call = 'sass.call<"ABS.NOINC"> "@0x0"() ^back{} link "ABS55_16_34 f"\n^back{}:\n%b = sass.mov "=R, $R"({}) : {} -> R9'
    verify_ssa(parse(call.format("", "(%a: !sass.r<R4>)", "%a", "R4")))
    with pytest.raises(TranslationError, match="uses %r4, which is not made on every path"):
        verify_ssa(parse(call.format("", "", "%r4", "R4")))
    skipped = f'sass.bra "^"() if %p0 ^back, ^call : P0\n^call:\n{call.format("", "", "%r4", "R4")}'
    with pytest.raises(TranslationError, match="uses %r4, which is not made on every path"):
        verify_ssa(parse(skipped))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("sass.next ^b\n^b(%x: !sass.r<R4>):", "passes nothing to a block that takes R4"),
        ("sass.next ^b(%r4, %r1 : R4 R1)\n^b(%x: !sass.r<R4>):", "passes R4, R1 to a block that takes R4"),
        ("sass.next ^b(%p0 : P0)\n^b(%x: !sass.r<R4>):", "passes P0 to a block that takes R4"),
        ("sass.next ^b(%r1 : R1)\n^b(%x: !sass.r):", "passes R1 to a block that takes R"),
        ('sass.bra "^"() ^b(%r1 : R1)\n^b(%x: !sass.p<P1>):', "passes R1 to a block that takes P1"),
        ('sass.bra "^"() ^b(%r1, %p0 : R1 P0)\n^b(%x: !sass.r<R1>):', "the guard is !sass.r<R1>, expected a predicate"),
        ('%a = sass.mov "=R, $R"(%p0) : P0 -> R1', "has a hole for R, which !sass.p<P0> cannot fill"),
        ('%a = sass.mov "=R, 0x1"() if %p0 keep (%p0) : P0 P0 -> R1', "a result in !sass.r<R1> keeps a value in !sass.p<P0>"),
    ],
)
def test_what_is_passed_must_fit(parse: Parse, body: str, message: str) -> None:
    with pytest.raises(TranslationError, match=message.replace("(", r"\(")):
        verify_ssa(parse(body))


def test_a_block_without_an_end(parse: Parse) -> None:
    region = parse('sass.next ^b\n^b:\n%a = sass.mov "=R, 0x1"()')
    last = region.blocks[1].last_op
    assert last is not None
    last.detach()
    with pytest.raises(TranslationError, match=r"block .* has no branch, sass\.next or sass\.end at its end"):
        verify_ssa(region)


def test_a_branch_in_the_middle(parse: Parse) -> None:
    region = parse('sass.exit ""()\n^b:')
    first, second = region.blocks
    exit = first.last_op
    assert exit is not None
    exit.detach()
    assert second.first_op is not None
    second.insert_op_before(exit, second.first_op)
    first.add_op(exit.clone())
    with pytest.raises(TranslationError, match="must be the last operation of a block"):
        verify_ssa(region)
