"""Learn one encoding form by experiment.

A learner is a coroutine: it yields lists of words and is sent one answer for each, so that a driver can put the
questions of a thousand forms into one call of nvdisasm. The method: flip every bit of an accepted word. A flip that
changes one number in the text belongs to that number; bits that change other text are modifiers, and two of them belong
together when their joint effect is not the sum of their single effects. The form so found must predict random words;
where a prediction fails, the modifiers involved are enumerated together.
"""

from __future__ import annotations

from collections.abc import Generator
from itertools import combinations

from sassir.asm.control import Control
from sassir.encoders.form import Condition, Form, gather
from sassir.encoders.mining.assemble import assemble
from sassir.encoders.mining.experiment import Answer, Experiment
from sassir.encoders.mining.modifiers import MAX_SELECTORS, enumerate_states, find_groups, merge
from sassir.encoders.mining.numbers import find_numbers
from sassir.encoders.mining.text import tokenize, without_payload
from sassir.encoders.mining.toggles import Group, Tokens, put, special
from sassir.encoders.table import CompiledForm

MAX_LEGALITY_SELECTORS = 6
"""Most selectors that are merged only because some combinations are refused."""
TRIALS = 96
ROUNDS = 6


class Learner(Experiment):
    """Experiments on one class of words until a form predicts it."""

    def run(self) -> Generator[list[int], list[Answer | None], Form | None]:
        """Yield words, take answers, return the form; None when no seed is accepted."""
        yield from self.explore()
        if not self.pool:
            return None
        yield from find_numbers(self)
        groups = yield from find_groups(self)
        for _ in range(ROUNDS):
            changed = yield from self._verify(self._form(groups), groups)
            if not changed:
                break
            yield from enumerate_states(self, groups)
        return self._form(groups)

    def _form(self, groups: list[Group]) -> Form:
        return assemble(self.base, self.tokens, self.numbers, groups, self.guard, self.varying())

    def _verify(self, form: Form, groups: list[Group]) -> Generator[list[int], list[Answer | None], bool]:
        """Predict random words; where that fails, merge groups or add special values. True when something changed."""
        compiled = CompiledForm(form)
        trials = [self._random_trial(groups) for _ in range(TRIALS)]
        texts = yield from self.ask([word for word, _ in trials])
        wrong = [(w, made, t) for (w, made), t in zip(trials, texts, strict=True) if t is not None and not _predicts(compiled, w, t)]
        refused = [made for (_, made), t in zip(trials, texts, strict=True) if t is None]
        suspects = {
            (id(g), s, id(h), r): (g, s, h, r)
            for made in [*(m for _, m, _ in wrong[:10]), *refused[:6]]
            for (g, s), (h, r) in combinations(made, 2)
        }
        pairs = list(suspects.values())[:400]
        probes = [h.apply(g.apply(self.base, s), r) for g, s, h, r in pairs]
        texts = yield from self.ask(probes)
        changed = False
        for (g, _, h, _), probe, tokens in zip(pairs, probes, texts, strict=True):
            if g in groups and h in groups:
                if tokens is None:
                    changed |= merge(groups, g, h, MAX_LEGALITY_SELECTORS)
                elif not _predicts(compiled, probe, tokens):
                    changed |= merge(groups, g, h, MAX_SELECTORS)
        if wrong and not changed:
            changed = yield from self._missed_special_values(compiled, groups, [w for w, _, _ in wrong])
        if wrong and not changed:
            word, _, tokens = wrong[0]
            self.problems.append(f"{len(wrong)} of {TRIALS} words mispredicted, such as {word:#x}: {''.join(tokens)}")
        return changed

    def _missed_special_values(
        self, compiled: CompiledForm, groups: list[Group], wrong: list[int]
    ) -> Generator[list[int], list[Answer | None], bool]:
        """Special values that matter only beside some modifier: with a plain value instead, the prediction is right."""
        known = {(c.number, c.value) for g in groups for t in g.toggles if isinstance(c := t.selector, Condition)}
        cases: list[tuple[int, int, int]] = []
        for word in wrong:
            for i, number in self.numbers.items():
                raw = gather(word, number.bits)
                if raw in (0, (1 << len(number.bits)) - 1) and (number.name, raw) not in known:
                    cases.append((i, raw, put(word, number, gather(self.base, number.bits))))
        texts = yield from self.ask([word for _, _, word in cases])
        found = {(i, raw) for (i, raw, w), t in zip(cases, texts, strict=True) if t is not None and _predicts(compiled, w, t)}
        groups += [Group([special(self.numbers[i], raw)]) for i, raw in sorted(found)]
        return bool(found)

    def _random_trial(self, groups: list[Group]) -> tuple[int, list[tuple[Group, int]]]:
        """The base with random legal states and numbers, and the states that differ from the base's."""
        word, made = self.base, list[tuple[Group, int]]()
        for group in groups:
            state = self.rng.choice(list(group.strings)) if self.rng.random() < 0.7 else 0
            if state:
                word = group.apply(word, state)
                made.append((group, state))
        conditions = {(c.number, c.value) for g in groups for t in g.toggles if isinstance(c := t.selector, Condition)}
        decided = {c.number for g, s in made for i, t in enumerate(g.toggles) if s >> i & 1 and isinstance(c := t.selector, Condition)}
        for number in self.numbers.values():
            full = (1 << len(number.bits)) - 1
            value = self.rng.choice((0, full)) if self.rng.random() < 0.2 else self.rng.getrandbits(len(number.bits))
            if number.name not in decided and (number.name, value) not in conditions and value not in number.excluded:
                word = put(word, number, value)
        return word, made


def _predicts(compiled: CompiledForm, word: int, tokens: Tokens) -> bool:
    """The form decodes the word to the text that nvdisasm gave it."""
    instruction = compiled.decode(word, Control(), word)
    if instruction is None:
        return False
    return tokenize(without_payload(instruction._replace(guard=None, extra=()).text)) == list(tokens)
