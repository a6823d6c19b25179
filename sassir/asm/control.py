"""The control code of an instruction: bits 105 to 125 of its word.

The same layout holds on sm_70 to sm_121. Bit 109 keeps the warp selected (no yield); only then do bits 122-124 mean
operand reuse, which `Operand` carries. With bit 109 clear they are a batch marker, which compute code leaves at 0.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

_NOTATION = re.compile(r"\[?B([0-5-]{6}):R([0-6-]):W([0-6-]):([Y-]):S(\d\d)(?::T(\d))?\]?")

NO_SCOREBOARD = 7
SCOREBOARDS = 6


class Control(NamedTuple):
    """When an instruction may issue, and which scoreboards it raises."""

    stall: int = 0
    """Cycles until the next instruction of this warp may issue, 0 to 15 (0 drains the pipeline)."""
    yield_: bool = False
    """The scheduler may switch to another warp (bit 109 clear)."""
    write: int | None = None
    """Scoreboard released when the result is written."""
    read: int | None = None
    """Scoreboard released when the operands are read."""
    wait: tuple[int, ...] = ()
    """Scoreboards that must be clear before issue, ascending."""
    batch: int = 0
    """Batch marker, 0 to 7; only with `yield_`."""

    def __str__(self) -> str:
        """The community notation `[B0-----:R-:W0:Y:S04]` (CuAssembler's); a batch marker appends `:T1`."""
        wait = "".join(str(i) if i in self.wait else "-" for i in range(SCOREBOARDS))
        show = ["-" if i is None else str(i) for i in (self.read, self.write)]
        batch = f":T{self.batch}" if self.batch else ""
        return f"[B{wait}:R{show[0]}:W{show[1]}:{'Y' if self.yield_ else '-'}:S{self.stall:02d}{batch}]"

    @classmethod
    @cache
    def parse(cls, text: str) -> Control:
        """Read the notation that `str` writes, brackets optional. Raises ValueError on anything else."""
        match = _NOTATION.fullmatch(text)
        if match is None:
            raise ValueError(f"not a control code: {text!r}; expected the form [B0-----:R-:W0:Y:S04]")
        wait, read, write, yield_, stall, batch = match.groups()
        wait = wait.replace("-", "")
        on_write, on_read = [None if s == "-" else int(s) for s in (write, read)]
        return cls(int(stall), yield_ == "Y", on_write, on_read, tuple(sorted({int(c) for c in wait})), int(batch or 0))


@cache
def decode_control(bits: int) -> Control:
    """The control code in `bits`, word bits 105-124."""
    keep = bits >> 4 & 1
    write, read = [None if i == NO_SCOREBOARD else i for i in (bits >> 5 & 7, bits >> 8 & 7)]
    wait = tuple(i for i in range(SCOREBOARDS) if bits >> 11 + i & 1)
    return Control(bits & 15, not keep, write, read, wait, 0 if keep else bits >> 17 & 7)


@cache
def encode_control(control: Control) -> int:
    """Word bits 105-124 without the reuse bits. Raises ValueError for a value that the field cannot hold."""
    stall, yield_, write, read, wait, batch = control
    legal_stall = range(16) if yield_ else range(1, 12)
    if stall not in legal_stall:
        manner = "with" if yield_ else "without"
        raise ValueError(f"stall {stall} is not encodable {manner} yield (legal: {legal_stall[0]} to {legal_stall[-1]})")
    for index in (write, read):
        if index is not None and not 0 <= index < NO_SCOREBOARD:
            raise ValueError(f"scoreboard {index} does not exist (there are 0 to {SCOREBOARDS - 1})")
    if any(not 0 <= i < SCOREBOARDS for i in wait):
        raise ValueError(f"cannot wait for scoreboards {wait} (there are 0 to {SCOREBOARDS - 1})")
    if batch and not (yield_ and 0 < batch < 8):
        raise ValueError("a batch marker is 1 to 7 and needs yield")
    bits = stall | (not yield_) << 4 | batch << 17
    bits |= (NO_SCOREBOARD if write is None else write) << 5
    bits |= (NO_SCOREBOARD if read is None else read) << 8
    for i in wait:
        bits |= 1 << 11 + i
    return bits
