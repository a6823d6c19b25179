"""Learn one encoding form by experiment.

A learner is a coroutine: it yields lists of words and is sent one answer for each, so that a driver can put the
questions of a thousand forms into one call of nvdisasm. The method: flip every bit of an accepted word. A flip that
changes one number in the text belongs to that number; bits that change other text are modifiers, and two of them belong
together when their joint effect is not the sum of their single effects. The form so found must predict random words;
where a prediction fails, the modifiers involved are enumerated together.
"""

from __future__ import annotations

import random
from collections.abc import Generator
from dataclasses import dataclass
from itertools import combinations, pairwise

from sassir.asm.control import Control
from sassir.asm.operand import ZERO_REGISTERS
from sassir.encoders.compiled import show
from sassir.encoders.floats import WIDTHS
from sassir.encoders.form import Condition, Form, Number, gather
from sassir.encoders.mining.assemble import BITS, assemble
from sassir.encoders.mining.text import SEPARATOR, apply_edits, edits, kind_of, overlap, register_index, tokenize
from sassir.encoders.mining.toggles import Group, Toggle, Tokens, flip, merged_regions, put, special
from sassir.encoders.table import CompiledForm

REUSE = (122, 123, 124)
CONTROL = 17 << 105 | 7 << 110 | 7 << 113
"""Stall 1, no yield, no scoreboards: the schedule under which bits 122-124 show as `.reuse`."""
PREDICATE_TRUE = 7 << 12
MAX_SELECTORS = 11
"""Most bits and conditions that are enumerated together; no form of sm_75 to sm_121 needs more."""
MAX_LEGALITY_SELECTORS = 6
"""Most of them merged only because some combinations are refused."""
TRIALS = 48
ROUNDS = 6


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


