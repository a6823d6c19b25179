"""Whole verifications are timed with the candidates that matter: the rebuild, and what `sassir optimize` makes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sassir.gpu.suite import find_suite

script: Any = pytest.importorskip("verify_speed")


def test_both_candidates_of_a_kernel_hold_in_time() -> None:
    (entry,) = find_suite(Path(__file__).parents[2] / "bench", "sm_90", ["rgb2gray_u8"])
    pairs = list(script.measure(entry))
    assert [pair["candidate"] for pair in pairs] == ["rebuilt", f"optimised for {entry.file.small[0].name}"]
    for pair in pairs:
        assert pair["verdict"] == "holds"
        assert list(pair["layers"]) == ["container", "schedule", "allocation", "emulator"]
        assert pair["processor_seconds"] < script.LIMIT
