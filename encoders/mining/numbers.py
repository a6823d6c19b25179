"""Find the numbers in the text of a form: registers, integers and floats, and the bits that spell each."""

from __future__ import annotations

from itertools import pairwise

from sassir.asm.operand import ZERO_REGISTERS
from sassir.encoders.compiled import show
from sassir.encoders.floats import WIDTHS
from sassir.encoders.form import Number
from sassir.encoders.mining.assemble import BITS
from sassir.encoders.mining.experiment import Experiment, Step
from sassir.encoders.mining.text import SEPARATOR, kind_of, register_index, without_payload
from sassir.encoders.mining.toggles import Tokens, put


def find_numbers(e: Experiment) -> Step:
    """Choose the base word and find its numbers. Three rounds settle on a base with plain, distinct values.

    A base in which some number cannot be told, such as one that is nearly zero, is given up for another that shows as much.
    """
    for attempt in range(6):
        best = max(_score(t) for t in e.pool.values())
        if not e.numbers or best > _score(e.tokens):
            e.base = next(w for w, t in e.pool.items() if _score(t) == best)
        elif e.problems:
            e.base = e.rng.choice([w for w, t in e.pool.items() if _score(t) >= best - 2])
        elif attempt > 2:
            break
        e.tokens = e.pool[e.base]
        yield from _flip_numbers(e)
        yield from _plain_values(e)
    yield from _flip_numbers(e)


def _flip_numbers(e: Experiment) -> Step:
    """Which bits change one number only, and with what weight."""
    found: dict[int, dict[int, int]] = {}
    e.problems.clear()
    texts = yield from e.ask([e.base ^ 1 << b for b in BITS])
    for bit, tokens in zip(BITS, texts, strict=True):
        if tokens is None or len(tokens) != len(e.tokens):
            continue
        changed = [i for i, (a, b) in enumerate(zip(e.tokens, tokens, strict=True)) if a != b]
        kind = kind_of(e.tokens[changed[0]]) if changed else None
        if len(changed) == 1 and kind is not None and kind == kind_of(tokens[changed[0]]):
            sign = -1 if e.base >> bit & 1 else 1
            (i,) = changed
            weight = 1 << bit if kind == "float" else sign * (_value(e, tokens[i]) - _value(e, e.tokens[i]))
            found.setdefault(i, {})[bit] = weight
    numbers = {i: _number(e, e.tokens[i], weights) for i, weights in found.items()}
    e.numbers = {i: n for i, n in numbers.items() if n is not None}


def _value(e: Experiment, token: str) -> int:
    """Of an integer, or the number of a register; a zero register has the highest of its file."""
    kind = kind_of(token)
    if kind in ("int", "pc"):
        return int(token.removeprefix("."), 16)
    index = register_index(token)
    return {"R": 255, "UR": e.uniform_zero}.get(kind or "", 7) if index is None else index


def _number(e: Experiment, token: str, weights: dict[int, int]) -> Number | None:
    """The number that a token shows, from the weights of its bits; None when those are no binary number."""
    kind = kind_of(token) or ""
    bits = _filled(sorted(weights, key=lambda b: abs(weights[b]), reverse=True), weights)
    name = f"{'F' if kind == 'float' else 'I' if kind in ('int', 'pc') else kind}{bits[0]}"
    sizes = [abs(weights[b]) for b in bits]
    if any(a != 2 * b for a, b in pairwise(sizes)):
        e.problems.append(f"bits {bits} of {token} weigh {sizes}")
        return None
    if kind == "float":
        options = [Number(name, k, tuple(bits)) for k, width in WIDTHS.items() if width == len(bits)]
        found = [n for n in options if without_payload(show(n, n.kind, e.base)) == token]
        return found[0] if found else None
    negative = [weights[b] < 0 for b in bits]
    if kind in ("int", "pc"):
        number = Number(name, kind, tuple(bits), negative[0], sizes[-1])
        offset = _value(e, token) - int(show(number, "int", e.base), 16)
        if any(negative[1:]) or (offset and kind == "int"):
            e.problems.append(f"{token} is {offset} more than its bits {bits} say")
            return None
        return number._replace(offset=offset)
    if sizes[-1] != 1 or len(set(negative)) > 1:
        return None
    if negative[0]:  # the complement of the register's number is encoded
        return Number(name, kind, tuple(bits), scale=-1, offset=(1 << len(bits)) - 1)
    return Number(name, kind, tuple(bits))


def _plain_values(e: Experiment) -> Step:
    """Give every number a value that one flip cannot turn into a special one, distinct from the others."""
    word = e.base
    used: set[int] = set()
    for number in e.numbers.values():
        n = len(number.bits)
        plain = (1, 2, 4) if n == 3 else range(1 << n) if n < 3 else None
        options = plain or [v for v in (e.rng.getrandbits(n) for _ in range(50)) if 2 <= v.bit_count() <= n - 2]
        value = next((v for v in options if v not in used), 0)
        if number.kind in WIDTHS:
            value &= ~(1 << n - 2)  # away from infinity and NaN
        used.add(value)
        word = put(word, number, value)
    (tokens,) = yield from e.ask([word])
    if tokens is not None and len(tokens) >= len(e.tokens):
        e.base, e.tokens = word, tokens


def _score(tokens: Tokens) -> int:
    """Prefer words that show the most, and only what has a name; a number at or near zero hides bits."""
    vague = sum("INVALID" in t or "???" in t for t in tokens)
    thin = sum(t in ZERO_REGISTERS or t.endswith(("NAN", "INF")) or (kind_of(t) == "int" and int(t, 16).bit_count() < 2) for t in tokens)
    return 3 * tokens.count(SEPARATOR) + len(tokens) - 6 * vague - 2 * thin


def _filled(bits: list[int], weights: dict[int, int]) -> list[int]:
    """Bits of a contiguous number, with those added whose flip happened to be refused or to change more than the number."""
    low, size = bits[-1], abs(weights[bits[-1]])
    if len(bits) < 2 or any(b < low or abs(weights[b]) != size << b - low for b in bits) or weights[bits[0]] * weights[bits[1]] < 0:
        return bits
    full = list(range(bits[0], low - 1, -1))
    for bit in full:
        weights.setdefault(bit, (size << bit - low) * (1 if weights[low] > 0 else -1))
    return full
