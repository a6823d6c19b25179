"""Memory accesses of one thread that lie side by side, and could be one wider access.

A load may go up to the place of an earlier one if nothing in between may write what it reads; a store down to a later one if
nothing in between may touch what it writes. Both stay between the fences, barriers, atomics and strong accesses around them.
What is merged is executed in any case: all in one block, under one guard; and every byte of the whole is one of theirs. The
whole is aligned where the bits of its address say so, or another access of that width next to it, which would fail else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property
from typing import NamedTuple

from xdsl.ir import Block, Operation, Region, SSAValue

from sassir.analysis.bit_words import add, low_bits, number, shifted
from sassir.analysis.bits import Bits
from sassir.analysis.effects import effects
from sassir.analysis.memory import Access, access, may_overlap
from sassir.analysis.pointers import pointers_of
from sassir.dialect import internals
from sassir.dialect.facts import KernelFacts
from sassir.dialect.instruction import SassInstruction

WIDEST = 16
"""Bytes of the widest access that every architecture has."""
_LOADS = frozenset({"LDG", "LDS"})
_STORES = frozenset({"STG", "STS"})
_WIDTHS = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": WIDEST}
_NAMES = {1: ("U8",), 2: ("U16",), 4: (), 8: ("64",), WIDEST: ("128",)}
_BEFORE = frozenset({"E", "EF", "EL", "EU", "LTC128B", "LTC256B", "LTC64B", "LU", "NA", "U"})
"""What stands in front of the width in a name."""
_ADDRESS = re.compile(r"(?P<before>(?:desc\[\$UR2\])?\[)(?P<registers>[^]]*?)(?P<offset>\+?-?0x[0-9a-f]+)?\]")
_REGISTER = re.compile(r"\$U?R(?P<pair>2?)(?:\.64|\.U32)?(?:\.X(?P<scale>4|8|16))?|U?RZ")
_DATA = re.compile(r"[$=]R[24]?|RZ")
_UNCHANGING = frozenset({"constant", "texture"})


class Address(NamedTuple):
    """What two accesses share that differ by their displacement only."""

    before: str
    registers: str
    values: tuple[SSAValue, ...]

    def text(self, displacement: int) -> str:
        """The operand, its values as holes."""
        plus = "+" if self.registers else ""
        shown = f"{plus}{'-' if displacement < 0 else ''}{abs(displacement):#x}" if displacement or not self.registers else ""
        return f"{self.before}{self.registers}{shown}]"


class Shape(NamedTuple):
    """What accesses must have in common to become one: all but width and displacement."""

    mnemonic: str
    before: tuple[str, ...]
    """Modifiers in front of the width."""
    after: tuple[str, ...]
    address: Address
    guard: SSAValue | None
    unless: bool

    def name(self, width: int) -> str:
        """The instruction that accesses so many bytes."""
        return ".".join([self.mnemonic, *self.before, *_NAMES[width], *self.after])


class Part(NamedTuple):
    """A load or store that may become part of a wider one."""

    op: SassInstruction
    shape: Shape
    begin: int
    """Its displacement."""
    width: int
    signed: bool
    touched: Access
    position: int

    @property
    def loads(self) -> bool:
        """It is a load."""
        return self.shape.mnemonic in _LOADS

    @property
    def end(self) -> int:
        """The displacement of what follows it."""
        return self.begin + self.width


class Merger(NamedTuple):
    """Accesses that become one."""

    begin: int
    width: int
    parts: tuple[Part, ...]
    """In program order; the whole takes the place of the first load, or of the last store."""


class Segment(NamedTuple):
    """What touches memory between two places that nothing may cross, in program order."""

    parts: list[Part]
    others: list[tuple[int, Access]]
    """All accesses, with their positions, those of `parts` included."""


class Adjacent:
    """Finds the accesses of a kernel that can be merged."""

    def __init__(self, region: Region, bits: Callable[[], Bits], facts: KernelFacts) -> None:
        """`bits` is asked once, and only where accesses have an address in common."""
        self._find_bits = bits
        self.facts = facts
        self._pointers = pointers_of(region, facts)
        self.used: set[str] = set()
        """The facts that what was found rests on, beyond those that ranges do."""

    @cached_property
    def bits(self) -> Bits:
        """The bits of the kernel before anything is merged."""
        return self._find_bits()

    def mergers(self, block: Block, loads: bool) -> Iterator[Merger]:
        """The loads of a block that can be merged, or the stores; no access is in two of them.

        Not both at once: a load that goes up and a store that goes down could pass each other in between.
        """
        for segment in _segments(block, self._pointers):
            groups: dict[Shape, list[Part]] = {}
            for part in segment.parts:
                if part.loads == loads:
                    groups.setdefault(part.shape, []).append(part)
            for shape, group in groups.items():
                if len(group) > 1:
                    yield from self._of_group(group, segment, self._known_base(shape, segment))

    def _of_group(self, group: list[Part], segment: Segment, base: tuple[int, int]) -> Iterator[Merger]:
        taken: set[int] = set()
        for seed in group if group[0].loads else group[::-1]:
            if seed.position in taken:
                continue
            i = group.index(seed)
            left = [part for part in (group[i:] if seed.loads else group[: i + 1]) if part.position not in taken]
            found = self._around(seed, left, segment, base) if len(left) > 1 else None
            if found is not None:
                taken.update([part.position for part in found.parts])
                yield found

    def _around(self, seed: Part, group: Sequence[Part], segment: Segment, base: tuple[int, int]) -> Merger | None:
        """The widest access that the seed can be part of."""
        modulus, residue = base
        width = WIDEST
        while width >= seed.width:
            if width <= modulus or width == seed.width:
                begin = seed.begin - ((residue + seed.begin) % width if width <= modulus else 0)
                inside = [p for p in group if begin <= p.begin and p.end <= begin + width and (p.begin - begin) % p.width == 0]
                parts = [p for p in inside if p is seed or self._movable(p, seed, segment)]
                if len(parts) > 1 and _covers(parts, begin, width):
                    self.used.update(*[self.bits.facts(value) for value in seed.shape.address.values])
                    return Merger(begin, width, tuple(parts))
            width //= 2
        return None

    def _movable(self, part: Part, seed: Part, segment: Segment) -> bool:
        """Whether `part` may be executed at the place of `seed`, where also what it keeps under its guard must be made already."""
        if not all([_made_before(value, seed.op) for value in part.op.kept]):
            return False
        first, last = sorted((part.position, seed.position))
        return not any(
            first < position <= last and (other.writes or not part.loads) and self._overlap(part.touched, other)
            for position, other in segment.others
        )

    def _overlap(self, a: Access, b: Access) -> bool:
        if may_overlap(a, b, self.facts):
            return True
        if self.facts.noalias and may_overlap(a, b, replace(self.facts, noalias=False)):
            self.used.add("noalias")
        return False

    def _known_base(self, shape: Shape, segment: Segment) -> tuple[int, int]:
        """A power of two, and the remainder of the address without displacement."""
        total = number(0)
        for value, scale in _terms(shape.address):
            total = add(total, shifted(self.bits.word(value), scale.bit_length() - 1))
        count, value = low_bits(total)
        best = (1 << count, value)
        for part in segment.parts:
            if part.shape.address == shape.address and part.width > best[0] and part.shape[4:] in ((None, False), shape[4:]):
                best = (part.width, -part.begin % part.width)
        return best


def _made_before(value: SSAValue, op: SassInstruction) -> bool:
    maker = value.owner
    return not isinstance(maker, Operation) or maker.parent is not op.parent or maker.is_before_in_block(op)


def _covers(parts: Sequence[Part], begin: int, width: int) -> bool:
    """Whether every byte is one of theirs."""
    return len({byte for part in parts for byte in range(part.begin, part.end)}) == width and min(p.begin for p in parts) == begin


def _segments(block: Block, pointers: Mapping[SSAValue, int]) -> Iterator[Segment]:
    segment = Segment([], [])
    for position, op in enumerate(internals.operations(block)):
        if not isinstance(op, SassInstruction):
            continue
        found = effects(op)
        if found.ordered or found.pinned or found.clock:
            yield segment
            segment = Segment([], [])
            continue
        touched = access(op, pointers)
        if touched is None and (found.stores or found.loads - _UNCHANGING):
            touched = Access(found.loads | found.stores, bool(found.stores), (op,), 0, 1, None, False)
        if touched is not None:
            segment.others.append((position, touched))
            part = _part(op, touched, position)
            if part is not None:
                segment.parts.append(part)
    yield segment


def _part(op: SassInstruction, touched: Access, position: int) -> Part | None:
    """`op` as what may be merged; None for an access of another kind."""
    if op.MNEMONIC not in _LOADS | _STORES or op.constant_guard is not None or op.link is not None or op.fields is not None:
        return None
    shown = op.template.text.split(", ")
    if op.MNEMONIC in _STORES:
        shown.reverse()
    match = _ADDRESS.fullmatch(shown[1]) if len(shown) == 2 and _DATA.fullmatch(shown[0]) else None
    if match is None or (op.MNEMONIC in _LOADS and shown[0] == "RZ"):
        return None
    modifiers = op.modifiers.data.split(".") if op.modifiers is not None else []
    sizes = [m for m in modifiers if m in _WIDTHS]
    before = [m for m in modifiers if m in _BEFORE]
    after = [m for m in modifiers if m not in _BEFORE and m not in sizes]
    if modifiers != [*before, *sizes, *after] or len(sizes) > 1 or "256" in after:
        return None
    registers, offset = match["registers"], match["offset"] or "0"
    if registers.endswith("+"):
        registers, offset = registers[:-1], f"+{offset}"
    if registers and not all([_REGISTER.fullmatch(r) for r in registers.split("+")]):
        return None
    values = op.reads[: _values(match["before"] + registers)]
    shape = Shape(op.MNEMONIC, tuple(before), tuple(after), Address(match["before"], registers, values), op.guard, op.unless is not None)
    width = _WIDTHS[sizes[0]] if sizes else 4
    return Part(op, shape, int(offset.lstrip("+"), 16), width, bool(sizes) and sizes[0][0] == "S", touched, position)


@cache
def _values(text: str) -> int:
    """How many values fill the holes."""
    return sum([2 if pair else 1 for pair in re.findall(r"\$U?R(2?)", text)])


def _terms(address: Address) -> Iterator[tuple[SSAValue, int]]:
    """The lower words that an address is the sum of, and what each is multiplied with."""
    at = _values(address.before)
    for shown in address.registers.split("+") if address.registers else ():
        match = _REGISTER.fullmatch(shown)
        assert match is not None
        if shown.startswith("$"):
            yield address.values[at], int(match["scale"] or "1")
            at += 2 if match["pair"] else 1
