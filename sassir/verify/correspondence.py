"""Same code at other places: after code grew, shrank or changed its order, everything still means what it meant.

The two files are read and compared instruction by instruction; how the second was made is not looked at.
"""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate

from sassir.asm.instruction import INSTRUCTION_BYTES, Instruction
from sassir.asm.program import Function
from sassir.cubin.attribute_kinds import RECORDS
from sassir.cubin.code import CodeSection
from sassir.cubin.cubin import Cubin
from sassir.cubin.lines import LINES, LineSequence, Row, read_lines
from sassir.cubin.nvinfo import IndirectBranch, indirect_branches
from sassir.findings import Finding
from sassir.translate.branches import Branches, JumpTables
from sassir.translate.cubin import jump_tables, read_program

_EVIDENCE = "comparison of the two files"

Moved = Mapping[int, int]
"""Old to new offset of the instructions of one section that are still there."""


def check_correspondence(before: bytes, after: bytes, moved: Mapping[int, Moved]) -> list[Finding]:
    """Where `after` is not the code of `before` but for places, added NOPs, and instructions that were taken out.

    `moved` is by section index; a section that is not in it stays as it was. Blocks have to keep their order. Raises ContainerError
    for a file that cannot be read.
    """
    old, new = Cubin.read(before, "before"), Cubin.read(after, "after")
    olds, news = ({f.section: f for f in read_program(data).functions} for data in (before, after))
    tables = jump_tables(old), jump_tables(new)
    findings: list[Finding] = []
    for a, b in zip(old.code, new.code, strict=True):
        if a.index not in olds:
            continue
        places = moved.get(a.index, {offset: offset for offset in range(0, len(a.data), INSTRUCTION_BYTES)})
        seams = Seams(places, len(a.data), len(b.data))
        comparison = _Comparison(a.kernel, places, seams)
        findings += comparison.code(olds[a.index], news[a.index], tables[0].get(a.index, {}), tables[1].get(a.index, {}))
        findings += comparison.references(a, b)
        findings += comparison.tables(_table(old, a), _table(new, b))
        findings += comparison.lines(_lines(old, a), _lines(new, b))
    return findings


class Seams:
    """Which new places can be what an old place was: behind all that stood before it, and before all that stood behind it."""

    def __init__(self, moved: Moved, old_size: int, new_size: int) -> None:
        self._old = sorted(moved)
        new = [moved[old] for old in self._old]
        self._ends = [*accumulate((n + INSTRUCTION_BYTES for n in new), max, initial=0)]
        self._starts = [*accumulate(reversed(new), min, initial=new_size)][::-1]

    def agree(self, old: int, new: int) -> bool:
        """The new place is where control that came to the old one has to come."""
        at = bisect_left(self._old, old)
        return self._ends[at] <= new <= self._starts[at]


