"""Programs as text: sassir's own listing, which `read_listing` and `assemble` turn back into the same program."""

from __future__ import annotations

import base64
import json
import re
import textwrap
from collections.abc import Mapping
from itertools import count

import zstandard

from sassir.asm.control import Control
from sassir.asm.instruction import INSTRUCTION_BYTES, Instruction
from sassir.asm.program import Function, Program

_BARE = re.compile(r"[\w.$@]+")
_COLUMNS = 120
_LEVEL = 19


def print_listing(program: Program) -> str:
    """The program as sassir's listing, meant to be edited.

    `[B0-----:R-:W0:Y:S04] /*0040*/ @P0 FFMA R1, R2, R3, R4 ;`: control code, offset in the original file (a new instruction has
    none), instruction. Branch targets are labels, so lines can be added, removed and moved. The file that the code came from
    stands at the end. `read_listing` and `assemble` give back the same program, without the words it was decoded from.
    """
    lines = [f".arch {program.arch}"]
    for function in program.functions:
        section = "" if function.section is None else f" section={function.section}"
        lines += ["", f".function {_symbol(function.name)}{section}"]
        names = place_names(function)
        for i, (instruction, origin) in enumerate(function.lines):
            offset = INSTRUCTION_BYTES * i
            lines += [f"{_symbol(name)}:" for name in names.get(offset, ())]
            address = "" if origin is None else f"/*{origin:04x}*/ "
            lines.append(f"{instruction.control} {address}{with_labels(instruction, offset, names)} ;")
        lines += [f"{_symbol(name)}:" for name in names.get(function.size, ())]
    if program.container is not None:
        packed = zstandard.ZstdCompressor(level=_LEVEL).compress(program.container)
        lines += ["", ".container", *textwrap.wrap(base64.b64encode(packed).decode("ascii"), _COLUMNS)]
    return "\n".join(lines) + "\n"


def place_names(function: Function) -> dict[int, list[str]]:
    """The names of places in a function, by offset: its labels, and `.L0`, `.L1`, … for branch targets that have none to write."""
    names: dict[int, list[str]] = {}
    for name, offset in function.labels.items():
        names.setdefault(offset, []).append(name)
    made_up = (name for i in count() if (name := f".L{i}") not in function.labels)
    for offset in sorted(_targets(function)):
        if not any(_BARE.fullmatch(name) for name in names.get(offset, ())):
            names.setdefault(offset, []).append(next(made_up))
    return names


def with_labels(instruction: Instruction, offset: int, names: Mapping[int, list[str]]) -> str:
    """The text of the instruction at `offset` of a function whose `place_names` are `names`: labels instead of displacements."""
    text = instruction.text
    for operand in instruction.operands:
        if operand.displacement is not None:
            label = next((name for name in names.get(offset + operand.displacement, ()) if _BARE.fullmatch(name)), None)
            text = text.replace(operand.text, f"`({label})") if label else text
    return text


def describe_control(control: Control) -> str:
    """A control code in words: `stall 4, yield, sets SB0 on write, waits SB1 SB2`."""
    words = [f"stall {control.stall}"]
    if control.yield_:
        words.append("yield")
    if control.write is not None:
        words.append(f"sets SB{control.write} on write")
    if control.read is not None:
        words.append(f"sets SB{control.read} on read")
    if control.wait:
        words.append("waits " + " ".join([f"SB{i}" for i in control.wait]))
    if control.batch:
        words.append(f"batch {control.batch}")
    return ", ".join(words)


def _targets(function: Function) -> set[int]:
    """Offsets that branches go to. One that leaves the section, or points into an instruction, keeps its displacement."""
    places = {
        INSTRUCTION_BYTES * i + operand.displacement
        for i, line in enumerate(function.lines)
        for operand in line.instruction.operands
        if operand.displacement is not None
    }
    return {place for place in places if 0 <= place <= function.size and place % INSTRUCTION_BYTES == 0}


def _symbol(name: str) -> str:
    return name if _BARE.fullmatch(name) else json.dumps(name)
