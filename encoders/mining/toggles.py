"""Changes of a word whose effect on the text is not just another number: flipped bits and special values."""

from __future__ import annotations

from dataclasses import dataclass, field

from sassir.encoders.form import Condition, Number, scatter
from sassir.encoders.mining.text import Edit, Span

Tokens = tuple[str, ...]


@dataclass
class Toggle:
    """A change of the base word: a flipped bit, or a number set to a special value."""

    selector: int | Condition
    mask: int
    value: int

    def apply(self, word: int) -> int:
        """The word with the change made."""
        return word & ~self.mask | self.value


@dataclass
class Group:
    """Toggles that act together; a state is a subset of them, as a bit mask of their indices."""

    toggles: list[Toggle]
    strings: dict[int, list[Tokens]] = field(default_factory=dict[int, list[Tokens]])
    """For each legal state, the tokens that it shows in each region."""
    regions: list[Span] = field(default_factory=list[Span])
    """Where the states differ, as spans of the base's tokens."""

    def apply(self, word: int, state: int) -> int:
        """The word with the toggles of `state` made."""
        for i, toggle in enumerate(self.toggles):
            if state >> i & 1:
                word = toggle.apply(word)
        return word


def flip(base: int, bit: int) -> Toggle:
    """The toggle that flips a bit of the base."""
    return Toggle(bit, 1 << bit, ~base & 1 << bit)


def special(number: Number, value: int) -> Toggle:
    """The toggle that gives a number a special value."""
    return Toggle(Condition(number.name, value), scatter((1 << len(number.bits)) - 1, number.bits), scatter(value, number.bits))


def put(word: int, number: Number, value: int) -> int:
    """The word with the number's bits set to `value`."""
    return special(number, value).apply(word)


def merged_regions(changes: list[list[Edit]]) -> list[Span]:
    """The spans of the base that any of the changes touches, overlapping ones joined."""
    regions: list[Span] = []
    for start, end in sorted({(a, b) for change in changes for a, b, _ in change}):
        if regions:
            first, last = regions[-1]
            touches = start == last and (start == end or first == last)
            if start < last or touches:
                regions[-1] = (first, max(end, last))
                continue
        regions.append((start, end))
    return regions
