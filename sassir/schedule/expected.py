"""How long a result with variable latency is expected to take, in cycles: a guess to order code by, never a promise.

Shared memory, constants, shuffles and special functions: Huerta et al., Analyzing Modern NVIDIA GPU cores (2025), table 2.
Global memory: between a hit in the second-level cache and one in DRAM.
"""

from __future__ import annotations

GLOBAL = 500
LATE = {
    "ATOM": GLOBAL,
    "ATOMG": GLOBAL,
    "ATOMS": 60,
    "LD": GLOBAL,
    "LDC": 30,
    "LDCU": 30,
    "LDG": GLOBAL,
    "LDL": 40,
    "LDS": 30,
    "LDSM": 33,
    "MUFU": 24,
    "S2R": 30,
    "S2UR": 30,
    "SHFL": 24,
}
OTHER = 24
"""For the others: conversions, population counts, 64-bit arithmetic where a scoreboard signals it."""


def expected_latency(mnemonic: str) -> int:
    """The cycles from issue to result of an instruction that signals a scoreboard."""
    return LATE.get(mnemonic, OTHER)
