"""How each instruction carries ranges from its operands to its results."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sassir.analysis import ranges
from sassir.analysis.ranges import FLAG, WORD, Range

Transfer = Callable[[Sequence[str], Sequence[Range]], "tuple[Range, ...] | None"]
"""Takes the modifiers and the range of each source operand (64-bit ones: as a number); returns one range a result register
in the order of the operands, or None if nothing is known."""

_ALIASES = frozenset({"MOV", "IADD", "SHL", "U32", "S32"})
"""Modifiers of IMAD that change how it is written, not what it does."""


def _imad(modifiers: Sequence[str], sources: Sequence[Range]) -> tuple[Range, ...] | None:
    a, b, c = sources[:3]
    if "WIDE" in modifiers:
        if min(a.low, b.low, c.low) < 0 or ("U32" not in modifiers and max(a.high, b.high) > ranges.LARGEST_SIGNED):
            return None
        return ranges.lower_and_upper(Range(a.low * b.low + c.low, a.high * b.high + c.high))
    if "HI" in modifiers:
        if min(a.low, b.low) < 0 or ("U32" not in modifiers and max(a.high, b.high) > ranges.LARGEST_SIGNED):
            return None
        return (ranges.add(ranges.lower_and_upper(Range(a.low * b.low, a.high * b.high))[1], c),)
    return (ranges.multiply_add(a, b, c),) if _ALIASES.issuperset(modifiers) else None


def _sum(modifiers: Sequence[str], sources: Sequence[Range]) -> tuple[Range, ...] | None:
    return (ranges.add(*sources),) if not modifiers or list(modifiers) == ["X"] else None


def carry(modifiers: Sequence[str], terms: Sequence[Range], flags: int = 1) -> Range:
    """Each of the carries, of which there are `flags`, of a sum. A term -x is 2³² - x here.

    A sum of three has two carries, and which of them is set when only one is due is not told: only that of two terms is.
    """
    if (modifiers and list(modifiers) != ["X"]) or any(s.low < 0 for s in terms):
        return FLAG
    low, high = sum(s.low for s in terms), sum(s.high for s in terms)
    if high <= ranges.LARGEST:
        return Range(0, 0)
    two = flags == 1 and sum(s.high > 0 for s in terms) <= 2
    return Range(1, 1) if two and low > ranges.LARGEST else FLAG


def _lea(modifiers: Sequence[str], sources: Sequence[Range]) -> tuple[Range, ...] | None:
    if modifiers[:1] == ["HI"]:
        return _lea_upper(modifiers, sources)
    return (ranges.add(ranges.shift_left(sources[0], sources[2]), sources[1]),) if not modifiers and len(sources) == 3 else None


def _lea_upper(modifiers: Sequence[str], sources: Sequence[Range]) -> tuple[Range, ...] | None:
    """The upper word of (a << n) + b, where a has an upper word of its own or is extended by its sign."""
    a, b, *rest = sources
    if "SX32" not in modifiers:
        a = Range(a.low + (rest[0].low << ranges.WORD_BITS), a.high + (rest.pop(0).high << ranges.WORD_BITS))
    elif a.high > ranges.LARGEST_SIGNED:
        return None
    count, carries = rest[0].value, rest[1:] if "X" in modifiers else []
    if count is None or a.high << count >> (2 * ranges.WORD_BITS):
        return None
    shifted = Range(a.low << count >> ranges.WORD_BITS, a.high << count >> ranges.WORD_BITS)
    return (ranges.add(shifted, b, *carries),)


def _shift(modifiers: Sequence[str], sources: Sequence[Range]) -> tuple[Range, ...] | None:
    low, count, high = sources[:3]
    if modifiers[:1] == ["L"] and modifiers[-1] == "U32" and "HI" not in modifiers:
        return (ranges.shift_left(low, count),)
    if list(modifiers) == ["R", "U32", "HI"] and low.value == 0:
        return (ranges.shift_right(high, count),)
    if list(modifiers) == ["R", "S32", "HI"] and high.high <= ranges.LARGEST_SIGNED:
        return (ranges.shift_right(high, count),)
    return None


_AND, _OR = 0xC0, 0xFC
"""Tables of LOP3 for a & b and a | b."""


def _lop3(modifiers: Sequence[str], sources: Sequence[Range]) -> tuple[Range, ...] | None:
    a, b, c, table = sources[:4]
    if a.value == 0 and c.value == 0 and table.value is not None and table.value & 0x5 == 0x1:
        return (Range(ranges.LARGEST - b.high, ranges.LARGEST - b.low),)
    if c.value == 0 and table.value is not None:
        # With c = 0 only every second entry of the table counts: those for c clear.
        match table.value & 0x55:
            case 0x40:
                return (ranges.bitwise_and(a, b),)
            case 0x54:
                return (ranges.bitwise_or(a, b),)
            case _:
                return None
    return None


def _select(modifiers: Sequence[str], sources: Sequence[Range]) -> tuple[Range, ...] | None:
    a, b, choose = sources[:3]
    return (a if choose.low else b if not choose.high else a.join(b),)


def _compare(modifiers: Sequence[str], sources: Sequence[Range]) -> tuple[Range, ...] | None:
    name, *rest = modifiers
    if name not in ranges.COMPARISONS:
        return None
    found = ranges.compare(name, sources[0], sources[1], "U32" not in rest)
    if rest[-1] == "EX":
        rest.pop()
        found = _extended(name, sources[0], sources[1], sources[3], "U32" not in rest)
    other = sources[2]
    if rest[-1] == "AND":
        return (Range(found.low & other.low, found.high & other.high),)
    return (Range(found.low | other.low, found.high | other.high),) if rest[-1] == "OR" else None


def _extended(name: str, a: Range, b: Range, lower: Range, signed: bool) -> Range:
    """The comparison of 64-bit numbers by their upper words and what it gave for the lower ones."""
    if a.value is not None and a.value == b.value:
        return lower
    if name in ("EQ", "NE"):
        differs = ranges.compare("NE", a, b, signed).value == 1
        return Range(int(name == "NE"), int(name == "NE")) if differs else FLAG
    strict = "LT" if name in ("LT", "LE") else "GT"
    found, opposite = ranges.compare(strict, a, b, signed), ranges.compare(ranges.MIRROR[strict], a, b, signed)
    return Range(1, 1) if found.value == 1 else Range(0, 0) if opposite.value == 1 else FLAG


def _extremum(modifiers: Sequence[str], sources: Sequence[Range]) -> tuple[Range, ...] | None:
    a, b, least = sources[:3]
    if "U32" not in modifiers and max(a.high, b.high) > ranges.LARGEST_SIGNED:
        return None
    if least.value is None:
        return (a.join(b),)
    pick = min if least.value else max
    return (Range(pick(a.low, b.low), pick(a.high, b.high)),)


def _copy(modifiers: Sequence[str], sources: Sequence[Range]) -> tuple[Range, ...] | None:
    return (sources[0],)


_NARROW = {"U8": Range(0, 0xFF), "U16": Range(0, 0xFFFF)}


def _load(modifiers: Sequence[str], sources: Sequence[Range]) -> tuple[Range, ...] | None:
    return next(((_NARROW[m],) for m in modifiers if m in _NARROW), None)


def load_constant(modifiers: Sequence[str], words: Sequence[Range]) -> Sequence[Range] | None:
    """What LDC makes of the words at its place: all of them, or the lowest byte or half of one."""
    if {"64", "128"}.issuperset(modifiers):
        return words
    narrow = next((m for m in modifiers if m[1:] in ("8", "16")), None)
    if narrow is None:
        return None
    (found,), size = words, int(narrow[1:])
    largest = (1 << size) - 1
    if found.value is not None:
        number = found.value & largest
        return [ranges.exactly(number - (largest + 1) if narrow[0] == "S" and number > largest >> 1 else number)]
    limit = Range(0, largest >> 1 if narrow[0] == "S" else largest)
    return [found if found.high <= limit.high else WORD if narrow[0] == "S" else limit]


TRANSFER: dict[str, Transfer] = {
    "IADD": _sum,
    "IADD3": _sum,
    "IMAD": _imad,
    "IMNMX": _extremum,
    "ISETP": _compare,
    "LD": _load,
    "LDG": _load,
    "LDS": _load,
    "LDL": _load,
    "LEA": _lea,
    "LOP3": _lop3,
    "MOV": _copy,
    "R2UR": _copy,
    "SEL": _select,
    "SHF": _shift,
    "VIADD": _sum,
    "VIMNMX": _extremum,
}
"""By mnemonic; a uniform instruction (UIMAD) is as the one without U."""
SIGNED_TERMS = frozenset({"IADD", "IADD3", "IMAD", "VIADD"})
"""Where a negative operand, -x, may be given as negative numbers."""


def special_register(name: str, block: Sequence[int] | None, grid: Sequence[int] | None) -> Range:
    """What a special register can hold in a launch of this shape (CUDA C++ Programming Guide, compute capabilities)."""
    kind, _, axis = name.removeprefix("SR_").partition(".")
    i = "XYZ".find(axis)
    if i < 0:
        return Range(0, 31) if kind == "LANEID" else WORD
    match kind:
        case "TID":
            return Range(0, (block[i] if block else (1024, 1024, 64)[i]) - 1)
        case "CTAID":
            return Range(0, (grid[i] if grid else (0x7FFFFFFF, 0xFFFF, 0xFFFF)[i]) - 1)
        case "NTID":
            return ranges.exactly(block[i]) if block else Range(1, 1024)
        case "NCTAID":
            return ranges.exactly(grid[i]) if grid else Range(1, 0x7FFFFFFF)
        case _:
            return WORD


def whole(file: str) -> Range:
    """Everything that a register of a file can hold."""
    return FLAG if file in ("P", "UP") else WORD
