"""The rules of a schedule by name, and what a broken one is."""

from __future__ import annotations

from typing import NamedTuple

DRAIN_CYCLES = 37
"""Cycles that stall count 0 takes at least, which lets the pipeline drain: 45 on Ampere (Huerta et al., MICRO 2025), 37 on sm_120
(basalt-sass 1.0)."""


class Rule(NamedTuple):
    """One thing that can be wrong."""

    name: str
    problem: str
    """What the second instruction does, with holes for the register (or scoreboard) and the first instruction."""
    evidence: str = ""
    """Where the rule comes from; empty if a cell of a latency matrix says so."""


_HUERTA = "Huerta et al., Dissecting and Modeling the Architecture of Modern GPU Cores, MICRO 2025"
_LATE = f"{_HUERTA}; no exception in 2 million instructions of ptxas, sm_75 to sm_120"
# fmt: off
RAW = Rule("raw-too-early", "reads {subject}, which {first} writes")
WAR = Rule("war-too-early", "writes {subject}, which {first} reads")
WAW = Rule("waw-too-early", "writes {subject}, which {first} writes")
NOT_AWAITED = Rule("result-not-awaited", "reads {subject} without waiting until {first} has written it", _LATE)
OVERWRITTEN = Rule("result-overwritten", "writes {subject} without waiting until {first} has written it", _LATE)
OPERAND = Rule("operand-overwritten", "writes {subject} without waiting until {first} has read it", _LATE)
FENCE = Rule("fence-not-awaited", "accesses {subject} without waiting until {first} is over", "no exception in code of ptxas")
UNKNOWN_CODE = Rule("pending-at-call", "goes to code that is not known without waiting until {first} is done with {subject}", _LATE)
WAIT = Rule("wait-too-early", "waits for scoreboard {subject}, which {first} signals",
            f"{_HUERTA}; no exception in 227 thousand waits of ptxas")
BARRIER = Rule("too-soon-after-barrier", "comes too soon after {first}",
              "no exception behind 30 thousand barriers of ptxas; one cycle less gives wrong results on an H200")
GROUP = Rule("warpgroup-too-near", "comes too soon after {first}", "no exception at 60 warpgroup instructions of ptxas and Triton")
STALL = Rule("stall-too-short", "has a stall count that is too small for it", "smallest count in code of ptxas")
REUSE = Rule("stale-reuse", "writes {subject}, which {first} keeps in the operand cache for a later read",
             f"{_HUERTA}; no exception in 30 thousand marks of ptxas")
ILLEGAL = Rule("illegal-control", "has a control code that does not exist", "nvdisasm 13.5 rejects it")
UNKNOWN = Rule("unknown-instruction", "is not known; what depends on it is not checked", "tables of sassir.isa and sassir.machine")
FLOW = Rule("unknown-flow", "goes to places that are not known; what depends on that is not checked", "attributes of the file")
# fmt: on


class Fault(NamedTuple):
    """A broken rule."""

    rule: Rule
    first: int | None
    """The line of the first instruction; None where there is none, or where it has to be looked for."""
    second: int
    subject: int
    """Register or scoreboard."""
    distance: int = 0
    """Cycles between the two; 0 with `needed` 0 where a wait is missing, not cycles."""
    needed: int = 0
    evidence: str = ""
    certain: bool = True
    """False: the hardware may need less, so this is suspicious, not wrong."""
    told: tuple[int, ...] = ()
    """The scoreboards of which one would tell that the first is over."""

    @property
    def missing(self) -> int:
        """Cycles that the two are too close."""
        return self.needed - self.distance
