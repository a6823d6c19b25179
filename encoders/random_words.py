"""Random words that the tables call valid: material for tests and fuzzing."""

from __future__ import annotations

from random import Random

from sassir.asm.control import Control, encode_control
from sassir.encoders.compiled import state_bits
from sassir.encoders.form import scatter
from sassir.encoders.table import Table

_VAGUE = ("INVALID", "???")
"""What nvdisasm prints for a value without a meaning."""


def random_word(table: Table, rng: Random, identifier: str | None = None) -> int:
    """A word of a form (a random one if none is named) with random legal modifiers, registers, immediates, guard and control code.

    Combinations of modifiers are drawn freely, so nvdisasm refuses some of them.
    """
    form = table.form(identifier or rng.choice(tuple(table.blocks))).form
    word = form.default | form.fixed_value | form.opcode & 0xFFF | (form.opcode >> 12) << 91
    for number in form.numbers.values():
        full = (1 << len(number.bits)) - 1
        raw = rng.choice([v for v in (rng.randint(0, full), rng.randint(0, full), full) if v not in number.excluded] or [1])
        word |= scatter(raw, number.bits)
    for choice in form.choices.values():
        states = [s for s, strings in choice.states.items() if not _is_vague(strings)]
        value, mask = state_bits(choice, rng.choice(states or list(choice.states)), form.numbers)
        word = word & ~mask | value
    if form.guard is None or rng.random() < 0.7:
        word |= 7 << 12
    else:
        word |= rng.randrange(16) << 12
    return _schedule(word, rng)


def _is_vague(strings: tuple[tuple[object, ...], ...]) -> bool:
    return any(isinstance(token, str) and any(v in token for v in _VAGUE) for tokens in strings for token in tokens)


def _schedule(word: int, rng: Random) -> int:
    """The word with a random control code; reuse bits only where they mean reuse."""
    keep = rng.random() < 0.7
    scoreboard = lambda: rng.choice([None, None, *range(6)])  # noqa: E731
    wait = tuple(i for i in range(6) if rng.random() < 0.2)
    control = Control(rng.randint(1, 11), not keep, scoreboard(), scoreboard(), wait)
    word = word if keep else word & ~(7 << 122)
    return word & ~(0x1FFFF << 105) | encode_control(control) << 105
