"""Mine the encoding forms of an architecture from nvdisasm.

Words of every opcode are tried, and the words of given cubins; nvdisasm sorts them into its classes. Each class is
learned by a `Learner`, all in step, so that a thousand of them share one call. A word that turns out to belong to a
class not met before starts another learner.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, replace

from sassir.encoders.form import Form
from sassir.encoders.mining.agree import HIDES_DESCRIPTOR
from sassir.encoders.mining.assemble import BITS
from sassir.encoders.mining.experiment import CONTROL, PREDICATE_TRUE, Answer, neutral
from sassir.encoders.mining.learn import Learner
from sassir.encoders.mining.oracle import BATCH, WORD_BYTES, Oracle
from sassir.encoders.mining.text import split_guard, tokenize

OPCODES = 1 << 13
SEEDS = 48
_ENCODING = (1 << 105) - 1
_SHOW_DESCRIPTOR = 1 << 101
"""On sm_80 to sm_89 nvdisasm prints the memory descriptor of an access only where this bit, which nothing else reads, is set."""


@dataclass
class Mined:
    """What was found: forms, how many words of the given files each describes, and what could not be learned."""

    forms: list[Form]
    uses: list[int]
    problems: dict[str, list[str]]
    words: int


def sweep(rng: random.Random) -> list[int]:
    """Words of all 13-bit opcodes with plain registers, each modifier bit alone, and random fillings."""
    plain = 4 << 16 | 8 << 24 | 12 << 32 | 16 << 64
    fills = [0, 255 << 16 | 255 << 24 | 255 << 32 | 255 << 64, plain, plain | 7 << 81 | 7 << 84 | 7 << 87]
    fills += [plain | 1 << bit for bit in range(72, 105)]
    fills += [plain | rng.getrandbits(33) << 72 for _ in range(12)]
    fills += [rng.getrandbits(89) << 16 for _ in range(12)]
    return [op & 0xFFF | (fill & ~(1 << 91)) | op >> 12 << 91 | CONTROL | PREDICATE_TRUE for op in range(OPCODES) for fill in fills]


def neighbours(forms: Iterable[Form], rng: random.Random) -> list[int]:
    """Words a few bits away from each form's example: some classes have words that no sweep of the opcodes meets."""
    words: list[int] = []
    for form in forms:
        for flips in (1,) * 40 + (2,) * 20 + (3,) * 20:
            words.append(form.example ^ sum(1 << bit for bit in rng.sample(BITS, flips)))
    return words


class Classifier:
    """nvdisasm's answers for one architecture; on sm_80 to sm_89 with the descriptor that its text usually hides."""

    def __init__(self, arch: str) -> None:
        self.oracle = Oracle(arch)
        self.hides_descriptor = arch in HIDES_DESCRIPTOR

    def ask(self, words: list[int]) -> list[tuple[str, Answer] | None]:
        """Class and answer of each word; None where nvdisasm rejects it or prints nothing."""
        texts = self.oracle.texts(words)
        valid = [i for i, text in enumerate(texts) if text]
        classes = dict(zip(valid, self.oracle.classes([words[i] for i in valid]), strict=True))
        if self.hides_descriptor:
            hidden = [i for i, name in classes.items() if name and "desc" in name]
            for start in range(0, len(hidden), BATCH):
                part = hidden[start : start + BATCH]
                for i, shown in zip(part, self.oracle.texts([words[i] | _SHOW_DESCRIPTOR for i in part]), strict=True):
                    texts[i] = shown
        result: list[tuple[str, Answer] | None] = []
        for i, text in enumerate(texts):
            name = classes.get(i)
            if not text or not name:
                result.append(None)
                continue
            guard, body = split_guard(text)
            result.append((name, Answer(guard, tuple(tokenize(body)), WORD_BYTES * (i % BATCH))))
        return result