class _Comparison:
    """One code section."""

    def __init__(self, kernel: str, moved: Moved, seams: Seams) -> None:
        self.kernel, self.moved, self.seams = kernel, moved, seams

    def _finding(self, rule: str, offset: int | None, message: str) -> Finding:
        return Finding(rule, self.kernel, offset, message, _EVIDENCE)

    def code(self, before: Function, after: Function, old_tables: JumpTables, new_tables: JumpTables) -> Iterator[Finding]:
        """Instructions, and the places that they name."""
        old, new = Branches(before, old_tables).places, Branches(after, new_tables).places
        kept = set(self.moved.values())
        for i, (instruction, _) in enumerate(after.lines):
            if INSTRUCTION_BYTES * i not in kept and instruction.mnemonic != "NOP":
                yield self._finding("added-instruction", INSTRUCTION_BYTES * i, f"`{instruction}` was added; expected only NOPs")
        for start, end in self.moved.items():
            i, j = start // INSTRUCTION_BYTES, end // INSTRUCTION_BYTES
            a, b = before.lines[i].instruction, after.lines[j].instruction
            if _without_places(a, i in old) != _without_places(b, j in new):
                yield self._finding("other-instruction", end, f"`{b}`, expected `{a}`, which was at {start:#x}")
            if i in old and j in new and not self.seams.agree(old[i], new[j]):
                yield self._finding("other-place", end, f"`{b}` names {new[j]:#x}; `{a}` at {start:#x} named {old[i]:#x}")

    def references(self, before: CodeSection, after: CodeSection) -> Iterator[Finding]:
        """Functions, attributes and relocations."""
        for a, b in zip(before.functions, after.functions, strict=True):
            if not self.seams.agree(a.offset, b.offset) or not self.seams.agree(a.offset + a.size, b.offset + b.size):
                yield self._finding("other-extent", b.offset, f"{b.name} lies at {b.offset:#x} and has {b.size:#x} bytes")
        for name in {a.name for a in (*before.attributes, *after.attributes) if a.kind and a.kind.payload in RECORDS}:
            a, b = sorted(self._new_places(_listed(before, name))), sorted(_listed(after, name))
            if a != b:
                yield self._finding("other-list", None, f"{name} lists {_hex(b)}, expected {_hex(a)}")
        kept = [b for b in _branches(before) if b.offset in self.moved]
        for a, b in zip(kept, _branches(after), strict=True):
            pairs = zip(a.targets, b.targets, strict=True)
            if self.moved[a.offset] != b.offset or not all(self.seams.agree(x, y) for x, y in pairs):
                yield self._finding("other-place", b.offset, f"the indirect branch goes to {_hex(b.targets)}; it went to {_hex(a.targets)}")
        expected = sorted([(self.moved[r.offset], r.type, r.symbol) for r in before.relocations if r.offset in self.moved])
        found = sorted([(r.offset, r.type, r.symbol) for r in after.relocations])
        if expected != found:
            yield self._finding("other-relocation", None, f"relocations are at {_hex(r[0] for r in found)}")

    def _new_places(self, offsets: Iterable[int]) -> list[int]:
        return [self.moved[offset] for offset in offsets if offset in self.moved]

    def tables(self, before: tuple[int, ...], after: tuple[int, ...]) -> Iterator[Finding]:
        """Constant bank 2 of code with indirect branches."""
        for i, (a, b) in enumerate(zip(before, after, strict=True)):
            if not self.seams.agree(a, b):
                yield self._finding("other-place", None, f"word {i} of the jump table is {b:#x}; it was {a:#x}")

    def lines(self, before: list[LineSequence], after: list[LineSequence]) -> Iterator[Finding]:
        """The source line of each instruction, with the calls it was inlined through."""
        for a, b in zip(before, after, strict=True):
            for old, new in self.moved.items():
                expected, found = _source(a, old), _source(b, new)
                if expected != found:
                    yield self._finding("other-line", new, f"the line is {found}, expected {expected}")


def _without_places(instruction: Instruction, names_place: bool) -> tuple[object, ...]:
    operands = [o for o in instruction.operands if not names_place or (o.displacement is None and o.integer is None)]
    return (instruction.mnemonic, instruction.modifiers, operands, instruction.guard, instruction.control, instruction.extra)


def _listed(section: CodeSection, name: str) -> list[int]:
    found = [(a, RECORDS[a.kind.payload]) for a in section.attributes if a.name == name and a.kind]
    return [offset for a, (stride, at) in found for offset in a.words[at::stride]]


def _branches(section: CodeSection) -> list[IndirectBranch]:
    return [b for a in section.attributes if a.name == "INDIRECT_BRANCH_TARGETS" for b in indirect_branches(a)]


def _table(cubin: Cubin, section: CodeSection) -> tuple[int, ...]:
    """The words of constant bank 2, if there are indirect branches."""
    banks = [s for s in cubin.elf.sections if s.name.startswith(".nv.constant2") and s.info == section.index]
    return tuple([w for s in banks for (w,) in struct.iter_unpack("<I", cubin.elf.content(s))]) if _branches(section) else ()


def _lines(cubin: Cubin, section: CodeSection) -> list[LineSequence]:
    """The line sequences of a section, their addresses counted from its start."""
    found: list[LineSequence] = []
    for table in [s for s in cubin.elf.sections if s.name in LINES]:
        bases = {r.offset: r for i, g in cubin.relocations.items() if cubin.elf.sections[i].info == table.index for r in g}
        for sequence in [s for t in read_lines(cubin.elf.content(table), table.name) for s in t.sequences]:
            symbol = cubin.symbols[bases[sequence.at].symbol]
            if symbol.section == section.index:
                addend = bases[sequence.at].addend
                found.append(sequence._replace(address=symbol.value + (sequence.address if addend is None else addend)))
    return found


def _source(sequence: LineSequence, offset: int) -> tuple[tuple[int, int, int], ...] | None:
    """File, line and inlined function of the instruction and of each call around it; None when it is not of this sequence."""
    within = offset - sequence.address
    if not 0 <= within < sequence.length:
        return None
    number = bisect_right([row.address for row in sequence.rows], within)
    chain: list[Row] = []
    while number:
        chain.append(sequence.rows[number - 1])
        number = chain[-1].call if chain[-1].call < number else 0
    return tuple([(row.file, row.line, row.function) for row in chain])


def _hex(offsets: Iterable[int]) -> str:
    return ", ".join([f"{offset:#x}" for offset in offsets]) or "none"