class Learner:
    """The experiments on one class of words."""

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

    def run(self) -> Generator[list[int], list[Answer | None], Form | None]:
        """Yield words, take answers, return the form; None when no seed is accepted."""
        yield from self._explore()
        if not self.pool:
            return None
        yield from self._find_numbers()
        groups = yield from self._find_groups()
        for _ in range(ROUNDS):
            changed = yield from self._verify(self._form(groups), groups)
            if not changed:
                break
            yield from self._enumerate(groups)
        return self._form(groups)

    def _form(self, groups: list[Group]) -> Form:
        return assemble(self.base, self.tokens, self.numbers, groups, self.guard, self._varying())

    def _varying(self) -> int:
        varying = 0
        for word in self.pool:
            varying |= word ^ self.base
        return varying

    # -- asking ---------------------------------------------------------------------------------------------------

    def _ask(self, words: list[int]) -> Ask:
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

    def _explore(self) -> Step:
        """Fill the pool with accepted words, and see whether the form has a guard and a relative target."""
        seeds = list(dict.fromkeys(map(neutral, self.seeds)))
        yield from self._ask(seeds)
        if not self.pool:
            return
        first = next(iter(self.pool))
        here, there, guarded = yield [first, first, first ^ 1 << 15]
        if here and there and here.tokens != there.tokens:
            self.relative = True
            self.pool.clear()
            yield from self._ask(seeds)
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
            yield from self._ask([w ^ 1 << b for w in bases[:2] for b in BITS] + mixed)

    # -- numbers --------------------------------------------------------------------------------------------------

    def _find_numbers(self) -> Step:
        """Choose the base word and find its numbers. Three rounds settle on a base with plain, distinct values."""
        for _ in range(3):
            best = max(self.pool, key=lambda w: _score(self.pool[w]))
            if not self.numbers or _score(self.pool[best]) > _score(self.tokens):
                self.base, self.tokens = best, self.pool[best]
            yield from self._flip_numbers()
            yield from self._plain_values()
        yield from self._flip_numbers()

    def _flip_numbers(self) -> Step:
        """Which bits change one number only, and with what weight."""
        found: dict[int, dict[int, int]] = {}
        self.problems.clear()
        texts = yield from self._ask([self.base ^ 1 << b for b in BITS])
        for bit, tokens in zip(BITS, texts, strict=True):
            if tokens is None or len(tokens) != len(self.tokens):
                continue
            changed = [i for i, (a, b) in enumerate(zip(self.tokens, tokens, strict=True)) if a != b]
            kind = kind_of(self.tokens[changed[0]]) if changed else None
            if len(changed) == 1 and kind is not None and kind == kind_of(tokens[changed[0]]):
                sign = -1 if self.base >> bit & 1 else 1
                (i,) = changed
                weight = 1 << bit if kind == "float" else sign * (self._value(tokens[i]) - self._value(self.tokens[i]))
                found.setdefault(i, {})[bit] = weight
        numbers = {i: self._number(self.tokens[i], weights) for i, weights in found.items()}
        self.numbers = {i: n for i, n in numbers.items() if n is not None}

    def _value(self, token: str) -> int:
        """Of an integer, or the number of a register; a zero register has the highest of its file."""
        kind = kind_of(token)
        if kind in ("int", "pc"):
            return int(token.removeprefix("."), 16)
        index = register_index(token)
        return {"R": 255, "UR": self.uniform_zero}.get(kind or "", 7) if index is None else index

    def _number(self, token: str, weights: dict[int, int]) -> Number | None:
        """The number that a token shows, from the weights of its bits; None when those are no binary number."""
        kind = kind_of(token) or ""
        bits = _filled(sorted(weights, key=lambda b: abs(weights[b]), reverse=True), weights)
        name = f"{'F' if kind == 'float' else 'I' if kind in ('int', 'pc') else kind}{bits[0]}"
        sizes = [abs(weights[b]) for b in bits]
        if any(a != 2 * b for a, b in pairwise(sizes)):
            self.problems.append(f"bits {bits} of {token} weigh {sizes}")
            return None
        if kind == "float":
            options = [Number(name, k, tuple(bits)) for k, width in WIDTHS.items() if width == len(bits)]
            found = [n for n in options if show(n, n.kind, self.base).split("(")[0] == token]
            return found[0] if found else None
        negative = [weights[b] < 0 for b in bits]
        if kind in ("int", "pc"):
            number = Number(name, kind, tuple(bits), negative[0], sizes[-1])
            offset = self._value(token) - int(show(number, "int", self.base), 16)
            if any(negative[1:]) or (offset and kind == "int"):
                self.problems.append(f"{token} is {offset} more than its bits {bits} say")
                return None
            return number._replace(offset=offset)
        if sizes[-1] != 1 or len(set(negative)) > 1:
            return None
        if negative[0]:  # the complement of the register's number is encoded
            return Number(name, kind, tuple(bits), scale=-1, offset=(1 << len(bits)) - 1)
        return Number(name, kind, tuple(bits))

    def _plain_values(self) -> Step:
        """Give every number a value that one flip cannot turn into a special one, distinct from the others."""
        word = self.base
        used: set[int] = set()
        for number in self.numbers.values():
            n = len(number.bits)
            plain = (1, 2, 4) if n == 3 else range(1 << n) if n < 3 else None
            options = plain or [v for v in (self.rng.getrandbits(n) for _ in range(50)) if 2 <= v.bit_count() <= n - 2]
            value = next((v for v in options if v not in used), 0)
            if number.kind in WIDTHS:
                value &= ~(1 << n - 2)  # away from infinity and NaN
            used.add(value)
            word = put(word, number, value)
        (tokens,) = yield from self._ask([word])
        if tokens is not None and _score(tokens) >= _score(self.tokens):
            self.base, self.tokens = word, tokens

    # -- modifiers ------------------------------------------------------------------------------------------------

    def _find_groups(self) -> Generator[list[int], list[Answer | None], list[Group]]:
        """Toggles, and which of them act together."""
        numeric = {b for n in self.numbers.values() for b in n.bits}
        bits = [b for b in (*BITS, *REUSE) if b not in numeric]
        varying = self._varying()
        texts = yield from self._ask([self.base ^ 1 << b for b in bits])
        shown = [b for b, t in zip(bits, texts, strict=True) if t != self.tokens and (t is not None or varying >> b & 1)]
        toggles = [flip(self.base, b) for b in shown]
        toggles += yield from self._special_values(toggles)
        groups = [Group([t]) for t in toggles]
        home = dict(enumerate(groups))
        pairs = list(combinations(range(len(toggles)), 2))
        alone = yield from self._ask([t.apply(self.base) for t in toggles])
        both = yield from self._ask([toggles[j].apply(toggles[i].apply(self.base)) for i, j in pairs])
        for (i, j), tokens in zip(pairs, both, strict=True):
            if home[i] is not home[j] and self._interact(alone[i], alone[j], tokens):
                gone = home[j]
                home[i].toggles += gone.toggles
                groups.remove(gone)
                home = {k: home[i] if g is gone else g for k, g in home.items()}
        yield from self._enumerate(groups)
        return groups

    def _interact(self, a: Tokens | None, b: Tokens | None, both: Tokens | None) -> bool:
        """The joint effect of two toggles is not the sum of their effects."""
        if both is None:
            return False
        if a is None or b is None:
            return True
        first, second = edits(self.tokens, a), edits(self.tokens, b)
        return overlap([e[:2] for e in first], [e[:2] for e in second]) or apply_edits(self.tokens, first + second) != both

    def _special_values(self, flips: list[Toggle]) -> Generator[list[int], list[Answer | None], list[Toggle]]:
        """Values of numbers that change the text beyond the number (RZ, PT, zero), alone or beside one other change.

        A value that makes the word one of another form is noted as excluded.
        """
        cases: list[tuple[int, int]] = []
        for i, number in self.numbers.items():
            full = (1 << len(number.bits)) - 1
            cases += [(i, v) for v in ((0, full) if number.kind in ("int", "pc") else (0,) if number.scale < 0 else (full,))]
        texts = yield from self._ask([put(self.base, self.numbers[i], v) for i, v in cases])
        found: dict[tuple[int, int], None] = {}
        for (i, value), tokens in zip(cases, texts, strict=True):
            if tokens is None:
                self.numbers[i] = self.numbers[i]._replace(excluded=(*self.numbers[i].excluded, value))
            elif self._other_than(i, value, self.tokens, tokens):
                found[i, value] = None
        plain = [c for c, t in zip(cases, texts, strict=True) if t is not None and c not in found]
        changes = [(t, -1) for t in flips]
        changes += [(special(self.numbers[j], w), j) for j, w in cases if self.numbers[j].kind not in ("int", "pc")]
        alone = yield from self._ask([t.apply(self.base) for t, _ in changes])
        both = yield from self._ask([t.apply(put(self.base, self.numbers[i], v)) for i, v in plain for t, _ in changes])
        answers = iter(both)
        for i, value in plain:
            for (toggle, j), before in zip(changes, alone, strict=True):
                after = next(answers)
                if before and after and i != j and self._other_than(i, value, before, after):
                    found[i, value] = None
                    if isinstance(toggle.selector, Condition):
                        found[j, toggle.selector.value] = None
        return [special(self.numbers[i], v) for i, v in found]

    def _other_than(self, i: int, value: int, before: Tokens, after: Tokens) -> bool:
        """Giving number `i` the value changed more of the text than the number."""
        number = self.numbers[i]
        names = {show(number, number.kind, w) for w in (self.base, put(self.base, number, value))}
        return [t for t in before if t not in names] != [t for t in after if t not in names]

    def _enumerate(self, groups: list[Group]) -> Step:
        """The text of every state of the new groups. Groups that change the same tokens become one."""
        while fresh := [g for g in groups if not g.strings]:
            for group in fresh:
                if len(group.toggles) > MAX_SELECTORS:
                    self.problems.append(f"{len(group.toggles)} selectors act together: {[t.selector for t in group.toggles]}")
                    del group.toggles[MAX_SELECTORS:]
                texts = yield from self._ask([group.apply(self.base, s) for s in range(1 << len(group.toggles))])
                changes = {s: edits(self.tokens, t) for s, t in enumerate(texts) if t is not None}
                group.regions = merged_regions(list(changes.values()))
                group.strings = {s: [apply_edits(self.tokens, c, r) for r in group.regions] for s, c in changes.items()}
            for g, h in combinations(list(groups), 2):
                if g in groups and h in groups and overlap(g.regions, h.regions):
                    _merge(groups, g, h, MAX_SELECTORS)

    # -- checking -------------------------------------------------------------------------------------------------

    def _verify(self, form: Form, groups: list[Group]) -> Generator[list[int], list[Answer | None], bool]:
        """Predict random words; where that fails, merge groups or add special values. True when something changed."""
        compiled = CompiledForm(form)
        trials = [self._random_trial(groups) for _ in range(TRIALS)]
        texts = yield from self._ask([word for word, _ in trials])
        wrong = [(w, made, t) for (w, made), t in zip(trials, texts, strict=True) if t is not None and not _predicts(compiled, w, t)]
        refused = [made for (_, made), t in zip(trials, texts, strict=True) if t is None]
        suspects = {
            (id(g), s, id(h), r): (g, s, h, r)
            for made in [*(m for _, m, _ in wrong[:10]), *refused[:6]]
            for (g, s), (h, r) in combinations(made, 2)
        }
        pairs = list(suspects.values())[:400]
        probes = [h.apply(g.apply(self.base, s), r) for g, s, h, r in pairs]
        texts = yield from self._ask(probes)
        changed = False
        for (g, _, h, _), probe, tokens in zip(pairs, probes, texts, strict=True):
            if g in groups and h in groups:
                if tokens is None:
                    changed |= _merge(groups, g, h, MAX_LEGALITY_SELECTORS)
                elif not _predicts(compiled, probe, tokens):
                    changed |= _merge(groups, g, h, MAX_SELECTORS)
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
        texts = yield from self._ask([word for _, _, word in cases])
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


