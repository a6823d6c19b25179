"""Find the modifiers of a form: which bits and special values change its text, and which of them act together."""

from __future__ import annotations

from collections.abc import Generator
from itertools import combinations

from sassir.encoders.compiled import show
from sassir.encoders.form import Condition
from sassir.encoders.mining.assemble import BITS
from sassir.encoders.mining.experiment import Answer, Experiment, Step
from sassir.encoders.mining.text import apply_edits, edits, overlap, without_payload
from sassir.encoders.mining.toggles import Group, Toggle, Tokens, flip, merged_regions, put, special

REUSE = (122, 123, 124)
MAX_SELECTORS = 11
"""Most bits and conditions that are enumerated together; no form of sm_75 to sm_121 needs more."""


def find_groups(e: Experiment) -> Generator[list[int], list[Answer | None], list[Group]]:
    """Toggles, and which of them act together."""
    numeric = {b for n in e.numbers.values() for b in n.bits}
    bits = [b for b in (*BITS, *REUSE) if b not in numeric]
    varying = e.varying()
    texts = yield from e.ask([e.base ^ 1 << b for b in bits])
    shown = [b for b, t in zip(bits, texts, strict=True) if t != e.tokens and (t is not None or varying >> b & 1)]
    toggles = [flip(e.base, b) for b in shown]
    toggles += yield from _special_values(e, toggles)
    groups = [Group([t]) for t in toggles]
    home = dict(enumerate(groups))
    pairs = list(combinations(range(len(toggles)), 2))
    alone = yield from e.ask([t.apply(e.base) for t in toggles])
    both = yield from e.ask([toggles[j].apply(toggles[i].apply(e.base)) for i, j in pairs])
    for (i, j), tokens in zip(pairs, both, strict=True):
        if home[i] is not home[j] and _interact(e, alone[i], alone[j], tokens):
            gone = home[j]
            home[i].toggles += gone.toggles
            groups.remove(gone)
            home = {k: home[i] if g is gone else g for k, g in home.items()}
    # Bits that vary, but that no one or two flips change to something accepted: a field whose legal values lie further apart.
    stuck = [home[i] for i, tokens in enumerate(alone) if tokens is None and len(home[i].toggles) == 1]
    if 1 < len(stuck) <= MAX_SELECTORS:
        groups = [g for g in groups if g not in stuck] + [Group([t for g in stuck for t in g.toggles])]
    yield from enumerate_states(e, groups)
    return groups


def _interact(e: Experiment, a: Tokens | None, b: Tokens | None, both: Tokens | None) -> bool:
    """The joint effect of two toggles is not the sum of their effects."""
    if both is None:
        return False
    if a is None or b is None:
        return True
    first, second = edits(e.tokens, a), edits(e.tokens, b)
    return overlap([e[:2] for e in first], [e[:2] for e in second]) or apply_edits(e.tokens, first + second) != both


def _special_values(e: Experiment, flips: list[Toggle]) -> Generator[list[int], list[Answer | None], list[Toggle]]:
    """Values of numbers that change the text beyond the number (RZ, PT, zero), alone or beside one other change.

    A value that makes the word one of another form is noted as excluded.
    """
    cases: list[tuple[int, int]] = []
    for i, number in e.numbers.items():
        full = (1 << len(number.bits)) - 1
        cases += [(i, v) for v in ((0, full) if number.kind in ("int", "pc") else (0,) if number.scale < 0 else (full,))]
    texts = yield from e.ask([put(e.base, e.numbers[i], v) for i, v in cases])
    found: dict[tuple[int, int], None] = {}
    for (i, value), tokens in zip(cases, texts, strict=True):
        if tokens is None:
            e.numbers[i] = e.numbers[i]._replace(excluded=(*e.numbers[i].excluded, value))
        elif _other_than(e, i, value, e.tokens, tokens):
            found[i, value] = None
    plain = [c for c, t in zip(cases, texts, strict=True) if t is not None and c not in found]
    changes = [(t, -1) for t in flips]
    changes += [(special(e.numbers[j], w), j) for j, w in cases if e.numbers[j].kind not in ("int", "pc")]
    alone = yield from e.ask([t.apply(e.base) for t, _ in changes])
    both = yield from e.ask([t.apply(put(e.base, e.numbers[i], v)) for i, v in plain for t, _ in changes])
    answers = iter(both)
    for i, value in plain:
        for (toggle, j), before in zip(changes, alone, strict=True):
            after = next(answers)
            if before and after and i != j and _other_than(e, i, value, before, after):
                found[i, value] = None
                if isinstance(toggle.selector, Condition):
                    found[j, toggle.selector.value] = None
    return [special(e.numbers[i], v) for i, v in found]


def _other_than(e: Experiment, i: int, value: int, before: Tokens, after: Tokens) -> bool:
    """Giving number `i` the value changed more of the text than the number."""
    number = e.numbers[i]
    names = {without_payload(show(number, number.kind, w)) for w in (e.base, put(e.base, number, value))}
    return [t for t in before if t not in names] != [t for t in after if t not in names]


def enumerate_states(e: Experiment, groups: list[Group]) -> Step:
    """The text of every state of the new groups. Groups that change the same tokens become one."""
    while fresh := [g for g in groups if not g.strings]:
        for group in fresh:
            if len(group.toggles) > MAX_SELECTORS:
                e.problems.append(f"{len(group.toggles)} selectors act together: {[t.selector for t in group.toggles]}")
                del group.toggles[MAX_SELECTORS:]
            texts = yield from e.ask([group.apply(e.base, s) for s in range(1 << len(group.toggles))])
            changes = {s: edits(e.tokens, t) for s, t in enumerate(texts) if t is not None}
            group.regions = merged_regions(list(changes.values()))
            group.strings = {s: [apply_edits(e.tokens, c, r) for r in group.regions] for s, c in changes.items()}
        for g, h in combinations(list(groups), 2):
            if g in groups and h in groups and overlap(g.regions, h.regions):
                merge(groups, g, h, MAX_SELECTORS)


def merge(groups: list[Group], g: Group, h: Group, most: int) -> bool:
    """Put two groups together, to be enumerated anew, unless that makes more than `most` selectors."""
    if len(g.toggles) + len(h.toggles) > most:
        return False
    groups.remove(g)
    groups.remove(h)
    groups.append(Group(g.toggles + h.toggles))
    return True
