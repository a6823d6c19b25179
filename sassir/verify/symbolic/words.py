"""Terms of several words: parts of a value put together, taken out, extended and shifted, in the normal form of `terms`."""

from __future__ import annotations

from sassir.verify.symbolic.terms import Term, both, choose, combine, constant, in_order, invert, linear, multiply

_ZERO = constant(0, 32)


def either(a: Term, b: Term) -> Term:
    """a | b, of bits or truth values."""
    if joined := _joined(a, b) or _joined(b, a):
        return joined
    if a.value is None and b.value is None and a is not b and a is not invert(b) and a.width:
        return Term.of("or", in_order(a, b), a.width)
    return invert(both(invert(a), invert(b)))


def _joined(a: Term, b: Term) -> Term | None:
    """a << 32 | b for two words."""
    if a.width == 64 and a.op == "concat" and a.args[1] is _ZERO and b.op == "concat" and b.args[0] is _ZERO:
        return concat(a.parts[0], b.parts[1])
    return None


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
    if upper.op == lower.op == "extract" and upper.args == (lower.args[0], _first(lower) + lower.width):
        return extract(upper.parts[0], _first(lower), width)
    return Term.of("concat", (upper, lower), width)


def _first(a: Term) -> int:
    """The lowest bit that an extract takes."""
    first = a.args[1]
    assert isinstance(first, int)
    return first


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
        return extract(a.parts[0], first + _first(a), width)
    if a.op == "sign_extend" and first + width <= a.parts[0].width:
        return extract(a.parts[0], first, width)
    if a.op == "if":
        condition, yes, no = a.parts
        return choose(condition, extract(yes, first, width), extract(no, first, width))
    if first == 0 and a.op == "sum":
        parts, number = linear(a)
        return combine([*[(extract(t, 0, width), k) for t, k in parts.items()], (constant(number, width), 1)], width)
    if first == 0 and a.op == "multiply":
        return multiply(*[extract(t, 0, width) for t in a.parts])
    return Term.of("extract", (a, first), width)


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
