"""Several warps that share units."""

from __future__ import annotations

import pytest

from sassir.timing.network import Unit, solve


def test_one_warp_waits_for_nobody() -> None:
    found = solve(100.0, {"fma": Unit(40.0, 1.0)})
    assert found.cycles == 100
    assert found.waiting == {"fma": 0}
    assert found.utilisation == {"fma": 0.4}


def test_many_warps_take_what_the_busiest_unit_needs() -> None:
    found = solve(100.0, {"fma": Unit(40.0, 16.0), "alu": Unit(10.0, 16.0)})
    assert found.cycles == pytest.approx(640, rel=0.02)
    assert found.utilisation["fma"] == pytest.approx(1, abs=0.02)
    assert found.utilisation["alu"] == pytest.approx(0.25, abs=0.01)
    assert found.waiting["fma"] > 100 * found.waiting["alu"] / 10


def test_a_unit_is_never_more_than_busy() -> None:
    for sharers in (2.0, 3.0, 4.0, 8.0, 64.0):
        assert solve(100.0, {"fma": Unit(40.0, sharers)}).utilisation["fma"] <= 1 + 1e-9


def test_latency_is_hidden_by_warps() -> None:
    """Twice the warps, little more time for each: so far nobody is in the way."""
    few, more = (solve(1000.0, {"issue": Unit(10.0, sharers)}).cycles for sharers in (8.0, 16.0))
    assert 1000 < few < more < 1.03 * few


def test_time_grows_with_the_number_of_warps() -> None:
    times = [solve(300.0, {"lsu": Unit(20.0, float(n)), "DRAM": Unit(30.0, float(n))}).cycles for n in range(1, 40)]
    assert times == sorted(times)


def test_skew_is_a_share_of_the_time() -> None:
    assert solve(100.0, {"issue": Unit(10.0, 1.0)}, skew=0.1).cycles == pytest.approx(110)
