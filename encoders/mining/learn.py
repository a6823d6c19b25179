"""Learn one encoding form by experiment.

`learn` is a coroutine: it yields lists of words and is sent one Answer for each, so that a driver can put the questions
of a thousand forms into one call of nvdisasm. The method: flip every bit of an accepted word. A flip that changes one
number in the text belongs to that number; bits that change other text are modifiers, and two of them belong together
when their joint effect is not the sum of their single effects. The form is then used to predict random words, and
where a prediction fails the modifiers involved are merged and enumerated together.
"""

from __future__ import annotations

import random
from collections.abc import Generator
from dataclasses import dataclass, field
from itertools import combinations

from sassir.encoders.floats import WIDTHS, format_float
from sassir.encoders.form import Choice, Condition, Form, Hole, Number, Part, Place, Token, choice_state, gather, opcode_of, scatter
from sassir.encoders.mining.text import SEPARATOR, edits, kind_of, register_index

BITS = tuple(b for b in range(16, 105) if b != 91)
REUSE = (122, 123, 124)
CONTROL = 17 << 105 | 7 << 110 | 7 << 113
"""Stall 1, no yield, no scoreboards: the schedule under which bits 122-124 show as `.reuse`."""
PREDICATE_TRUE = 7 << 12
MAX_SELECTORS = 11
"""Most bits and conditions that are enumerated together; no form of sm_75 to sm_121 needs more."""
MAX_LEGALITY_SELECTORS = 6
"""Most of them merged only because some combinations are refused."""


@dataclass(frozen=True)
class Answer:
    """What nvdisasm says of a word of the form: guard and tokens. A word of another form, or of none, has no Answer."""

    guard: str
    tokens: tuple[str, ...]
    address: int


Query = Generator[list[int], list[Answer | None], Form | None]


def neutral(word: int) -> int:
    """The word with the miner's control code and without a guard."""
    return word & (1 << 105) - 1 & ~(15 << 12) | CONTROL | PREDICATE_TRUE


@dataclass
class Toggle:
    """A change of the base word: a flipped bit, or a number set to a special value."""

    selector: int | Condition
    mask: int
    value: int

    def apply(self, word: int) -> int:
        """The word with the change made."""
        return word & ~self.mask | self.value


@dataclass
class Group:
    """Toggles that act together. `states` maps each legal subset (as a bit mask of indices) to the whole text's tokens."""

    toggles: list[Toggle]
    states: dict[int, tuple[str, ...]] = field(default_factory=dict)
    regions: list[tuple[int, int]] = field(default_factory=list)
    strings: dict[int, list[tuple[str, ...]]] = field(default_factory=dict)

    def apply(self, word: int, subset: int) -> int:
        """The word with the toggles of `subset` made."""
        for i, toggle in enumerate(self.toggles):
            if subset >> i & 1:
                word = toggle.apply(word)
        return word