def _score(tokens: Tokens) -> int:
    """Prefer words that show the most, and only what has a name; a number at or near zero hides bits."""
    vague = sum("INVALID" in t or "???" in t for t in tokens)
    thin = sum(t in ZERO_REGISTERS or (kind_of(t) == "int" and int(t, 16).bit_count() < 2) for t in tokens)
    return 3 * tokens.count(SEPARATOR) + len(tokens) - 6 * vague - 2 * thin


def _filled(bits: list[int], weights: dict[int, int]) -> list[int]:
    """Bits of a contiguous number, with those added whose flip happened to be refused or to change more than the number."""
    low, size = bits[-1], abs(weights[bits[-1]])
    if len(bits) < 2 or any(abs(weights[b]) != size << b - low for b in bits) or weights[bits[0]] * weights[bits[1]] < 0:
        return bits
    full = list(range(bits[0], low - 1, -1))
    for bit in full:
        weights.setdefault(bit, (size << bit - low) * (1 if weights[low] > 0 else -1))
    return full


def _merge(groups: list[Group], g: Group, h: Group, most: int) -> bool:
    """Put two groups together, to be enumerated anew, unless that makes more than `most` selectors."""
    if len(g.toggles) + len(h.toggles) > most:
        return False
    groups.remove(g)
    groups.remove(h)
    groups.append(Group(g.toggles + h.toggles))
    return True


def _predicts(compiled: CompiledForm, word: int, tokens: Tokens) -> bool:
    """The form decodes the word to the text that nvdisasm gave it."""
    instruction = compiled.decode(word, Control(), word)
    if instruction is None:
        return False
    text = instruction._replace(guard=None, extra=()).text
    ours = [t.split("(")[0] if "NAN(" in t else t for t in tokenize(text)]
    return ours == list(tokens)
