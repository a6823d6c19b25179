"""Which parts of two terms stand in the same places."""

from __future__ import annotations

from sassir.verify.symbolic.terms import Term, linear, subtract

Pair = tuple[Term, Term]

SMALL = 300
"""Parts of a term about which a solver may be asked in passing."""
_EITHER_WAY = frozenset({"and", "equal", "multiply", "or", "xor"})


def aligned(a: Term, b: Term) -> dict[Pair, list[Pair]]:
    """The pairs of different terms in the same places of a and b, those inside first; with each the pairs of its parts.

    If the parts of a pair are equal then so is the pair; none if the two are not built alike.
    """
    order: dict[Pair, list[Pair]] = {}
    parts: dict[Pair, list[Pair]] = {}
    work = [(a, b)]
    while work:
        pair = work[-1]
        if pair not in parts:
            parts[pair] = _parts(*pair)
            work += [inner for inner in parts[pair] if inner[0] is not inner[1] and inner not in parts]
        else:
            work.pop()
            order.setdefault(pair, parts[pair])
    return order


def _parts(a: Term, b: Term) -> list[Pair]:
    if a.op == "sum" or b.op == "sum":
        return _summands(a, b) if a.width == b.width else []
    rest = [tuple([x for x in term.args if not isinstance(x, Term)]) for term in (a, b)]
    if (a.op, a.width, rest[0]) != (b.op, b.width, rest[1]) or [x.width for x in a.parts] != [x.width for x in b.parts]:
        return []
    first, second = a.parts, b.parts
    if a.op in _EITHER_WAY and (first[0] is second[1] or first[1] is second[0]):
        second = second[::-1]
    return list(zip(first, second, strict=True))


def _summands(a: Term, b: Term) -> list[Pair]:
    """What is left of a - b, as pairs with the same factor; none where it cannot be paired."""
    difference = subtract(a, b)
    if difference.op == "sum" and difference.args[-1] != 0:
        return []
    modulus = 1 << a.width
    left = sorted([(k, t.number, t) for t, k in linear(difference)[0].items() if t in linear(a)[0]])
    right = sorted([(modulus - k, t.number, t) for t, k in linear(difference)[0].items() if t not in linear(a)[0]])
    if [k for k, _, _ in left] != [k for k, _, _ in right]:
        return []
    return [(x, y) for (_, _, x), (_, _, y) in zip(left, right, strict=True)]


def small(term: Term) -> bool:
    """It has few parts."""
    seen: set[Term] = set()
    work = [term]
    while work and len(seen) <= SMALL:
        top = work.pop()
        if top not in seen:
            seen.add(top)
            work += top.parts
    return len(seen) <= SMALL