class Learner:
    """State of learning one form."""

    def __init__(self, name: str, seeds: list[int], uniform_zero: int, rng: random.Random) -> None:
        self.name, self.seeds, self.uniform_zero, self.rng = name, seeds, uniform_zero, rng
        self.pool: dict[int, tuple[str, ...]] = {}
        self.numbers: dict[int, Number] = {}  # by token position of the base
        self.base, self.tokens = 0, ()
        self.relative: int | None = None  # token position of a pc-relative integer
        self.guard: str | None = None
        self.problems: list[str] = []

    # -- asking ---------------------------------------------------------------------------------------------------

    def ask(self, words: list[int]) -> Generator[list[int], list[Answer | None], list[tuple[str, ...] | None]]:
        """Tokens of each word; a pc-relative target is made a displacement."""
        answers = yield words
        result: list[tuple[str, ...] | None] = []
        for word, answer in zip(words, answers, strict=True):
            tokens = None if answer is None else self.relocate(answer)
            if tokens is not None:
                self.pool.setdefault(word, tokens)
            result.append(tokens)
        return result

    def relocate(self, answer: Answer) -> tuple[str, ...]:
        """Absolute targets as displacements, where the form is known to have one."""
        if self.relative is None:
            return answer.tokens
        tokens = list(answer.tokens)
        for i in range(len(tokens) - 1, -1, -1):
            if kind_of(tokens[i]) == "int":
                tokens[i] = f"{int(tokens[i], 16) - answer.address:#x}"
                break
        return tuple(tokens)

    # -- the experiment -------------------------------------------------------------------------------------------

    def run(self) -> Query:
        """Yield words, take answers, return the form; None when no word of it is accepted."""
        if not (yield from self.explore()):
            return None
        yield from self.find_numbers()
        groups = yield from self.find_groups()
        for _ in range(6):
            merged = yield from self.verify(self.build(groups), groups)
            if not merged:
                break
            for group in merged:
                yield from self.enumerate(group)
            groups = self.merge_overlaps(groups)
            for group in groups:
                if not group.states:
                    yield from self.enumerate(group)
        return self.build(groups)

    def explore(self) -> Generator[list[int], list[Answer | None], bool]:
        """Fill the pool with accepted words of the form, and see whether it has a guard and a relative target."""
        seeds = list(dict.fromkeys(map(neutral, self.seeds)))[:48]
        yield from self.ask(seeds)
        if not self.pool:
            return False
        first = next(iter(self.pool))
        answers = yield [first, first, first ^ 1 << 15]
        if answers[0] and answers[1] and answers[0].tokens != answers[1].tokens:
            self.relative = 0
            self.pool.clear()
            yield from self.ask(seeds)
        self.guard = answers[2].guard.strip("!")[:-1] if answers[2] and answers[2].guard else None
        for _ in range(3):
            bases = self.rng.sample(list(self.pool), min(3, len(self.pool)))
            yield from self.ask([w ^ 1 << b for w in bases[:2] for b in BITS])
            words = list(self.pool)
            mixed = []
            for _ in range(40):
                word = self.rng.choice(bases)
                for other in self.rng.sample(words, min(len(words), self.rng.choice((2, 4, 8, 16)))):
                    word ^= (other ^ self.rng.choice(bases)) & ((1 << 105) - 1)
                mixed.append(neutral(word) & ~(1 << 91) | first & 1 << 91)
            yield from self.ask(mixed)
        return True

    def score(self, tokens: tuple[str, ...]) -> int:
        """Prefer words that show the most, and only what has a name; a number near zero hides its lowest bit."""
        vague = sum("INVALID" in t or "???" in t for t in tokens)
        thin = sum(kind_of(t) == "int" and int(t, 16).bit_count() < 2 for t in tokens)
        return 3 * tokens.count(SEPARATOR) + len(tokens) - 6 * vague - 2 * thin

    def find_numbers(self) -> Generator[list[int], list[Answer | None], None]:
        """Choose the base word, find its numbers, and give them plain distinct values. Three rounds settle it."""
        for _ in range(3):
            ranked = sorted(self.pool, key=lambda w: self.score(self.pool[w]), reverse=True)
            if self.numbers:  # keep the base unless something shows more
                if self.score(self.pool[ranked[0]]) <= self.score(self.tokens):
                    ranked.insert(0, self.base)
            self.base = ranked[0]
            self.tokens = self.pool[self.base]
            yield from self.flip_numbers()
            yield from self.plain_values()
        yield from self.flip_numbers()

    def flip_numbers(self) -> Generator[list[int], list[Answer | None], None]:
        """Which bits change one number only, and with what weight."""
        found: dict[int, dict[int, int]] = {}
        self.problems.clear()
        texts = yield from self.ask([self.base ^ 1 << b for b in BITS])
        for bit, tokens in zip(BITS, texts, strict=True):
            if tokens is None or len(tokens) != len(self.tokens):
                continue
            changed = [i for i, (a, b) in enumerate(zip(self.tokens, tokens, strict=True)) if a != b]
            if len(changed) != 1:
                continue
            (i,) = changed
            kind = kind_of(self.tokens[i])
            if kind is None or kind != kind_of(tokens[i]):
                continue
            sign = -1 if self.base >> bit & 1 else 1
            if kind == "int":
                found.setdefault(i, {})[bit] = sign * (int(tokens[i], 16) - int(self.tokens[i], 16))
            elif kind == "float":
                found.setdefault(i, {})[bit] = 1 << bit
            else:
                found.setdefault(i, {})[bit] = sign * (self.index(tokens[i]) - self.index(self.tokens[i]))
        self.numbers = {}
        for i, weights in found.items():
            number = self.make_number(i, weights)
            if number is not None:
                self.numbers[i] = number

    def index(self, token: str) -> int:
        """The number of a register; a zero register has the highest of its file."""
        index = register_index(token)
        return {"R": 255, "UR": self.uniform_zero}.get(kind_of(token) or "", 7) if index is None else index

    def make_number(self, position: int, weights: dict[int, int]) -> Number | None:
        """The number at a token, from the weight of each of its bits; None when the weights are no binary number."""
        kind = kind_of(self.tokens[position])
        bits = sorted(weights, key=lambda b: abs(weights[b]), reverse=True)
        name = f"{'F' if kind == 'float' else 'I' if kind == 'int' else kind}{bits[0]}"
        bits = self.fill(bits, weights)
        sizes = [abs(weights[b]) for b in bits]
        if any(a != 2 * b for a, b in zip(sizes, sizes[1:], strict=False)):
            self.problems.append(f"bits {bits} of token {self.tokens[position]} weigh {sizes}")
            return None
        if kind == "float":
            raw = gather(self.base, tuple(bits))
            for fmt, width in WIDTHS.items():
                if width == len(bits) and format_float(fmt, raw).split("(")[0] == self.tokens[position]:
                    return Number(name, fmt, tuple(bits))
            self.problems.append(f"float {self.tokens[position]} is not {raw:#x} in {len(bits)} bits")
            return None
        if kind != "int":
            if sizes[-1] != 1:
                return None
            if all(weights[b] < 0 for b in bits):  # the complement of the register number is encoded
                return Number(name, str(kind), tuple(bits), scale=-1, offset=(1 << len(bits)) - 1)
            return Number(name, str(kind), tuple(bits)) if all(weights[b] > 0 for b in bits) else None
        signed = weights[bits[0]] < 0
        if any(weights[b] < 0 for b in bits[1:]):
            return None
        number = Number(name, "int" if self.relative is None else "pc", tuple(bits), signed, sizes[-1])
        offset = int(self.tokens[position], 16) - integer_value(number, self.base)
        if self.relative is None and offset:
            self.problems.append(f"integer {self.tokens[position]} has offset {offset}")
            return None
        return number._replace(offset=offset)

    def fill(self, bits: list[int], weights: dict[int, int]) -> list[int]:
        """Bits of a contiguous number, with those added whose flip happened to be refused or to change more than the number."""
        if len(bits) < 2:
            return bits
        low, size = bits[-1], abs(weights[bits[-1]])
        if any(abs(weights[b]) != size << b - low for b in bits) or weights[bits[0]] * weights[bits[1]] < 0:
            return bits
        full = list(range(bits[0], low - 1, -1))
        for bit in full:
            weights.setdefault(bit, (size << bit - low) * (1 if weights[low] > 0 else -1))
        return full

    def plain_values(self) -> Generator[list[int], list[Answer | None], None]:
        """Give every number a value that one flip cannot turn into a special one, distinct from the others."""
        word = self.base
        used: set[int] = set()
        for number in self.numbers.values():
            n = len(number.bits)
            for _ in range(200):
                value = self.rng.getrandbits(n)
                ones = value.bit_count()
                if n < 3 or (value not in used and 2 <= ones <= n - 2) or (n == 3 and value in (1, 2, 4) and value not in used):
                    break
            if number.kind in WIDTHS:  # away from NaN and infinity
                value &= ~(1 << n - 2)
            used.add(value)
            word = put(word, number, value)
        (tokens,) = yield from self.ask([word])
        if tokens is not None and self.score(tokens) >= self.score(self.tokens):
            self.base, self.tokens = word, tokens

    def find_groups(self) -> Generator[list[int], list[Answer | None], list[Group]]:
        """Toggles, and which of them act together."""
        numeric = {b for n in self.numbers.values() for b in n.bits}
        numeric -= {b for n in self.numbers.values() if n.kind == "pc" and len(n.bits) < 2 for b in n.bits}
        varying = 0
        for word in self.pool:
            varying |= word ^ self.base
        singles = yield from self.ask([self.base ^ 1 << b for b in (*BITS, *REUSE)])
        toggles: list[Toggle] = []
        for bit, tokens in zip((*BITS, *REUSE), singles, strict=True):
            if bit in numeric:
                continue
            if (tokens is not None and tokens != self.tokens) or (tokens is None and varying >> bit & 1):
                toggles.append(Toggle(bit, 1 << bit, ~self.base & 1 << bit))
        toggles += yield from self.special_values(toggles)
        groups = [Group([t]) for t in toggles]
        pairs = list(combinations(range(len(toggles)), 2))
        alone = yield from self.ask([t.apply(self.base) for t in toggles])
        both = yield from self.ask([toggles[j].apply(toggles[i].apply(self.base)) for i, j in pairs])
        parent = list(range(len(toggles)))

        def find(i: int) -> int:
            while parent[i] != i:
                i = parent[i]
            return i

        for (i, j), tokens in zip(pairs, both, strict=True):
            if self.interact(alone[i], alone[j], tokens):
                parent[find(i)] = find(j)
        clusters: dict[int, list[Toggle]] = {}
        for i, toggle in enumerate(toggles):
            clusters.setdefault(find(i), []).append(toggle)
        groups = [Group(ts) for ts in clusters.values()]
        for group in groups:
            yield from self.enumerate(group)
        groups = self.merge_overlaps(groups)
        for group in groups:
            if not group.states:
                yield from self.enumerate(group)
        return groups

    def special_values(self, flags: list[Toggle]) -> Generator[list[int], list[Answer | None], list[Toggle]]:
        """Values of numbers that change the text beyond the number (RZ, PT, zero), alone or together with one other change.

        A value that makes the word one of another form is noted as excluded.
        """
        cases: list[tuple[int, int]] = []
        for i, number in self.numbers.items():
            full = (1 << len(number.bits)) - 1
            zero_register = 0 if number.scale < 0 else full
            cases += [(i, v) for v in ((0, full) if number.kind in ("int", "pc") else (zero_register,))]
        texts = yield from self.ask([put(self.base, self.numbers[i], v) for i, v in cases])
        found: dict[tuple[int, int], None] = {}
        for (i, value), tokens in zip(cases, texts, strict=True):
            if tokens is None:
                self.numbers[i] = self.numbers[i]._replace(excluded=(*self.numbers[i].excluded, value))
            elif self.structure(tokens, {i}) != self.structure(self.tokens, {i}):
                found[i, value] = None
        plain = [c for c, t in zip(cases, texts, strict=True) if t is not None and c not in found]
        changes = [(t, set[int]()) for t in flags]
        changes += [(self.special_toggle(j, w), {j}) for j, w in cases if self.numbers[j].kind not in ("int", "pc")]
        alone = yield from self.ask([t.apply(self.base) for t, _ in changes])
        both = yield from self.ask([t.apply(put(self.base, self.numbers[i], v)) for i, v in plain for t, _ in changes])
        answers = iter(both)
        for case in plain:
            for (toggle, touched), before in zip(changes, alone, strict=True):
                after = next(answers)
                if before is None or after is None or case[0] in touched:
                    continue
                number = self.numbers[case[0]]
                names = {render_number(number, number.kind, w) for w in (self.base, put(self.base, number, case[1]))}
                if [t for t in before if t not in names] != [t for t in after if t not in names]:
                    found[case] = None
                    if isinstance(toggle.selector, Condition):
                        found[next(iter(touched)), toggle.selector.value] = None
        return [self.special_toggle(i, v) for i, v in found]

    def special_toggle(self, position: int, value: int) -> Toggle:
        """The change that gives a number a special value."""
        number = self.numbers[position]
        full = (1 << len(number.bits)) - 1
        return Toggle(Condition(number.name, value), scatter(full, number.bits), scatter(value, number.bits))

    def structure(self, tokens: tuple[str, ...], ignore: set[int]) -> tuple[str, ...]:
        """Tokens with the numbers at `ignore` blanked, for texts of the base's length."""
        if len(tokens) != len(self.tokens):
            return tokens
        return tuple("#" if i in ignore and kind_of(t) else t for i, t in enumerate(tokens))

    def interact(self, a: tuple[str, ...] | None, b: tuple[str, ...] | None, both: tuple[str, ...] | None) -> bool:
        """The joint effect of two toggles is not the sum of their effects."""
        if both is None:
            return False
        if a is None or b is None:
            return True
        first, second = edits(list(self.tokens), list(a)), edits(list(self.tokens), list(b))
        if overlap([(s, e) for s, e, _ in first], [(s, e) for s, e, _ in second]):
            return True
        return combine(self.tokens, [*first, *second]) != list(both)

    def enumerate(self, group: Group) -> Generator[list[int], list[Answer | None], None]:
        """The text of every state of a group, and where it differs from the base."""
        n = len(group.toggles)
        if n > MAX_SELECTORS:
            self.problems.append(f"{n} selectors act together: {[t.selector for t in group.toggles]}")
            group.toggles = group.toggles[:MAX_SELECTORS]
            n = MAX_SELECTORS
        texts = yield from self.ask([group.apply(self.base, s) for s in range(1 << n)])
        group.states = {s: t for s, t in enumerate(texts) if t is not None}
        group.states[0] = self.tokens
        spans: list[tuple[int, int]] = []
        changes = {s: edits(list(self.tokens), list(t)) for s, t in group.states.items()}
        for change in changes.values():
            spans += [(a, b) for a, b, _ in change]
        regions: list[tuple[int, int]] = []
        for a, b in sorted(set(spans)):
            if regions and a < regions[-1][1] or (regions and a == regions[-1][1] and (a == b or regions[-1][0] == regions[-1][1])):
                regions[-1] = (regions[-1][0], max(b, regions[-1][1]))
            else:
                regions.append((a, b))
        group.regions = regions
        group.strings = {s: [tuple(combine(self.tokens, change, region)) for region in regions] for s, change in changes.items()}

    def merge_overlaps(self, groups: list[Group]) -> list[Group]:
        """Groups that change the same tokens become one, to be enumerated again."""
        groups = list(groups)
        done = False
        while not done:
            done = True
            for g, h in combinations(groups, 2):
                if overlap(g.regions, h.regions) and len(g.toggles) + len(h.toggles) <= MAX_SELECTORS:
                    groups = [x for x in groups if x is not g and x is not h] + [Group(g.toggles + h.toggles, {}, sorted(g.regions + h.regions))]
                    done = False
                    break
        return groups

    # -- the form -------------------------------------------------------------------------------------------------

    def build(self, groups: list[Group]) -> Form:
        """The form that base, numbers and groups describe."""
        numbers = {n.name: n for n in self.numbers.values()}
        places: list[tuple[int, int, str, int]] = []
        choices: dict[str, Choice] = {}
        for group in groups:
            if not group.regions:
                continue
            name = self.choice_name(group, choices)
            selectors = tuple(sorted((t.selector for t in group.toggles), key=selector_rank, reverse=True))
            states: dict[int, tuple[tuple[Token, ...], ...]] = {}
            for subset, strings in group.strings.items():
                word = group.apply(self.base, subset)
                probe = Choice(name, selectors, {})
                state = choice_state(word, probe, numbers)
                states[state] = tuple(tuple(self.typed(t, word, region) for t in s) for s, region in zip(strings, group.regions, strict=True))
            choices[name] = Choice(name, selectors, states)
            places += [(a, b, name, k) for k, (a, b) in enumerate(group.regions)]
        parts = self.lay_out(sorted(places), choices)
        used = {b for n in numbers.values() for b in n.bits} | {s for c in choices.values() for s in c.selectors if isinstance(s, int)}
        fixed, inert = self.remaining(used)
        return Form(
            mnemonic=self.tokens[0],
            opcode=opcode_of(self.base),
            guard=self.guard,
            components=split_components(parts),
            numbers=numbers,
            choices=choices,
            fixed=tuple((b, self.base >> b & 1) for b in sorted(fixed, reverse=True)),
            inert=tuple(sorted(inert, reverse=True)),
            default=0,
            example=self.base,
        )

    def lay_out(self, places: list[tuple[int, int, str, int]], choices: dict[str, Choice]) -> list[Part]:
        """Base tokens with the places of choices put in. A separator never stays inside a choice."""
        parts: list[Part] = []
        at = 0
        columns_of: dict[str, list[dict[int, tuple[Token, ...]]]] = {name: [] for name in choices}
        for start, end, name, k in places:
            parts += [self.plain_part(i) for i in range(at, start)]
            for j, column in enumerate(split_columns({s: strings[k] for s, strings in choices[name].states.items()})):
                if j:
                    parts.append(SEPARATOR)
                if any(column.values()):
                    parts.append(Place(name, len(columns_of[name])))
                    columns_of[name].append(column)
            at = max(at, end)
        for name, columns in columns_of.items():
            choices[name] = choices[name]._replace(states={s: tuple(c[s] for c in columns) for s in choices[name].states})
        return parts + [self.plain_part(i) for i in range(at, len(self.tokens))]

    def choice_name(self, group: Group, taken: dict[str, Choice]) -> str:
        """`m` and the highest bit, or `z` and the number whose special values decide."""
        bits = [t.selector for t in group.toggles if isinstance(t.selector, int)]
        name = f"m{max(bits)}" if bits else "z" + str(group.toggles[0].selector[0])  # type: ignore[index]
        while name in taken:
            name += "'"
        return name

    def plain_part(self, i: int) -> Part:
        """The part at base token `i` outside every choice."""
        number = self.numbers.get(i)
        return Hole(number.name, number.kind) if number else self.tokens[i]

    def typed(self, token: str, word: int, region: tuple[int, int]) -> Token:
        """A token inside a choice: a hole when it is a number whose bits the word has."""
        kind = kind_of(token)
        if kind is None:
            return token
        near = sorted(self.numbers.items(), key=lambda item: not region[0] <= item[0] < region[1])
        for i, number in near:
            if not region[0] <= i < region[1]:
                break
            shown = render_number(number, number.kind, word)
            if same_number(shown, token):
                return Hole(number.name, number.kind)
            if kind == "float":
                for fmt, width in WIDTHS.items():
                    if width == len(number.bits) and same_number(render_number(number, fmt, word), token):
                        return Hole(number.name, fmt)
        return token

    def remaining(self, used: set[int]) -> tuple[set[int], set[int]]:
        """Bits outside all fields: those that the form requires, and those that no text shows."""
        varying = 0
        for word in self.pool:
            varying |= word ^ self.base
        rest = [b for b in BITS if b not in used]
        return {b for b in rest if not varying >> b & 1}, {b for b in rest if varying >> b & 1}

    # -- checking -------------------------------------------------------------------------------------------------

    def verify(self, form: Form, groups: list[Group]) -> Generator[list[int], list[Answer | None], list[Group]]:
        """Predict random words; merge groups whose joint effect was mispredicted. Returns the merged groups."""
        trials = [self.random_trial(groups) for _ in range(48)]
        texts = yield from self.ask([word for word, _ in trials])
        wrong = [(w, made, t) for (w, made), t in zip(trials, texts, strict=True) if t is not None and render(form, w) != comparable(t)]
        refused = [made for (_, made), t in zip(trials, texts, strict=True) if t is None]
        suspects: dict[tuple[int, int, int, int], tuple[Group, int, Group, int]] = {}
        for made in [*(m for _, m, _ in wrong[:10]), *refused[:6]]:
            for (g, s), (h, r) in combinations(made, 2):
                suspects.setdefault((id(g), s, id(h), r), (g, s, h, r))
        pairs = list(suspects.values())[:400]
        probes = [h.apply(g.apply(self.base, s), r) for g, s, h, r in pairs]
        texts = yield from self.ask(probes)
        merged: list[Group] = []
        for (g, _, h, _), probe, tokens in zip(pairs, probes, texts, strict=True):
            if g not in groups or h not in groups:
                continue
            size = len(g.toggles) + len(h.toggles)
            mispredicted = tokens is not None and render(form, probe) != comparable(tokens)
            if (mispredicted and size <= MAX_SELECTORS) or (tokens is None and size <= MAX_LEGALITY_SELECTORS):
                groups.remove(g)
                groups.remove(h)
                groups.append(Group(g.toggles + h.toggles))
                merged.append(groups[-1])
        if wrong and not merged:
            merged = yield from self.missed_special_values(form, groups, [(w, t) for w, _, t in wrong])
        if wrong and not merged:
            word, _, tokens = wrong[0]
            self.problems.append(f"{len(wrong)} of {len(trials)} words mispredicted: {word:#x} {render(form, word)} is {comparable(tokens)}")
        return [g for g in merged if g in groups]

    def missed_special_values(
        self, form: Form, groups: list[Group], wrong: list[tuple[int, tuple[str, ...]]]
    ) -> Generator[list[int], list[Answer | None], list[Group]]:
        """Special values that matter only beside some modifier: with a plain value instead, the prediction is right."""
        known = {(c.number, c.value) for g in groups for t in g.toggles if isinstance(c := t.selector, Condition)}
        cases: list[tuple[int, int, int]] = []
        for word, _ in wrong:
            for i, number in self.numbers.items():
                raw = gather(word, number.bits)
                if raw in (0, (1 << len(number.bits)) - 1) and (number.name, raw) not in known:
                    cases.append((i, raw, put(word, number, gather(self.base, number.bits))))
        texts = yield from self.ask([word for _, _, word in cases])
        found = {(i, raw) for (i, raw, word), t in zip(cases, texts, strict=True) if t is not None and render(form, word) == comparable(t)}
        added = [Group([self.special_toggle(i, raw)]) for i, raw in sorted(found)]
        groups += added
        return added

    def random_trial(self, groups: list[Group]) -> tuple[int, list[tuple[Group, int]]]:
        """The base with random legal states and numbers, and the states that differ from the base's."""
        word, made = self.base, list[tuple[Group, int]]()
        for group in groups:
            subset = self.rng.choice(list(group.states)) if self.rng.random() < 0.7 else 0
            if subset:
                word = group.apply(word, subset)
                made.append((group, subset))
        special = {(c.number, c.value) for g in groups for t in g.toggles if isinstance(c := t.selector, Condition)}
        decided = {c.number for g, s in made for i, t in enumerate(g.toggles) if s >> i & 1 and isinstance(c := t.selector, Condition)}
        for number in self.numbers.values():
            full = (1 << len(number.bits)) - 1
            value = self.rng.choice((0, full)) if self.rng.random() < 0.2 else self.rng.getrandbits(len(number.bits))
            if number.name not in decided and (number.name, value) not in special and value not in number.excluded:
                word = put(word, number, value)
        return word, made


