"""Registers read and written, by nvdisasm: its life ranges (`-lrm narrow`), and what they show otherwise than `sassir.isa`, with reasons.

`EXCEPTIONS` is the whole list; docs/operand-roles.md has it in words.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from sassir.asm.instruction import Instruction
from sassir.asm.operand import ZERO_REGISTERS, register_file
from sassir.encoders.mining.oracle import find_nvdisasm
from sassir.isa import Access, Roles

FILES = {"GPR": "R", "PRED": "P", "UGPR": "UR", "UPRED": "UP"}
LINE = re.compile(r"\s+/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;")


class Shown(NamedTuple):
    """One instruction as nvdisasm shows it."""

    arch: str
    offset: int
    text: str
    writes: frozenset[str]
    reads: frozenset[str]


def life_ranges(path: Path) -> Iterator[Shown]:
    """The instructions of a cubin: `^` marks a register written, `v` one read, `x` both."""
    command = [str(find_nvdisasm()), "-c", "-lrm", "narrow", str(path)]
    listing = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    arch = re.search(r"\.target\s+(\w+)", listing)
    assert arch is not None
    names: list[str] = []
    columns: list[dict[int, str]] | None = None
    header: list[list[str]] = []
    for line in listing.splitlines():
        if line.startswith("//---"):
            names, columns, header = [], None, []
        code, bar, cells = line.rpartition("// |")
        if not bar:
            continue
        fields = cells.split("|")[:-1]
        if columns is None:
            if not names:
                names = [field.strip() for field in fields if field.strip() in FILES]
            elif any(re.search(r"\d", field) for field in fields):
                header.append(fields)
                if any("#" in field for field in fields):
                    columns = [_columns(FILES[name], [row[i] for row in header]) for i, name in enumerate(names)]
        elif match := LINE.match(code):
            marks = [(register, field[at : at + 1]) for field, row in zip(fields, columns, strict=True) for at, register in row.items()]
            text = re.sub(r"\s*\(\*.*?\*\)", "", match[2])
            yield Shown(arch[1], int(match[1], 16), text, _marked(marks, "^x"), _marked(marks, "vx"))


def _columns(file: str, rows: list[str]) -> dict[int, str]:
    """Register by place in the line; its number is written downwards."""
    width = max(len(row) for row in rows)
    numbers = {at: "".join(row[at : at + 1].strip(" #") for row in rows) for at in range(width)}
    return {at: f"{file}{int(number)}" for at, number in numbers.items() if number}


def _marked(marks: list[tuple[str, str]], kinds: str) -> frozenset[str]:
    return frozenset(register for register, mark in marks if mark and mark in kinds)


def registers(instruction: Instruction, accesses: tuple[Access, ...]) -> frozenset[str]:
    """The registers accessed that nvdisasm shows: not B, and not UR0 to UR3, which programs do not use."""
    found: set[str] = set()
    for access in accesses:
        first = instruction.operands[access.operand].registers[access.hole]
        file = register_file(first)
        if first not in ZERO_REGISTERS and file != "B":
            number = int(first[len(file) :])
            found |= {f"{file}{i}" for i in range(number, number + access.width) if file != "UR" or (number >= 4 and i < 63)}
    return frozenset(found)


def compare(shown: Shown, found: Roles | None, instruction: Instruction) -> str:
    """`equal`, the reason of an exception, or what differs."""
    if found is None:
        return f"unknown: {shown.text}"
    writes, reads = registers(instruction, found.writes), registers(instruction, found.reads)
    if instruction.guard is not None:
        reads |= frozenset(instruction.guard.registers) - ZERO_REGISTERS
    if (writes, reads) == (shown.writes, shown.reads):
        return "equal"
    extra_writes, extra_reads = shown.writes - writes, shown.reads - reads
    missing = writes - shown.writes, reads - shown.reads
    for reason, applies in EXCEPTIONS.items():
        if applies(shown, instruction, extra_writes, extra_reads, *missing):
            return reason
    return f"{shown.arch} {shown.text}: written {sorted(writes)} not {sorted(shown.writes)}, read {sorted(reads)} not {sorted(shown.reads)}"


def _call(shown: Shown, instruction: Instruction, *_: frozenset[str]) -> bool:
    return instruction.mnemonic == "CALL"


def _descriptor(shown: Shown, instruction: Instruction, *difference: frozenset[str]) -> bool:
    extra_writes, extra_reads, *missing = difference
    hidden = shown.arch in ("sm_80", "sm_86", "sm_87", "sm_89") and "[R" in shown.text and "desc[" not in shown.text
    return hidden and not extra_writes and not any(missing) and {register_file(r) for r in extra_reads} == {"UR"}


def _predicate(shown: Shown, instruction: Instruction, *difference: frozenset[str]) -> bool:
    extra_writes, *others = difference
    loads = instruction.mnemonic in ("LD", "LDG", "LDGSTS")
    return loads and not any(others) and extra_writes == frozenset(instruction.operands[-1].registers)


def _fourth(shown: Shown, instruction: Instruction, *difference: frozenset[str]) -> bool:
    extra_writes, extra_reads, missing_writes, missing_reads = difference
    texture = instruction.mnemonic in ("TEX", "TLD", "TLD4", "TXD") and instruction.operands[-1].integer is None
    return texture and not (extra_writes or extra_reads or missing_reads) and len(missing_writes) == 1


def _header(shown: Shown, instruction: Instruction, *difference: frozenset[str]) -> bool:
    extra_writes, extra_reads, missing_writes, missing_reads = difference
    nothing_else = not (extra_writes or extra_reads or missing_writes)
    return instruction.mnemonic == "TLD" and shown.arch.startswith("sm_12") and nothing_else and len(missing_reads) == 1


EXCEPTIONS = {
    "CALL is shown with the registers that the convention gives to the callee": _call,
    "the memory descriptor of sm_8x is in the word, not in the text": _descriptor,
    "the predicate that a copy or load takes is shown as written too; Triton's code reads it again afterwards": _predicate,
    "the fourth component of a texel is not shown from sm_100 on, though the code after it uses the register": _fourth,
    "sm_12x fetches texels by the header alone; the sampler beside it is counted on all architectures": _header,
}
