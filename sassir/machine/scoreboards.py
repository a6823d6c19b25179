"""Scoreboards and control codes: what does not depend on the instruction."""

from __future__ import annotations

SIGNAL_DISTANCE = 2
"""Cycles from an instruction that raises a scoreboard to the first that waits for it: before, the counter has not gone up.
Huerta et al., MICRO 2025, section 4; no exception in 227,000 pairs of ptxas's code of all architectures."""

ORDERED_BY_BARRIER = frozenset({"BAR"})
"""When the warp goes on behind one of these, the memory instructions before it have read their operands. ptxas relies on it, most of all
on sm_75."""
