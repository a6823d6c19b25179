"""The content of a memory space as a term: stores on top of what was there, in cells of a fixed size.

Stores to places that are known to be apart are kept in one fixed order, so that it does not matter in which order a kernel makes
them. Addresses are 64-bit terms; each is a multiple of the cell's size, as misaligned accesses are faults.
"""

from __future__ import annotations

from collections.abc import Callable

from sassir.verify.symbolic import terms, words
from sassir.verify.symbolic.terms import MEMORY, Term

Apart = Callable[[Term, Term], bool]
"""Whether two different addresses are known to be of different cells."""


def store(memory: Term, address: Term, value: Term, apart: Apart) -> Term:
    """The memory in which the cell at `address` holds `value`."""
    above: list[tuple[Term, Term]] = []
    while memory.op == "store":
        below, place, old = memory.parts
        if place is address:
            memory = below
            break
        if not apart(place, address) or place.number < address.number:
            break
        above.append((place, old))
        memory = below
    for place, content in [(address, value), *reversed(above)]:
        memory = Term.of("store", (memory, place, content), MEMORY)
    return memory


def load(memory: Term, address: Term, width: int, apart: Apart) -> Term:
    """What the cell at `address` holds."""
    while memory.op == "store":
        below, place, value = memory.parts
        if place is address:
            return value
        if not apart(place, address):
            break
        memory = below
    return Term.of("load", (memory, address), width)


def distinct(a: Term, b: Term) -> bool:
    """The low words are a known distance apart."""
    return bool(terms.distance(words.low(a), words.low(b)))


def of_different_buffers(pointers: frozenset[Term]) -> Apart:
    """`distinct`, or made from two different ones of these low words of pointers, which do not alias."""

    def root(address: Term) -> Term | None:
        found = [part for part, factor in terms.linear(words.low(address))[0].items() if part in pointers and factor == 1]
        return found[0] if len(found) == 1 else None

    def apart(a: Term, b: Term) -> bool:
        if distinct(a, b):
            return True
        x, y = root(a), root(b)
        return x is not None and y is not None and x is not y

    return apart
