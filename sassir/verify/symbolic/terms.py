"""Terms: what a register holds, as an expression of what the kernel started with.

Equal terms are one object. Each function below builds its term in a normal form, so that the two sides of a comparison mostly
come out equal without a solver: sums are linear combinations with sorted parts, 64-bit values made of two words stay two words,
whatever is known is computed. All rules hold for every value of the variables, modulo 2^width.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from typing import ClassVar, TypeAlias
from weakref import WeakValueDictionary

Leaf: TypeAlias = "Term | int | str"


class Term:
    """An interned expression. Build it with the functions of this module."""

    __slots__ = ("__weakref__", "args", "number", "op", "steady", "width")
    _pool: ClassVar[WeakValueDictionary[tuple[str, tuple[Leaf, ...], int], Term]] = WeakValueDictionary()
    _numbers: ClassVar[count[int]] = count()

    op: str
    args: tuple[Leaf, ...]
    width: int
    """Bits; 0 for a truth value, MEMORY for the content of a memory space."""
    number: int
    """In the order in which terms were made: any fixed order will do to sort the parts of a sum."""
    steady: bool
    """It is the same at all times of one run: made of launch constants alone."""

    @classmethod
    def of(cls, op: str, args: tuple[Leaf, ...], width: int) -> Term:
        """The term, as it is."""
        key = (op, args, width)
        found = cls._pool.get(key)
        if found is None:
            found = object.__new__(cls)
            found.op, found.args, found.width, found.number = op, args, width, next(cls._numbers)
            found.steady = op != "passing" and all(a.steady for a in found.parts)
            cls._pool[key] = found
        return found

    @property
    def value(self) -> int | None:
        """The number that a constant is; for truth values 0 or 1."""
        return self.args[0] if self.op == "constant" else None  # type: ignore[return-value]

    @property
    def parts(self) -> tuple[Term, ...]:
        """The arguments that are terms."""
        return tuple([a for a in self.args if isinstance(a, Term)])


MEMORY = -1


def constant(value: int, width: int) -> Term:
    """A number, modulo 2^width."""
    return Term.of("constant", (value & ((1 << width) - 1) if width else value & 1,), width)


TRUE, FALSE = constant(1, 0), constant(0, 0)


def variable(name: str, width: int) -> Term:
    """Something that is not known, and stays the same for the whole run."""
    return Term.of("variable", (name,), width)


def passing(name: str, width: int) -> Term:
    """Something that is not known, and may be something else the next time that control comes by."""
    return Term.of("passing", (name,), width)


def apply(name: str, args: Iterable[Term], width: int) -> Term:
    """A function of which nothing is known but that equal arguments give equal results."""
    return Term.of("function", (name, *args), width)


def linear(term: Term) -> tuple[dict[Term, int], int]:
    """The term as a sum: other terms, each with its factor, and a number."""
    if term.op == "sum":
        *pairs, number = term.args
        return dict(zip(pairs[::2], pairs[1::2], strict=True)), number  # type: ignore[return-value]
    if term.value is not None:
        return {}, term.value
    if term.op == "not":
        parts, number = linear(term.parts[0])
        return {t: -k for t, k in parts.items()}, -number - 1
    return {term: 1}, 0


def combine(terms: Iterable[tuple[Term, int]], width: int) -> Term:
    """The sum of multiples of terms."""
    total: dict[Term, int] = {}
    number, mask = 0, (1 << width) - 1
    for term, factor in terms:
        parts, rest = linear(term)
        number += factor * rest
        for part, k in parts.items():
            total[part] = total.get(part, 0) + factor * k
    kept = sorted([(t, k & mask) for t, k in total.items() if k & mask], key=lambda pair: pair[0].number)
    if not kept:
        return constant(number, width)
    if len(kept) == 1 and kept[0][1] == 1 and not number & mask:
        return kept[0][0]
    return Term.of("sum", (*[x for pair in kept for x in pair], number & mask), width)


def add(a: Term, b: Term) -> Term:
    """a + b"""
    return combine([(a, 1), (b, 1)], a.width)


def subtract(a: Term, b: Term) -> Term:
    """a - b"""
    return combine([(a, 1), (b, -1)], a.width)


def multiply(a: Term, b: Term) -> Term:
    """a * b"""
    a, b = _known_first(a, b)
    if a.value is not None:
        return combine([(b, a.value)], a.width)
    return Term.of("multiply", in_order(a, b), a.width)


def distance(a: Term, b: Term) -> int | None:
    """a - b if that is a known number, modulo 2^width."""
    return subtract(a, b).value


def invert(a: Term) -> Term:
    """The complement of all bits, or of a truth value."""
    if a.value is not None:
        return constant(~a.value, a.width)
    return a.parts[0] if a.op == "not" else Term.of("not", (a,), a.width)


def _known_first(a: Term, b: Term) -> tuple[Term, Term]:
    return (b, a) if a.value is None and b.value is not None else (a, b)


def in_order(a: Term, b: Term) -> tuple[Term, Term]:
    """Both, in the order in which an operation with two equal roles has them."""
    return (a, b) if a.number <= b.number else (b, a)


def both(a: Term, b: Term) -> Term:
    """a & b, of bits or truth values."""
    a, b = _known_first(a, b)
    if a.value is not None and b.value is not None:
        return constant(a.value & b.value, a.width)
    if a.value == 0 or a is b:
        return a
    if a is constant(-1, a.width):
        return b
    return constant(0, a.width) if a is invert(b) else Term.of("and", in_order(a, b), a.width)


def differ(a: Term, b: Term) -> Term:
    """a ^ b, of bits or truth values."""
    if a is b:
        return constant(0, a.width)
    a, b = _known_first(a, b)
    if a.value is not None and b.value is not None:
        return constant(a.value ^ b.value, a.width)
    if a.value == 0:
        return b
    if a is constant(-1, a.width):
        return invert(b)
    return Term.of("xor", in_order(a, b), a.width)


def equal(a: Term, b: Term) -> Term:
    """a = b"""
    if a.width == 0:
        return invert(differ(a, b))
    if a.width == MEMORY or (known := distance(a, b)) is None:
        return TRUE if a is b else Term.of("equal", in_order(a, b), 0)
    return FALSE if known else TRUE


def less(a: Term, b: Term, signed: bool) -> Term:
    """a < b"""
    if a is b or (not signed and b.value == 0):
        return FALSE
    if a.value is not None and b.value is not None:
        bias = 1 << a.width - 1 if signed else 0
        return TRUE if a.value ^ bias < b.value ^ bias else FALSE
    return Term.of("slt" if signed else "ult", (a, b), 0)


def choose(condition: Term, yes: Term, no: Term) -> Term:
    """`yes` where the condition holds, else `no`."""
    if condition.value is not None:
        return yes if condition.value else no
    if yes is no:
        return yes
    if condition.op == "not":
        return choose(condition.parts[0], no, yes)
    if yes.op == "if" and yes.parts[0] is condition:
        return choose(condition, yes.parts[1], no)
    if no.op == "if" and no.parts[0] is condition:
        return choose(condition, yes, no.parts[2])
    if yes.width == 0 and yes.value is not None and no.value is not None:
        return condition if yes.value else invert(condition)
    return Term.of("if", (condition, yes, no), yes.width)
