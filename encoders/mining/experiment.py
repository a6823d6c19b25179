"""One class of words under experiment: what was asked, what was accepted, which word is the base."""

from __future__ import annotations

import random
from collections.abc import Generator
from dataclasses import dataclass

from sassir.encoders.form import Number
from sassir.encoders.mining.assemble import BITS
from sassir.encoders.mining.text import kind_of
from sassir.encoders.mining.toggles import Tokens

CONTROL = 17 << 105 | 7 << 110 | 7 << 113
"""Stall 1, no yield, no scoreboards: the schedule under which bits 122-124 show as `.reuse`."""
PREDICATE_TRUE = 7 << 12


@dataclass(frozen=True)
class Answer:
    """What nvdisasm says of a word of the form: guard and tokens. A word of another form, or of none, has no Answer."""

    guard: str
    tokens: Tokens
    address: int


Ask = Generator[list[int], list[Answer | None], list[Tokens | None]]
Step = Generator[list[int], list[Answer | None], None]


def neutral(word: int) -> int:
    """The word with the miner's control code and without a guard."""
    return word & (1 << 105) - 1 & ~(15 << 12) | CONTROL | PREDICATE_TRUE


OPCODE = 1 << 91 | 0xFFF


class Experiment:
    """The state of learning one form. Its generators yield words and are sent the answers."""

    def __init__(self, seeds: list[int], uniform_zero: int, rng: random.Random) -> None:
        """`uniform_zero` is the number of URZ, 63 before sm_100 and 255 since."""
        self.seeds, self.uniform_zero, self.rng = seeds, uniform_zero, rng
        self.pool: dict[int, Tokens] = {}
        self.numbers: dict[int, Number] = {}  # by position of their token in the base
        self.base = 0
        self.tokens: Tokens = ()
        self.relative = False
        self.guard: str | None = None
        self.problems: list[str] = []

    def varying(self) -> int:
        """The bits in which accepted words differ."""
        varying = 0
        for word in self.pool:
            varying |= word ^ self.base
        return varying

    def ask(self, words: list[int]) -> Ask:
        """Tokens of each word, a target as displacement. Accepted words are kept in the pool."""
        answers = yield words
        result: list[Tokens | None] = []
        for word, answer in zip(words, answers, strict=True):
            tokens = None
            if answer is not None:
                tokens = self._displaced(answer) if self.relative else answer.tokens
                self.pool.setdefault(word, tokens)
            result.append(tokens)
        return result

    def _displaced(self, answer: Answer) -> Tokens:
        """The last integer, which is the target, as distance from the instruction."""
        tokens = list(answer.tokens)
        at = max(i for i, t in enumerate(tokens) if kind_of(t) == "int")
        tokens[at] = f".{int(tokens[at], 16) - answer.address:+#x}"
        return tuple(tokens)

    def explore(self) -> Step:
        """Fill the pool with accepted words, and see whether the form has a guard and a relative target."""
        seeds = list(dict.fromkeys(map(neutral, self.seeds)))
        yield from self.ask(seeds)
        if not self.pool:
            return
        first = next(iter(self.pool))
        here, there, guarded = yield [first, first, first ^ 1 << 15]
        if here and there and here.tokens != there.tokens:
            self.relative = True
            self.pool.clear()
            yield from self.ask(seeds)
        self.guard = guarded.guard.strip("!")[:-1] if guarded and guarded.guard else None
        for _ in range(3):
            words = list(self.pool)
            bases = self.rng.sample(words, min(3, len(words)))
            mixed: list[int] = []
            for _ in range(40):
                word = self.rng.choice(bases)
                for other in self.rng.sample(words, min(len(words), self.rng.choice((2, 4, 8, 16)))):
                    word ^= other ^ self.rng.choice(bases)
                mixed.append(neutral(word) & ~(1 << 91) | first & 1 << 91)
            near = [w ^ pattern << b & ~OPCODE for w in bases[:2] for b in BITS for pattern in (1, 3, 7)]
            yield from self.ask(near + mixed)
