"""How long an instruction keeps its pipe, and how long its warp must wait after it whatever comes next."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120")

# The stall count that ptxas leaves between two neighbours of the same kind that do not depend on each other (at least nine of ten
# pairs, 2,000 to 50,000 pairs for the common rows, in the wheels of bench/fetch_corpus.py). Rows with `*`, for which there are too few:
# 32 lanes over what the CUDA C++ Programming Guide (13.0, table of arithmetic throughput) gives for an SM and four schedulers.
# The last rows are for all other instructions of a pipe.
# fmt: off
ISSUE = """
# instruction                                          sm_75 sm_80 sm_86 sm_89 sm_90 sm_100 sm_120
FADD FFMA FMUL                                             2     2     1     1     1      1      1
IMAD.HI IMAD.WIDE IMUL.WIDE                                4     4     4     4     4      4      4
CS2R                                                       1     1     1     1     2      2      1
FMNMX FSEL FSETP FSET IADD ISETP MOV SEL VIMNMX            2     2     2     2     2      2      1
HMMA.1688 HMMA.1684 QMMA.16816                             8     4     4     4     3      4      6
HMMA QMMA OMMA                                             8     8     8     8     6      8     11
IMMA.8816 IMMA.8832 BMMA.88128                             4     4     4     4     4      4      4
IMMA.16816 IMMA.16832.S4 IMMA.16832.U4 BMMA.168128         4     4     4     4     4      4      8
IMMA BMMA                                                  8     8     8     8     8      8     10
DADD DFMA DMUL DSETP                                     64*    4*   64*   64*    2*     2*    64*
F2F.F64 F2I.F64 I2F.F64 FRND.F64 F2I.S64 I2F.S64         64*    8*   64*   64*    8*     8*    64*
LDC                                                        8     8     8     8     8      8      8
LDCU ULDC UMOV VOTEU                                       1     1     1     1     1      1      1
LDS.128                                                    8     4     4     4     4      4      4
S2R                                                        4     4     4     4     1      1      1
S2UR                                                       8     8     8     8     8      8      8
R2UR                                                       4     4     4     4     2      2      2
alu                                                        2     2     2     2     2      2      2
fma                                                        2     2     2     2     2      2      2
fp16                                                       2     2     2     2     2      2      2
fp64                                                       2     2     2     2     2      2      2
xu                                                        8*    8*    8*    8*    8*     8*     8*
lsu                                                        4     4     4     4     4      4      4
tex                                                        4     4     4     4     4      4      4
uniform                                                    2     2     2     2     2      2      1
"""

# The smallest stall count there is in code of ptxas; 0, which waits for everything, is always enough. After a slash, where that is of
# an old release: what newer ones give.
MINIMUM = """
# instruction                                          sm_75 sm_80 sm_86 sm_89 sm_90 sm_100 sm_120
BAR                                                        5     6     6     6     6      6      6
BAR.DEFER_BLOCKING                                         5     1     1     1     1      1      1
BMOV                                                       1     1     1     1     1      5      5
BPT                                                        5     5     5     5     1      5      5
BRA BRX BRXU BSYNC EXIT JMP JMX JMXU KILL RET              5     5     5     5     5      5      5
BRA.U                                                      1     5     5     5     5      5      5
BREAK                                                    1/5   1/5   1/5   1/5   4/5      5      5
CALL                                                       5     5     5     5     5      5      5
CALL.REL                                                   5     1     1     1     5      5      5
CGAERRBAR                                                  5     5     5     5     5      5      5
DEPBAR                                                     4     4     4     4     4      4      4
ENDCOLLECTIVE                                              5     5     5     5     1      5      5
MEMBAR                                                     5     6     6     6     6      6      6
NANOSLEEP                                                  1     1     1     1     5      5      5
WARPSYNC                                                   1     1     1     1     1      5      5
WARPSYNC.COLLECTIVE                                        5     5     5     5   1/5      5      5
YIELD                                                      1     1     1     1     5      5      5
"""

# Until an instruction of variable latency, or of control flow, may issue; others only need the minimum. 30,000 barriers of ptxas.
SETTLE = """
# instruction                                          sm_75 sm_80 sm_86 sm_89 sm_90 sm_100 sm_120
BAR.DEFER_BLOCKING                                         5     6     6     6     6      6      6
"""
# fmt: on

_Rows = dict[str, list[tuple[frozenset[str], int]]]


class Issue(NamedTuple):
    """How an instruction occupies its pipe and its warp, in cycles."""

    interval: int
    """Until the pipe takes the next instruction."""
    minimum: int
    """The smallest stall count."""
    usual: int
    """The stall count for new code."""
    settle: int
    """Until an instruction of variable latency, or of control flow, may issue."""


def issue(arch: str, pipe: str, mnemonic: str, modifiers: tuple[str, ...]) -> Issue:
    """The row of an instruction in each table."""
    intervals, minima, usual, settles = _tables(arch)
    minimum = _find(minima, mnemonic, modifiers) or 1
    interval = _find(intervals, mnemonic, modifiers) or _find(intervals, pipe, ()) or 1
    return Issue(interval, minimum, _find(usual, mnemonic, modifiers) or 1, _find(settles, mnemonic, modifiers) or minimum)


def _find(rows: Mapping[str, list[tuple[frozenset[str], int]]], name: str, modifiers: tuple[str, ...]) -> int | None:
    """The value of the row for the most of the modifiers."""
    return next((value for needed, value in rows.get(name, ()) if needed.issubset(modifiers)), None)


@cache
def _tables(arch: str) -> tuple[_Rows, _Rows, _Rows, _Rows]:
    return _parse(ISSUE, arch), _parse(MINIMUM, arch), _parse(MINIMUM, arch, -1), _parse(SETTLE, arch)


def _parse(table: str, arch: str, part: int = 0) -> _Rows:
    rows: _Rows = {}
    for line in table.strip().splitlines():
        if line.startswith("#"):
            continue
        *names, _, _, _, _, _, _, _ = words = line.split()
        value = words[len(names) + ARCHITECTURES.index(arch)].rstrip("*").split("/")[part]
        for name in names:
            mnemonic, *modifiers = name.split(".")
            rows.setdefault(mnemonic, []).append((frozenset(modifiers), int(value)))
    for group in rows.values():
        group.sort(key=lambda row: -len(row[0]))
    return rows