def mine(arch: str, corpus: Iterable[int], report: Callable[[str], None]) -> Mined:
    """Learn every form of `arch`. `corpus` are words of real code: they seed the search and give inert bits their values."""
    classifier = Classifier(arch)
    uniform_zero = 255 if int(arch[3:].rstrip("af")) >= 100 else 63
    seeds: dict[str, dict[int, None]] = {}
    distinct = Counter(word & _ENCODING for word in corpus)
    usage: dict[str, Counter[int]] = {}

    def collect(words: list[int], answers: list[tuple[str, Answer] | None]) -> None:
        for word, answer in zip(words, answers, strict=True):
            if answer and len(known := seeds.setdefault(answer[0], {})) < SEEDS:
                known[word] = None

    probes = [neutral(word) for word in distinct]
    answers = classifier.ask(probes)
    collect(probes, answers)
    for (word, count), answer in zip(distinct.items(), answers, strict=True):
        if answer:
            usage.setdefault(answer[0], Counter())[word] += count
    words = sweep(random.Random(arch))
    collect(words, classifier.ask(words))
    report(f"{len(distinct)} words of the corpus and {len(words)} of the sweep are in {len(seeds)} classes")
    learners, forms = _learn(classifier, seeds, uniform_zero, collect, report)
    names = sorted(name for name, form in forms.items() if form)
    found = [_with_defaults(form, usage.get(name, Counter())) for name in names if (form := forms[name])]
    found = _proved_defaults(classifier, _share_defaults(found, [name in usage for name in names]))
    problems = {name: learner.problems for name, learner in learners.items() if learner.problems}
    return Mined(found, [usage.get(name, Counter()).total() for name in names], problems, classifier.oracle.words)


def _learn(
    classifier: Classifier,
    seeds: dict[str, dict[int, None]],
    uniform_zero: int,
    collect: Callable[[list[int], list[tuple[str, Answer] | None]], None],
    report: Callable[[str], None],
) -> tuple[dict[str, Learner], dict[str, Form | None]]:
    """Run all learners in step; start new ones as new classes turn up."""
    learners: dict[str, Learner] = {}
    forms: dict[str, Form | None] = {}
    running: dict[str, Generator[list[int], list[Answer | None], Form | None]] = {}
    waiting: dict[str, list[int]] = {}
    explored: set[str] = set()
    rng = random.Random(len(seeds))
    turn = 0
    while True:
        for name in sorted(seeds.keys() - learners.keys()):
            learners[name] = Learner(list(seeds[name]), uniform_zero, random.Random(name))
            running[name] = learners[name].run()
            waiting[name] = next(running[name])
        if not waiting:
            around = neighbours([f for n, f in forms.items() if f and n not in explored], rng)
            explored |= forms.keys()
            collect(around, classifier.ask(around))
            if seeds.keys() <= learners.keys():
                return learners, forms
            continue
        words = [word for question in waiting.values() for word in question]
        answers = classifier.ask(words)
        collect(words, answers)
        at, following = 0, dict[str, list[int]]()
        for name, question in waiting.items():
            replies = [a[1] if a and a[0] == name else None for a in answers[at : at + len(question)]]
            at += len(question)
            try:
                following[name] = running[name].send(replies)
            except StopIteration as done:
                forms[name] = done.value
        waiting = following
        turn += 1
        if turn % 5 == 0:
            report(f"round {turn}: {len(waiting)} of {len(learners)} classes to go, {classifier.oracle.words} words asked")


def _with_defaults(form: Form, usage: Counter[int]) -> Form:
    """The form with its inert bits as most words of the corpus have them."""
    votes = Counter[int]()
    for word, count in usage.items():
        votes[word & form.inert_mask] += count
    return replace(form, default=votes.most_common(1)[0][0] if votes else 0)


def _proved_defaults(classifier: Classifier, forms: list[Form]) -> list[Form]:
    """Where a form's example reads differently with the default bits, the default is the example's own: no text shows them, but
    some of them can hide other text."""
    examples = classifier.ask([f.example for f in forms])
    plain = classifier.ask([f.example & ~f.inert_mask | f.default for f in forms])
    same = [bool(a and b and a[0] == b[0] and a[1].tokens == b[1].tokens) for a, b in zip(examples, plain, strict=True)]
    return [f if proved or f.relative else replace(f, default=f.example & f.inert_mask) for f, proved in zip(forms, same, strict=True)]


def _share_defaults(forms: list[Form], seen: list[bool]) -> list[Form]:
    """A form that the corpus does not use takes each inert bit as the used forms of its mnemonic have it."""
    votes: dict[tuple[str, int], Counter[int]] = {}
    for form, used in zip(forms, seen, strict=True):
        for bit in form.inert if used else ():
            votes.setdefault((form.mnemonic, bit), Counter())[form.default >> bit & 1] += 1
    result: list[Form] = []
    for form, used in zip(forms, seen, strict=True):
        if not used:
            bits = [b for b in form.inert if votes.get((form.mnemonic, b), Counter({0: 1})).most_common(1)[0][0]]
            form = replace(form, default=sum(1 << b for b in bits))
        result.append(form)
    return result


