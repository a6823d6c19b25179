"""Scoreboards and control codes: what does not depend on the instruction."""

from __future__ import annotations

SIGNAL_DISTANCE = 2
"""Cycles from an instruction that raises a scoreboard to the first that waits for it: before, the counter has not gone up.
Huerta et al., MICRO 2025, section 4; no exception in 227,000 pairs of ptxas's code of all architectures."""

MOST_UNDER_WAY = 63
"""A scoreboard is a counter; it counts up at issue, down when a result is written or operands are read. Huerta et al."""

DRAIN = 0
"""This stall count waits until nothing of the warp is under way: about 40 cycles (Huerta et al.; docs/hopper-measured.md)."""

SIGNALS_COMPLETION = frozenset({"CCTL", "CGAERRBAR", "ERRBAR", "FENCE", "LDGDEPBAR", "MEMBAR", "UTMACMDFLUSH"})
"""They have no results and no operands that are late: a scoreboard that they raise, on write or on read, tells that they are done."""

ORDERED_BY_BARRIER = frozenset({"BAR"})
"""When the warp goes on behind one of these, the memory instructions before it have read their operands. ptxas relies on it, most of all
on sm_75."""
