"""Natural loops: headers, latches, nesting, preheaders; cycles with two entries are named, not guessed at."""

from __future__ import annotations

from sassir.analysis.cfg import Cfg
from sassir.analysis.loops import Loop, Loops


def loops(*successors: list[int]) -> Loops:
    return Loops(Cfg(successors, [0]))


def described(found: Loops) -> list[tuple[int, list[int], int, int | None]]:
    return [(loop.header, sorted(loop.blocks()), loop.depth, loop.preheader) for loop in found.loops]


def test_one_loop() -> None:
    found = loops([1], [2], [1, 3], [])
    assert described(found) == [(1, [1, 2], 1, 0)]
    assert found.loops[0].latches == [2]
    assert [found.depth(b) for b in range(4)] == [0, 1, 1, 0]
    assert found.irreducible == []


def test_a_block_that_goes_to_itself() -> None:
    assert described(loops([1], [1, 2], [])) == [(1, [1], 1, 0)]


def test_nested_loops_outermost_first() -> None:
    found = loops([1], [2], [3], [2, 4], [1, 5], [])
    assert described(found) == [(1, [1, 2, 3, 4], 1, 0), (2, [2, 3], 2, 1)]
    outer, inner = found.loops
    assert inner.parent is outer
    assert outer.inner == [inner]
    assert outer.own == [1, 4]
    assert found.innermost[3] is inner


def test_two_loops_inside_of_one() -> None:
    found = loops([1], [2], [2, 3], [3, 4], [1, 5], [])
    assert described(found) == [(1, [1, 2, 3, 4], 1, 0), (2, [2], 2, 1), (3, [3], 2, None)]


def test_two_ways_back_are_one_loop() -> None:
    found = loops([1], [2, 3], [1], [1, 4], [])
    assert described(found) == [(1, [1, 2, 3], 1, 0)]
    assert sorted(found.loops[0].latches) == [2, 3]


def test_a_header_that_two_blocks_enter_has_no_preheader() -> None:
    assert loops([1, 2], [2], [3], [2, 4], []).loops[0].preheader is None


def test_a_block_before_the_loop_that_also_goes_elsewhere_is_no_preheader() -> None:
    assert loops([1, 2], [1, 2], []).loops[0].preheader is None


def test_a_loop_at_the_entry_has_no_preheader() -> None:
    assert described(loops([0, 1], [])) == [(0, [0], 1, None)]


def test_a_cycle_with_two_entries() -> None:
    """1 and 2 lead to each other, and 0 to both: no header dominates the cycle."""
    found = loops([1, 2], [2], [1, 3], [])
    assert found.loops == []
    assert found.irreducible in ([(2, 1)], [(1, 2)])


def test_a_loop_beside_a_cycle_with_two_entries() -> None:
    found = loops([1, 2], [2], [1, 3], [3, 4], [])
    assert described(found) == [(3, [3], 1, None)]
    assert len(found.irreducible) == 1


def test_a_loop_that_control_never_comes_to() -> None:
    assert described(loops([], [2], [1])) == [(1, [1, 2], 1, None)]


def test_a_thousand_nested_loops() -> None:
    """Nothing recurses."""
    depth = 1000
    graph = [[i + 1] for i in range(depth)] + [[i + 1, 2 * depth - i] for i in range(depth, 2 * depth)] + [[]]
    found = loops(*graph)
    assert max(loop.depth for loop in found.loops) == len(found.loops)


def test_a_loop_is_plain_data() -> None:
    assert Loop(1, [2], 0).blocks() == []
