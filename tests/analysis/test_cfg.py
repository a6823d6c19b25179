"""Control-flow graphs by hand: order, dominators, frontiers, liveness."""

from __future__ import annotations

from sassir.analysis.cfg import Cfg

DIAMOND = [[1, 2], [3], [3], []]
LOOP = [[1], [2], [1, 3], []]


def test_reverse_postorder_visits_predecessors_first() -> None:
    order = Cfg(DIAMOND, [0]).order
    assert order[0] == 0
    assert order[3] == 3


def test_dominators_of_a_diamond() -> None:
    assert Cfg(DIAMOND, [0]).dominators == [-1, 0, 0, 0]


def test_frontier_is_where_paths_meet() -> None:
    assert Cfg(DIAMOND, [0]).frontiers == [[], [3], [3], []]
    assert Cfg(LOOP, [0]).frontiers == [[], [1], [1], []]


def test_a_second_entry_dominates_nothing_it_shares() -> None:
    graph = Cfg(DIAMOND, [0, 2])
    assert graph.dominators == [-1, 0, -1, -1]
    assert [sorted(f) for f in graph.frontiers] == [[2, 3], [3], [3], []]


def test_unreachable_blocks_get_a_root_of_their_own() -> None:
    graph = Cfg([[], [2], [1]], [0])
    assert graph.roots == {0, 1}
    assert graph.dominators == [-1, -1, 1]
    assert sorted(graph.order) == [0, 1, 2]


def test_unreachable_block_that_jumps_into_a_loop() -> None:
    graph = Cfg([[1], [1], [1]], [0])
    assert graph.dominators == [-1, -1, -1]
    assert graph.frontiers == [[1], [1], [1]]


def test_liveness_goes_around_loops() -> None:
    assert Cfg(LOOP, [0]).live_in(uses=[0, 0, 0b01, 0b10], defines=[0b01, 0, 0, 0]) == [0b10, 0b11, 0b11, 0b10]


def test_ten_thousand_blocks_in_a_row() -> None:
    """Nothing recurses, and nothing is quadratic."""
    count = 10_000
    graph = Cfg([[i + 1] for i in range(count - 1)] + [[]], [0])
    assert graph.dominators[-1] == count - 2
    assert graph.live_in([0] * (count - 1) + [1], [0] * count)[0] == 1


def test_a_block_dominates_what_only_it_leads_to() -> None:
    graph = Cfg([[1, 4], [2, 3], [5], [5], [], []], [0])
    assert [b for b in range(6) if graph.dominates(1, b)] == [1, 2, 3, 5]
    assert all(graph.dominates(0, b) for b in range(6))
    assert not graph.dominates(2, 5)
    assert not graph.dominates(4, 1)
