"""Which values share a register, and which have registers in a row."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import Region

from sassir.analysis.bonds import groups, neighbours, tied
from sassir.dialect.instruction import SassInstruction

Parse = Callable[[str], Region]


def test_what_is_tied(parse: Parse) -> None:
    """A kept value and its result, a register that is read and written, a value and the argument that it becomes."""
    region = parse("""
%a = sass.mov "=R, 0x1"() if %p0 keep (%r1) : P0 R1 -> R1
%b0 = sass.bssy "=B, ^"() @x : -> B0
%r8, %b1 = sass.bmov<"32.CLEAR"> "=R, $=B"(%b0) : B0 -> R8 B0
sass.next ^next(%a : R1)
^next(%x: !sass.r<R1>):""")
    names = [(a.name_hint, b.name_hint) for block in region.blocks for op in block.ops for a, b in tied(op)]
    assert names == [("r1", "a"), ("b0", "b1"), ("a", "x")]


def test_groups_are_the_wide_operands(parse: Parse) -> None:
    op = parse('%a, %b = sass.ldg<"E.64"> "=R2, [$R2.64]"(%r4, %r5) : R4 R5 -> R8 R9').blocks[0].first_op
    assert isinstance(op, SassInstruction)
    assert [[v.name_hint for v in group] for group in groups(op)] == [["a", "b"], ["r4", "r5"]]
    assert [[v.name_hint for v in pair] for pair in neighbours(op)] == [["a", "b"], ["r4", "r5"]]
