"""The faults that a measurement has to find are really in the planted cubins, and nothing else is."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from sassir.cubin.cubin import Cubin
from sassir.translate.cubin import read_program

BENCH = Path(__file__).parents[2] / "bench"


@pytest.fixture(scope="module")
def planted() -> Any:
    spec = importlib.util.spec_from_file_location("planted", BENCH / "planted.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def listing(cubin: bytes) -> list[str]:
    (function,) = read_program(cubin).functions
    return [str(line.instruction) for line in function.lines]


@pytest.mark.parametrize(
    ("fault", "before", "after"),
    [
        ("wrong result", "FADD R7, R7, 0.5", "FADD R7, R7, 0.75"),
        ("illegal address", "LEA.HI.X R3, R0, UR7, R3, 0x2, P0", "MOV R3, RZ"),
        ("misaligned access", "LEA R2, P0, R0, UR6, 0x2", "LEA R2, P0, R0, UR6, 0x1"),
        ("endless loop", "EXIT", "BRA"),
    ],
)
def test_one_line_changes(planted: Any, fault: str, before: str, after: str) -> None:
    old, new = listing(planted.ORIGINAL.read_bytes()), listing(planted.faulty(fault))
    ((found, made),) = [pair for pair in zip(old, new, strict=True) if pair[0] != pair[1]]
    assert found == before
    assert made.startswith(after)


def test_a_slowdown_adds_a_chain_to_the_hot_loop(planted: Any) -> None:
    old, new = listing(planted.ORIGINAL.read_bytes()), listing(planted.slowed_down(3))
    place = old.index("FADD R7, -R7, R6") + 1
    assert new[place : place + 3] == ["FADD R7, R7, -RZ"] * 3
    rest = new[:place] + new[place + 3 : len(old) + 3]
    assert [i for i, (before, after) in enumerate(zip(old, rest, strict=True)) if before != after and "BRA" not in before] == []
    first = old.index("FMUL R7, R6, 0.00019840999448206275702")
    last = next(i for i, text in enumerate(old) if text.startswith("@P1 BRA"))
    assert first < place <= last
    assert last - first + 1 == planted.LOOP_INSTRUCTIONS


def test_the_foreign_cubin_is_foreign(planted: Any) -> None:
    assert Cubin.read(planted.OTHER_ARCHITECTURE.read_bytes()).arch == "sm_80"


def test_an_unknown_listing_is_refused(planted: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planted, "ORIGINAL", BENCH / "cubins" / "saxpy_gs.sm_90.cubin")
    with pytest.raises(ValueError, match="expected one line"):
        planted.faulty("endless loop")
