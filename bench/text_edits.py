"""Edits of the `.mlir` text of the kernel `edited`, as a user would make them, and what the edited kernel computes.

The kernel writes sum = x + 0x3e8 with one IADD3 and mix = x ^ 0x55aa with the LOP3 next to it. Both are one line each:

    %r9_1 = sass.iadd3 "=R, $R.reuse, 0x3e8, RZ"(%r2_1) : R2 -> R9 control<stall=1, wait=[0]> at 0x100
    %r11 = sass.lop3<"LUT"> "=R, $R, 0x55aa, RZ, 0x3c, !PT"(%r2_1) : R2 -> R11 control<stall=4> at 0x110
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from sassir.launch import Launch, Outputs

ADD, XOR = "0x3e8", "0x55aa"
PATIENT = 10
"""A stall count at which every fixed-latency result has arrived."""

_CONTROL = re.compile(r"control<stall=\d+")
_DEFINITION = re.compile(r"(?P<indent>\s*)(?P<result>%\w+) = (?P<middle>.*)\((?P<operand>%\w+)\) : \w+ -> (?P<register>\w+)")


class Edit(NamedTuple):
    """One edit and its effect."""

    name: str
    apply: Callable[[str], str]
    addend: int
    """The edited kernel computes sum = x + addend."""

    def expected(self, launch: Launch) -> Outputs:
        """What the edited kernel writes."""
        x = launch.buffers[0].initial()
        return {"sum": x + np.uint32(self.addend), "mix": x ^ np.uint32(int(XOR, 16))}


def _line(lines: list[str], constant: str) -> int:
    found = [i for i, line in enumerate(lines) if re.search(rf"\b{constant}\b", line)]
    if len(found) != 1:
        raise ValueError(f"expected one line with {constant}, found {len(found)}")
    return found[0]


def _with_stall(line: str, stall: int) -> str:
    return _CONTROL.sub(f"control<stall={stall}", line)


def change_constant(text: str) -> str:
    """Add 2000 in place of 1000."""
    lines = text.splitlines(keepends=True)
    at = _line(lines, ADD)
    lines[at] = lines[at].replace(ADD, "0x7d0")
    return "".join(lines)


def swap(text: str) -> str:
    """The XOR before the addition; each place in the schedule keeps its waits, and operands are not cached across the swap."""
    lines = text.splitlines(keepends=True)
    at = _line(lines, ADD)
    if _line(lines, XOR) != at + 1:
        raise ValueError("the two instructions are not neighbours")
    first, second = (_with_stall(line, PATIENT).replace(".reuse", "") for line in lines[at : at + 2])
    controls = [re.search(r"control<.*?>", line) for line in (first, second)]
    if None in controls:
        raise ValueError("an instruction has no control code")
    texts = [match[0] for match in controls if match]
    lines[at], lines[at + 1] = second.replace(texts[1], texts[0]), first.replace(texts[0], texts[1])
    return "".join(lines)


def insert(count: int) -> Callable[[str], str]:
    """An edit that adds 1000 another `count` times, one instruction each."""

    def apply(text: str) -> str:
        lines = text.splitlines(keepends=True)
        at = _line(lines, ADD)
        match = _DEFINITION.match(lines[at])
        if match is None:
            raise ValueError(f"not an instruction with one operand and one result: {lines[at]!r}")
        register, value = match["register"], match["result"]
        added = list[str]()
        for i in range(count):
            middle = match["middle"].replace(".reuse", "")
            added.append(f"{match['indent']}%more{i} = {middle}({value}) : {register} -> {register} control<stall={PATIENT}>\n")
            value = f"%more{i}"
        rest = "".join(lines[at + 1 :])
        rest = re.sub(rf"{re.escape(match['result'])}(?!\w)", value, rest)
        return "".join([*lines[:at], _with_stall(lines[at], PATIENT).replace(".reuse", ""), *added]) + rest

    return apply


EDITS = (
    Edit("nothing", str, 1000),
    Edit("a constant", change_constant, 2000),
    Edit("two independent instructions swapped", swap, 1000),
    Edit("one instruction more", insert(1), 2000),
    Edit("forty instructions more", insert(40), 41_000),
)
