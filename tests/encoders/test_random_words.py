"""Random valid words, 10,000 an architecture: word to text to word, and nvdisasm agrees on the text."""

from random import Random

import pytest

from sassir.asm.parse import parse_instruction
from sassir.encoders import table
from sassir.encoders.library import CHAIN
from sassir.encoders.mining.agree import agrees
from sassir.encoders.mining.oracle import BATCH, Oracle
from sassir.encoders.random_words import random_word

WORDS = 10_000


@pytest.mark.parametrize("arch", CHAIN)
def test_random_words(arch: str, oracle: type[Oracle]) -> None:
    coder, rng = table(arch), Random(arch)
    drawn = list(dict.fromkeys(random_word(coder, rng) for _ in range(2 * WORDS)))
    texts = oracle(arch).texts(drawn)
    valid = [(i, w, t) for i, (w, t) in enumerate(zip(drawn, texts, strict=True)) if t]
    assert len(valid) >= WORDS, "the tables call too much valid that nvdisasm refuses"
    for i, word, text in valid[:WORDS]:
        instruction = coder.decode(word)
        assert agrees(instruction, text, 16 * (i % BATCH), arch), f"{word:#034x}: {instruction.text} is {text}"
        again = parse_instruction(f"{instruction.control} {instruction.text}")
        assert coder.encode(again) == word, f"{word:#034x}: {instruction.text}"