def selector_rank(selector: int | Condition) -> tuple[int, str, int]:
    """Bits from high to low, then conditions."""
    return (selector, "", 0) if isinstance(selector, int) else (-1, selector.number, selector.value)


def put(word: int, number: Number, value: int) -> int:
    """The word with the number's bits set to `value`."""
    return word & ~scatter((1 << len(number.bits)) - 1, number.bits) | scatter(value, number.bits)


def integer_value(number: Number, word: int) -> int:
    """Value of an integer's bits in the word, scaled, without offset."""
    raw = gather(word, number.bits)
    if number.signed and raw >> len(number.bits) - 1:
        raw -= 1 << len(number.bits)
    return raw * number.scale


def render_number(number: Number, kind: str, word: int) -> str:
    """The text of a number in the word."""
    if kind in ("int", "pc"):
        return f"{integer_value(number, word) + number.offset:#x}"
    raw = gather(word, number.bits)
    if kind in WIDTHS:
        return format_float(kind, raw)
    raw = number.offset + number.scale * raw
    if raw == (1 << len(number.bits)) - 1 and kind in ("R", "UR", "P", "UP"):
        return kind + ("Z" if kind.endswith("R") else "T")
    return f"{kind}{raw}"


def same_number(a: str, b: str) -> bool:
    """Equal but for the payload of a NaN, which nvdisasm drops."""
    return a.split("(")[0] == b


