"""Put a form together from what the experiments found."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

from sassir.encoders.compiled import show
from sassir.encoders.floats import WIDTHS
from sassir.encoders.form import Choice, Condition, Form, Hole, Number, Part, Place, Token, choice_state, opcode_of
from sassir.encoders.mining.text import SEPARATOR, Span, kind_of, without_payload
from sassir.encoders.mining.toggles import Group, Tokens

BITS = tuple(b for b in range(16, 105) if b != 91)
"""Bits that forms describe; bit 91 belongs to the opcode."""

Column = dict[int, tuple[Token, ...]]
"""What each state of a choice shows at one place."""


def assemble(base: int, tokens: Tokens, numbers: Mapping[int, Number], groups: list[Group], guard: str | None, varying: int) -> Form:
    """The form of which `base` is a word that prints as `tokens`.

    `numbers` are keyed by the position of their token, `varying` are the bits in which known words of the form differ.
    """
    by_name = {n.name: n for n in numbers.values()}
    columns: dict[str, dict[int, list[Column]]] = {}
    choices: dict[str, Choice] = {}
    spans: list[tuple[int, int, str, int]] = []
    for group in groups:
        if not group.regions:
            continue
        choice = _choice(base, numbers, by_name, group, choices)
        choices[choice.name] = choice
        columns[choice.name] = {}
        for k, (start, end) in enumerate(group.regions):
            columns[choice.name][k] = _split_columns({s: strings[k] for s, strings in choice.states.items()})
            spans.append((start, end, choice.name, k))
    parts = _lay_out(tokens, numbers, sorted(spans), columns, choices)
    used = {b for n in by_name.values() for b in n.bits} | {s for c in choices.values() for s in c.selectors if isinstance(s, int)}
    rest = [b for b in reversed(BITS) if b not in used]
    return Form(
        mnemonic=tokens[0],
        opcode=opcode_of(base),
        guard=guard,
        components=_split_components(parts),
        numbers=by_name,
        choices=choices,
        fixed=tuple((b, base >> b & 1) for b in rest if not varying >> b & 1),
        inert=tuple(b for b in rest if varying >> b & 1),
        default=0,
        example=base,
    )


def _choice(base: int, numbers: Mapping[int, Number], by_name: dict[str, Number], group: Group, taken: Mapping[str, Choice]) -> Choice:
    """The choice that a group of toggles is: `m` and its highest bit, or `z` and the number whose special value decides."""
    bits = [t.selector for t in group.toggles if isinstance(t.selector, int)]
    conditions = [t.selector for t in group.toggles if isinstance(t.selector, Condition)]
    name = f"m{max(bits)}" if bits else f"z{conditions[0].number}"
    while name in taken:
        name += "'"
    choice = Choice(name, (*sorted(bits, reverse=True), *sorted(conditions)), {})
    for subset, strings in group.strings.items():
        word = group.apply(base, subset)
        typed = tuple(
            tuple(_typed(token, word, numbers, region) for token in string)
            for string, region in zip(strings, group.regions, strict=True)
        )
        choice.states[choice_state(word, choice, by_name)] = typed
    return choice


def _typed(token: str, word: int, numbers: Mapping[int, Number], region: Span) -> Token:
    """A token inside a region: a hole when it is the text of a number that stands in this region of the base."""
    if kind_of(token) is None:
        return token
    for position, number in numbers.items():
        if region[0] <= position < region[1]:
            kinds = [number.kind, *(k for k, w in WIDTHS.items() if number.kind in WIDTHS and w == len(number.bits))]
            for kind in kinds:
                if without_payload(show(number, kind, word)) == token:
                    return Hole(number.name, kind)
    return token


def _lay_out(
    tokens: Tokens,
    numbers: Mapping[int, Number],
    spans: list[tuple[int, int, str, int]],
    columns: dict[str, dict[int, list[Column]]],
    choices: dict[str, Choice],
) -> list[Part]:
    """The base's tokens with the places of choices put in. A separator never stays inside a choice."""

    def plain(start: int, end: int) -> list[Part]:
        return [Hole(n.name, n.kind) if (n := numbers.get(i)) else tokens[i] for i in range(start, end)]

    parts: list[Part] = []
    kept: dict[str, list[Column]] = {name: [] for name in choices}
    at = 0
    for start, end, name, k in spans:
        parts += plain(at, start)
        for i, column in enumerate(columns[name][k]):
            if i:
                parts.append(SEPARATOR)
            if any(column.values()):
                parts.append(Place(name, len(kept[name])))
                kept[name].append(column)
        at = max(at, end)
    for name, shown in kept.items():
        choices[name] = choices[name]._replace(states={s: tuple(c[s] for c in shown) for s in choices[name].states})
    return parts + plain(at, len(tokens))


def _split_columns(strings: Column) -> list[Column]:
    """Cut the strings of a region at their separators: column i holds what each state shows of the i-th operand.

    A state that shows fewer operands than the fullest one shows those that resemble the fullest's, and nothing of the others.
    """
    cut = {state: _cut(string) for state, string in strings.items()}
    widest = max(cut.values(), key=len)
    columns: list[Column] = [dict.fromkeys(cut, ()) for _ in widest]
    for state, pieces in cut.items():
        if pieces == [()]:
            continue
        options = combinations(range(len(widest)), len(pieces))
        slots = max(options, key=lambda o: sum(p == widest[i] or (not p and not widest[i]) for p, i in zip(pieces, o, strict=True)))
        for piece, slot in zip(pieces, slots, strict=True):
            columns[slot][state] = piece
    return columns


def _cut(tokens: tuple[Token, ...]) -> list[tuple[Token, ...]]:
    """The runs between separators."""
    pieces: list[list[Token]] = [[]]
    for token in tokens:
        if token == SEPARATOR:
            pieces.append([])
        else:
            pieces[-1].append(token)
    return [tuple(p) for p in pieces]


def _split_components(parts: list[Part]) -> tuple[tuple[Part, ...], ...]:
    """Parts between separators, neighbouring text joined. An operand may be empty: one that a state hides."""
    components: list[list[Part]] = [[]]
    for part in parts:
        if part == SEPARATOR:
            components.append([])
        elif isinstance(part, str) and components[-1] and isinstance(components[-1][-1], str):
            components[-1][-1] += part
        else:
            components[-1].append(part)
    return tuple(tuple(c) for c in components)
