"""Terms computed for some values of their variables: where two come out different, they are not equal, and no proof need be tried.

A function of which nothing is known is taken for one that scrambles its arguments, memory for a scrambled address.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from zlib import crc32

from sassir.verify.symbolic.terms import MEMORY, Term

_GOLDEN, _MASK = 0x9E3779B97F4A7C15, (1 << 64) - 1

Memory = tuple[int, dict[int, int]]
"""What it held at the beginning, as a seed, and the cells that hold something else now."""


class Sample:
    """One choice of values, by number."""

    def __init__(self, number: int, bounds: Mapping[str, range]) -> None:
        """`bounds`: which numbers variables can be, by name."""
        self._number, self._bounds = number, bounds
        self._known: dict[Term, Any] = {}

    def differ(self, a: Term, b: Term) -> bool:
        """Whether a and b are different here."""
        return self._value(a) != self._value(b)

    def _value(self, term: Term) -> Any:
        work = [term]
        while work:
            top = work[-1]
            if top in self._known:
                work.pop()
                continue
            missing = [part for part in top.parts if part not in self._known]
            if missing:
                work += missing
            else:
                self._known[top] = self._compute(top, [self._known[part] for part in top.parts])
                work.pop()
        return self._known[term]

    def _compute(self, term: Term, parts: list[Any]) -> Any:
        mask = (1 << term.width) - 1 if term.width > 0 else 1
        match term.op:
            case "constant":
                return term.value
            case "variable" | "passing":
                name = str(term.args[0])
                found = scramble(self._number, crc32(name.encode()))
                if term.width == MEMORY:
                    return found, {}
                bounds = self._bounds.get(name)
                return found & mask if bounds is None else bounds[found % len(bounds)] & mask
            case "function":
                return scramble(crc32(str(term.args[0]).encode()), *parts) & mask
            case "sum":
                factors: Any = (*term.args[1:-1:2], term.args[-1])
                return sum([part * factor for part, factor in zip((*parts, 1), factors, strict=True)]) & mask
            case "extract":
                first: Any = term.args[1]
                return parts[0] >> first & mask
            case "load":
                return _load(parts[0], parts[1], mask)
            case "store":
                return _store(parts[0], parts[1], parts[2], (1 << term.parts[2].width) - 1)
            case "concat":
                return parts[0] << term.parts[1].width | parts[1]
            case "if":
                return parts[1] if parts[0] else parts[2]
            case _:
                width = term.parts[0].width
                return (_ONE[term.op](parts[0], width) if term.op in _ONE else _TWO[term.op](parts[0], parts[1], width)) & mask


def scramble(*numbers: int) -> int:
    """64 bits that depend on all of them (Steele, Lea and Flood: Fast splittable pseudorandom number generators, 2014)."""
    state = 0
    for number in numbers:
        state = (state ^ number) * _GOLDEN + _GOLDEN & _MASK
        state = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & _MASK
        state = (state ^ state >> 27) * 0x94D049BB133111EB & _MASK
        state ^= state >> 31
    return state


def _load(memory: Memory, address: int, mask: int) -> int:
    seed, cells = memory
    return cells[address] if address in cells else scramble(seed, address) & mask


def _store(memory: Memory, address: int, value: int, mask: int) -> Memory:
    seed, cells = memory
    changed = {**cells, address: value}
    if value == scramble(seed, address) & mask:
        del changed[address]
    return seed, changed


def _signed(value: int, width: int) -> int:
    return value - (value >> width - 1 << width)


_ONE: Mapping[str, Callable[[int, int], int]] = {
    "not": lambda a, width: ~a,
    "sign_extend": _signed,
}
_TWO: Mapping[str, Callable[[int, int, int], int]] = {
    "and": lambda a, b, width: a & b,
    "ashr": lambda a, n, width: _signed(a, width) >> min(n, width),
    "equal": lambda a, b, width: a == b,
    "lshr": lambda a, n, width: a >> n if n < width else 0,
    "multiply": lambda a, b, width: a * b,
    "or": lambda a, b, width: a | b,
    "shl": lambda a, n, width: a << n if n < width else 0,
    "slt": lambda a, b, width: _signed(a, width) < _signed(b, width),
    "ult": lambda a, b, width: a < b,
    "xor": lambda a, b, width: a ^ b,
}
"""Each also takes the width of its first operand."""