def overlap(a: list[tuple[int, int]], b: list[tuple[int, int]]) -> bool:
    """Two spans share a token, or insert at the same place."""
    return any((s < f and t < e) or (s == e == t == f) or (s == e and t < s < f) or (t == f and s < t < e) for s, e in a for t, f in b)


def combine(tokens: tuple[str, ...], changes: list[tuple[int, int, tuple[str, ...]]], region: tuple[int, int] | None = None) -> list[str]:
    """The tokens (of the region) after all changes (within it)."""
    start, end = region or (0, len(tokens))
    result: list[str] = []
    at = start
    for a, b, new in sorted(changes):
        if a < start or b > end or a < at:
            continue
        result += [*tokens[at:a], *new]
        at = b
    return result + list(tokens[at:end])


def split_columns(strings: dict[int, tuple[Token, ...]]) -> list[dict[int, tuple[Token, ...]]]:
    """Cut the strings of a place at their separators: column i holds what each state shows of the i-th operand.

    A state that shows fewer operands than the fullest one shows those that resemble the fullest's, and nothing for the others.
    """
    cut = {state: cut_at_separators(string) for state, string in strings.items()}
    widest = max(cut.values(), key=len)
    columns: list[dict[int, tuple[Token, ...]]] = [{} for _ in widest]
    for state, pieces in cut.items():
        slots: list[int] = []
        if len(pieces) == len(widest):
            slots = list(range(len(widest)))
        elif pieces != [()]:
            options = combinations(range(len(widest)), len(pieces))
            slots = list(max(options, key=lambda o: sum(p == widest[i] or (not p and not widest[i]) for p, i in zip(pieces, o, strict=True))))
        for column in columns:
            column[state] = ()
        for piece, slot in zip(pieces, slots, strict=False):
            columns[slot][state] = piece
    return columns


