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
        return HIDDEN if instruction.mnemonic.startswith("__HIR") else f"unknown: {shown.text}"
    writes, reads = registers(instruction, found.writes), registers(instruction, found.reads)
    if instruction.guard is not None:
        reads |= frozenset(instruction.guard.registers) - ZERO_REGISTERS
    if (writes, reads) == (shown.writes, shown.reads):
        return "equal"
    extra_writes, extra_reads = shown.writes - writes, shown.reads - reads
    missing = writes - shown.writes, reads - shown.reads
    for reason, applies in EXCEPTIONS.items():
        if applies(shown, instruction, Difference(extra_writes, extra_reads, *missing)):
            return reason
    return f"{shown.arch} {shown.text}: written {sorted(writes)} not {sorted(shown.writes)}, read {sorted(reads)} not {sorted(shown.reads)}"


class Difference(NamedTuple):
    """Registers that only one of both names."""

    shown_writes: frozenset[str]
    shown_reads: frozenset[str]
    our_writes: frozenset[str]
    our_reads: frozenset[str]

    @property
    def only(self) -> str | None:
        """The one of the four sets that is not empty."""
        found = [name for name, registers in zip(self._fields, self, strict=True) if registers]
        return found[0] if len(found) == 1 else None


def _call(shown: Shown, instruction: Instruction, difference: Difference) -> bool:
    return instruction.mnemonic == "CALL"


def _descriptor(shown: Shown, instruction: Instruction, difference: Difference) -> bool:
    hidden = shown.arch in ("sm_80", "sm_86", "sm_87", "sm_89") and "[R" in shown.text and "desc[" not in shown.text
    return hidden and difference.only == "shown_reads" and {register_file(r) for r in difference.shown_reads} == {"UR"}


def _predicate(shown: Shown, instruction: Instruction, difference: Difference) -> bool:
    loads = instruction.mnemonic in ("LD", "LDG", "LDGSTS")
    return loads and difference.only == "shown_writes" and difference.shown_writes == frozenset(instruction.operands[-1].registers)


def _lanes(shown: Shown, instruction: Instruction, difference: Difference) -> bool:
    partial = instruction.mnemonic == "MOV" and len(instruction.operands) > 2
    return partial and difference.only == "our_reads" and difference.our_reads == frozenset(instruction.operands[0].registers)


def _fourth(shown: Shown, instruction: Instruction, difference: Difference) -> bool:
    texture = instruction.mnemonic in ("TEX", "TLD", "TLD4", "TXD") and instruction.operands[-1].integer is None
    return texture and difference.only == "our_writes" and len(difference.our_writes) == 1


def _header(shown: Shown, instruction: Instruction, difference: Difference) -> bool:
    fetches = instruction.mnemonic == "TLD" and shown.arch.startswith("sm_12")
    return fetches and difference.only == "our_reads" and len(difference.our_reads) == 1


def _reads_more(shown: Shown, difference: Difference) -> bool:
    """We name more registers read; from sm_100 on the fourth component of a texel may come on top."""
    known = difference._replace(our_writes=frozenset()) if shown.arch.startswith("sm_1") and len(difference.our_writes) == 1 else difference
    return known.only == "our_reads"


def _dealt(shown: Shown, instruction: Instruction, difference: Difference) -> bool:
    return "SCR" in instruction.modifiers and _reads_more(shown, difference)


def _halved(shown: Shown, instruction: Instruction, difference: Difference) -> bool:
    half = instruction.mnemonic in ("TEX", "TLD", "TLD4") and "F16" in instruction.modifiers
    return half and shown.arch.startswith("sm_1") and _reads_more(shown, difference)


def _clamp(shown: Shown, instruction: Instruction, difference: Difference) -> bool:
    return instruction.mnemonic == "TEX" and "LC" in instruction.modifiers and _reads_more(shown, difference)


def _multisampled(shown: Shown, instruction: Instruction, difference: Difference) -> bool:
    return instruction.mnemonic == "TLD" and "MS" in instruction.modifiers and _reads_more(shown, difference)


def _graphics(shown: Shown, instruction: Instruction, difference: Difference) -> bool:
    return instruction.mnemonic == "FOOTPRINT"


def _unpacked(shown: Shown, instruction: Instruction, difference: Difference) -> bool:
    unpacks = instruction.mnemonic == "LDCU" and not {"HDRUNPACK", "TEXUNPACK"}.isdisjoint(instruction.modifiers)
    return unpacks and "128" in instruction.modifiers and difference.only == "our_writes"


def _copy(shown: Shown, instruction: Instruction, difference: Difference) -> bool:
    if instruction.mnemonic != "LDGSTS":
        return False
    uniform = "UR" in {register_file(register) for register in instruction.operands[0].registers}
    return uniform or any(".U32" in operand.template for operand in instruction.operands)


_SHAPES = {
    ("8", False): {"8816", "16816", "16832"},
    ("4", False): {"8832", "16832", "16864"},
    ("8", True): {"16832", "16864"},
    ("4", True): {"16864", "168128"},
}
"""Shapes of IMMA in PTX (mma.sync, mma.sp), by bits of an element and sparsity."""


def _impossible(shown: Shown, instruction: Instruction, difference: Difference) -> bool:
    modifiers, sparse = set(instruction.modifiers), "SP" in instruction.modifiers
    if instruction.mnemonic.startswith("UTC"):
        return modifiers.issuperset({"2CTA", "WS"})
    if instruction.mnemonic == "IMMA":
        bits = {m[1] for m in modifiers if m in ("S8", "U8", "S4", "U4")}
        return len(bits) > 1 or _SHAPES[bits.pop(), sparse].isdisjoint(modifiers)
    if instruction.mnemonic not in ("HMMA", "HGMMA"):
        return False
    long, wide = not modifiers.isdisjoint({"16816", "16832"}), "TF32" in modifiers
    narrow = "F16" in modifiers and (wide or "BF16" in modifiers)
    return narrow or ("1684" in modifiers and not wide) or (sparse and "1688" in modifiers and not wide) or (long and wide)


HIDDEN = "operations that nvdisasm prints as a number alone have no description: a kernel with one stays as it is"
EXCEPTIONS = {
    HIDDEN: lambda *_: False,
    "CALL is shown with the registers that the convention gives to the callee": _call,
    "the memory descriptor of sm_8x is in the word, not in the text": _descriptor,
    "the predicate that a copy or load takes is shown as written too; Triton's code reads it again afterwards": _predicate,
    "a MOV of some lanes of a quad keeps the others: we read the old value": _lanes,
    "the fourth component of a texel is not shown from sm_100 on, though the code after it uses the register": _fourth,
    "sm_12x fetches texels by the header alone; the sampler beside it is counted on all architectures": _header,
    "with .SCR up to six values are dealt to two groups; three registers are shown for more than three values": _dealt,
    "a texture in half precision is shown with one register for its level, offset and reference from sm_100 on": _halved,
    "the clamp of the level of detail (.LC), which CUDA does not have, is counted always; shown only with some modifiers": _clamp,
    "the sample of a multisampled texture (.MS), which CUDA does not have, is counted always": _multisampled,
    "FOOTPRINT, which CUDA does not have": _graphics,
    "LDCU that unpacks a descriptor is counted by its size, also 128 bits, which was not seen in code of ptxas": _unpacked,
    "LDGSTS with a uniform register in its shared address, or with a 32-bit offset: neither was seen in code of ptxas": _copy,
    "matrix products of shapes and types that PTX does not have": _impossible,
}
"""Why our roles differ, and how to recognise it. Where we name more registers than are shown, values are kept longer than needed."""
