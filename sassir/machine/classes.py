"""Latency classes: which row of the latency matrices a written register has, and which column a register that is read.

An instruction has one writer class and one reader class (per operand where they differ). What that means for each register
file is here; which instruction has which class is in `instructions`; the cycles are in the matrices (`tables/`).
The division follows Mesa NAK's tables, refined where ptxas's code shows different minima.
"""

from __future__ import annotations

from typing import NamedTuple

FILES = ("R", "P", "UR", "UP", "B")
"""Register files, in the order of the columns below."""

# fmt: off
WRITERS = """
# class    | R         | P      | UR   | UP    | B   | results of
alu        | alu       | alu    |      |       |     | integer and logic
alu.b      | alu.b     | alu.b  |      |       |     | comparison, selection and moves: a second unit on sm_120
alu64      | alu64.lo  | alu.b  |      |       |     | 64-bit integers, low half
alu64.hi   | alu64.hi  | alu.b  |      |       |     | 64-bit integers, high half
disp64     | disp64    |        |      |       |     | 64-bit moves of the dispatch unit
fma        | fma       | fma    |      |       |     | single precision and integer multiply-add
wide       | wide.lo   | fma    |      |       |     | IMAD.WIDE, low half: two cycles before the high half
wide.hi    | wide.hi   | fma    |      |       |     | IMAD.WIDE, high half
fp16       | fp16      | fp16   |      |       |     | half precision
fp16.alu   | fp16.alu  | fp16   |      |       |     | half precision, comparison
fp16.f32   | fp16.f32  | fp16   |      |       |     | half precision to single
hfma2.mma  | hfma2.mma |        |      |       |     | half precision in the FP64 unit
fp64       | fp64      | fp64   |      |       |     | double precision
hmma.1     | hmma.1    |        |      |       |     | matrices of floating point, one pass
hmma.2     | hmma.2    |        |      |       |     | matrices of floating point, two passes
imma.8     | imma.8    |        |      |       |     | matrices of integers, 8 rows
imma.1     | imma.1    |        |      |       |     | matrices of integers, one pass
imma.2     | imma.2    |        |      |       |     | matrices of integers, two passes
dmma       | dmma      |        |      |       |     | matrices of double precision
dmma.2     | dmma.2    |        |      |       |     | matrices of double precision, 16 rows
udp        |           |        | udp  | udp   |     | uniform datapath
umov       |           | alu.b  | umov | voteu |     | uniform moves and votes
uldc       |           |        | uldc |       |     | uniform constants
r2ur       |           | r2ur   | r2ur |       |     | from a lane to the warp
late       | late      | late   | late | late  | bar | whatever takes a variable time
"""

READERS = """
# class    | R         | P      | UR     | UP     | B   | operands of
alu        | alu       | alu    | vector | vector |     | integer and logic
alu.b      | alu.b     | alu.b  | vector | vector |     | comparison, selection and moves
alu64      | alu64     | alu.b  | vector | vector |     | 64-bit integers
vote       | alu.b     | guard  | vector | guard  |     | votes
fma        | fma       | fma    | vector | vector |     | single precision and integer multiply-add, low half of IMAD.WIDE's addend
wide       | wide      | fma    | vector | vector |     | IMAD.WIDE, factors
wide.hi    | wide.hi   | fma    | vector | vector |     | IMAD.WIDE, high half of the addend: read two cycles later
fp16       | fp16      | fp16   | vector | vector |     | half precision
fp16.alu   | fp16.alu  | fp16   | vector | vector |     | half precision, comparison
fp16.f32   | fp16.f32  | fp16   | vector | vector |     | half precision to single
hfma2.mma  | hfma2.mma | fp64   | vector | vector |     | half precision in the FP64 unit
fp64       | fp64      | fp64   | late   | vector |     | double precision
mma.1      | mma.1     | guard  | late   | guard  |     | matrices, one pass
mma.2      | mma.2     | guard  | late   | guard  |     | matrices, two passes: half of the operands are read later
dmma       | dmma      | guard  | late   | guard  |     | matrices of double precision
udp        | late      | guard  | udp    | udp    |     | uniform datapath
umov       | late      | guard  | umov   | udp    |     | uniform moves and votes
uldc       | late      | guard  | uldc   | guard  |     | uniform constants
late       | late      | guard  | late   | guard  | bar | whatever takes a variable time
memory     | memory    | guard  | late   | guard  | bar | memory and what goes the same way: shuffles, barriers
branch     | late      | guard  | branch | branch | bar | branches
bindless   |           |        | bindless |      |     | banks of constants
"""
# fmt: on

BINDLESS = "bindless"
"""The class of a uniform register that holds the bank of a constant operand, in whatever instruction."""


class Axis(NamedTuple):
    """The lines of the latency matrices in one direction."""

    names: tuple[str, ...]
    """`R.alu`, `P.guard` …, by number."""
    number: dict[str, int]
    by_class: dict[tuple[str, str], int]
    """The number for a class and a register file."""

    def line(self, name: str, file: str) -> int:
        """The number for a class and a register file; the one of variable latency where the class has none for the file."""
        found = self.by_class.get((name, file))
        return self.by_class["late", file] if found is None else found


def _axis(table: str) -> Axis:
    lines = [[cell.strip() for cell in line.split("|")] for line in table.strip().splitlines() if not line.startswith("#")]
    names = [f"{file}.{name}" for i, file in enumerate(FILES, 1) for name in dict.fromkeys(line[i] for line in lines) if name]
    number = {name: i for i, name in enumerate(names)}
    by_class = {(line[0], file): number[f"{file}.{line[i]}"] for line in lines for i, file in enumerate(FILES, 1) if line[i]}
    return Axis(tuple(names), number, by_class)


ROWS = _axis(WRITERS)
"""What writes a register."""
COLUMNS = _axis(READERS)
"""What reads a register."""