def cut_at_separators(tokens: tuple[Token, ...]) -> list[tuple[Token, ...]]:
    """The runs between separators."""
    pieces: list[list[Token]] = [[]]
    for token in tokens:
        if token == SEPARATOR:
            pieces.append([])
        else:
            pieces[-1].append(token)
    return [tuple(p) for p in pieces]


def split_components(parts: list[Part]) -> tuple[tuple[Part, ...], ...]:
    """Parts between separators; an empty operand is one that a state hides."""
    components: list[list[Part]] = [[]]
    for part in parts:
        if part == SEPARATOR:
            components.append([])
        else:
            components[-1].append(part)
    return tuple(tuple(c) for c in components)


def render(form: Form, word: int) -> list[str]:
    """Tokens that the form predicts for the word."""
    states = {name: choice_state(word, c, form.numbers) for name, c in form.choices.items()}
    groups: list[list[str]] = []
    for component in form.components:
        tokens: list[str] = []
        for part in component:
            pieces: tuple[Token, ...] = (part,) if not isinstance(part, Place) else form.choices[part.choice].states.get(states[part.choice], (("?",),) * 9)[part.index]
            for piece in pieces:
                tokens.append(render_number(form.numbers[piece.number], piece.kind, word).split("(")[0] if isinstance(piece, Hole) else piece)
        groups.append(tokens)
    return comparable([t for g in groups for t in [SEPARATOR, *g]][1:])


def comparable(tokens: tuple[str, ...] | list[str]) -> list[str]:
    """Tokens with the separators of absent operands dropped."""
    result: list[str] = []
    for token in tokens:
        if token == SEPARATOR and (not result or result[-1] == SEPARATOR):
            continue
        result.append(token)
    return result[:-1] if result and result[-1] == SEPARATOR else result
