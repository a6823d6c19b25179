"""Terms: what a register holds, as an expression of what the kernel started with.

Equal terms are one object. Each function below builds its term in a normal form, so that the two sides of a comparison mostly
come out equal without a solver: sums are linear combinations with sorted parts, 64-bit values made of two words stay two words,
whatever is known is computed. All rules hold for every value of the variables, modulo 2^width.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, TypeAlias

Leaf: TypeAlias = "Term | int | str"


class Term:
    """An interned expression. Build it with the functions of this module."""

    __slots__ = ("args", "number", "op", "steady", "width")
    _pool: ClassVar[dict[tuple[str, tuple[Leaf, ...], int], Term]] = {}

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
            found.op, found.args, found.width, found.number = op, args, width, len(cls._pool)
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


def _linear(term: Term) -> tuple[dict[Term, int], int]:
    """The term as a sum of multiples of other terms and a number."""
    if term.op == "sum":
        *pairs, number = term.args
        return dict(zip(pairs[::2], pairs[1::2], strict=True)), number  # type: ignore[return-value]
    if term.value is not None:
        return {}, term.value
    if term.op == "not":
        parts, number = _linear(term.parts[0])
        return {t: -k for t, k in parts.items()}, -number - 1
    return {term: 1}, 0


def multiples(term: Term) -> dict[Term, int]:
    """The terms that are added up to it, each with its factor."""
    return _linear(term)[0]


def combine(terms: Iterable[tuple[Term, int]], width: int) -> Term:
    """The sum of multiples of terms."""
    total: dict[Term, int] = {}
    number, mask = 0, (1 << width) - 1
    for term, factor in terms:
        parts, rest = _linear(term)
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
    for x, y in ((a, b), (b, a)):
        if x.value is not None:
            return combine([(y, x.value)], a.width)
    return Term.of("multiply", _sorted(a, b), a.width)


def distance(a: Term, b: Term) -> int | None:
    """a - b if that is a known number, modulo 2^width."""
    return subtract(a, b).value


def invert(a: Term) -> Term:
    """The complement of all bits, or of a truth value."""
    if a.value is not None:
        return constant(~a.value, a.width)
    return a.parts[0] if a.op == "not" else Term.of("not", (a,), a.width)


def _sorted(a: Term, b: Term) -> tuple[Term, Term]:
    return (a, b) if a.number <= b.number else (b, a)


def both(a: Term, b: Term) -> Term:
    """a & b, of bits or truth values."""
    for x, y in ((a, b), (b, a)):
        if x.value is not None:
            if x.value == 0:
                return x
            if x is constant(-1, x.width):
                return y
    if a.value is not None and b.value is not None:
        return constant(a.value & b.value, a.width)
    if a is b:
        return a
    return constant(0, a.width) if a is invert(b) else Term.of("and", _sorted(a, b), a.width)


def either(a: Term, b: Term) -> Term:
    """a | b, of bits or truth values."""
    if joined := _joined(a, b) or _joined(b, a):
        return joined
    if a.value is None and b.value is None and a is not b and a is not invert(b) and a.width:
        return Term.of("or", _sorted(a, b), a.width)
    return invert(both(invert(a), invert(b)))


def _joined(a: Term, b: Term) -> Term | None:
    """a << 32 | b for two words."""
    if a.width == 64 and a.op == "concat" and a.args[1] is _ZERO and b.op == "concat" and b.args[0] is _ZERO:
        return concat(a.parts[0], b.parts[1])
    return None


def differ(a: Term, b: Term) -> Term:
    """a ^ b, of bits or truth values."""
    if a is b:
        return constant(0, a.width)
    for x, y in ((a, b), (b, a)):
        if x.value is not None:
            if x.value == 0:
                return y
            if x is constant(-1, x.width):
                return invert(y)
    if a.value is not None and b.value is not None:
        return constant(a.value ^ b.value, a.width)
    return Term.of("xor", _sorted(a, b), a.width)


def shift_left(a: Term, n: Term) -> Term:
    """a << n; zero from n = width on."""
    if n.value is None:
        return Term.of("shl", (a, n), a.width)
    if n.value == 32 and a.width == 64:
        return concat(low(a), _ZERO)
    return multiply(a, constant(1 << n.value, a.width)) if n.value < a.width else constant(0, a.width)


def shift_right(a: Term, n: Term, signed: bool) -> Term:
    """a >> n, filled with zeros, or with the sign; all of it from n = width on."""
    if n.value == 0:
        return a
    if n.value == 32 and a.width == 64:
        return (sign_extend if signed else zero_extend)(high(a), 64)
    if a.value is not None and n.value is not None:
        number = a.value - (1 << a.width) if signed and a.value >> a.width - 1 else a.value
        return constant(number >> min(n.value, a.width), a.width)
    return Term.of("ashr" if signed else "lshr", (a, n), a.width)


def concat(upper: Term, lower: Term) -> Term:
    """The bits of `upper` above those of `lower`."""
    width = upper.width + lower.width
    if upper.value is not None and lower.value is not None:
        return constant(upper.value << lower.width | lower.value, width)
    if upper.op == lower.op == "extract" and upper.args[0] is lower.args[0]:
        return extract(upper.parts[0], lower.args[1], width) if upper.args[1] == lower.args[1] + lower.width else _concat(upper, lower)  # type: ignore[operator, arg-type]
    return _concat(upper, lower)


def _concat(upper: Term, lower: Term) -> Term:
    return Term.of("concat", (upper, lower), upper.width + lower.width)


def extract(a: Term, first: int, width: int) -> Term:
    """`width` bits from bit `first` on."""
    if width == a.width:
        return a
    if a.value is not None:
        return constant(a.value >> first, width)
    if a.op == "concat":
        upper, lower = a.parts
        if first >= lower.width:
            return extract(upper, first - lower.width, width)
        if first + width <= lower.width:
            return extract(lower, first, width)
    if a.op == "extract":
        return extract(a.parts[0], first + a.args[1], width)  # type: ignore[operator]
    if a.op == "sign_extend" and first + width <= a.parts[0].width:
        return extract(a.parts[0], first, width)
    if a.op == "if":
        condition, yes, no = a.parts
        return choose(condition, extract(yes, first, width), extract(no, first, width))
    if first == 0 and a.op == "sum":
        parts, number = _linear(a)
        return combine([*[(extract(t, 0, width), k) for t, k in parts.items()], (constant(number, width), 1)], width)
    if first == 0 and a.op == "multiply":
        return multiply(*[extract(t, 0, width) for t in a.parts])
    return Term.of("extract", (a, first), width)


_ZERO = constant(0, 32)


def low(a: Term) -> Term:
    """The low word."""
    return extract(a, 0, 32)


def high(a: Term) -> Term:
    """The word above the low one."""
    return extract(a, 32, 32)


def zero_extend(a: Term, width: int) -> Term:
    """Zeros above."""
    return concat(constant(0, width - a.width), a)


def sign_extend(a: Term, width: int) -> Term:
    """Copies of the highest bit above."""
    if a.value is not None:
        return constant(a.value - (a.value >> a.width - 1 << a.width), width)
    return Term.of("sign_extend", (a,), width)


def equal(a: Term, b: Term) -> Term:
    """a = b"""
    if a.width == 0:
        return invert(differ(a, b))
    if a.width == MEMORY or (known := distance(a, b)) is None:
        return TRUE if a is b else Term.of("equal", _sorted(a, b), 0)
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
    if yes.width == 0 and yes.value is not None and no.value is not None:
        return condition if yes.value else invert(condition)
    return Term.of("if", (condition, yes, no), yes.width)
