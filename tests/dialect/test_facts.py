"""`#sass.facts<…>`: what is written comes back, and what is wrong is refused."""

from __future__ import annotations

import pytest

from sassir.dialect.facts import FactsAttr, KernelFacts, Pointer, WordRange, parse_facts
from sassir.errors import TranslationError


@pytest.mark.parametrize(
    "facts",
    [
        KernelFacts(),
        KernelFacts(block=(256, 1, 1), grid=(2112, 1, 1), shared=0, noalias=True),
        KernelFacts(words=((0x210, 0x1000), (0x214, 0xFFFFFFFF)), contract=True, ftz=True, approx=True),
        KernelFacts(ranges=(WordRange(0x228, 1, 4096), WordRange(0x22C, -(2**31), 2**31 - 1))),
        KernelFacts(pointers=(Pointer(0x210, 256, 0x4000), Pointer(0x218, 16))),
    ],
    ids=str,
)
def test_what_is_printed_is_read_again(facts: KernelFacts) -> None:
    text = str(FactsAttr(facts)).removeprefix("#sass.facts<").removesuffix(">")
    assert parse_facts(text, "here") == facts


def test_a_negative_word_is_the_one_with_its_bits() -> None:
    assert parse_facts("word 0x228 = -1", "here").words == ((0x228, 0xFFFFFFFF),)


def test_a_range_is_written_beside_exact_words() -> None:
    facts = KernelFacts(words=((0x210, 0x1000),), ranges=(WordRange(0x228, -1, 4096),))
    assert str(FactsAttr(facts)) == "#sass.facts<word 0x210 = 0x1000, word 0x228 in [-1, 4096]>"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("word 0x228 in [5, 4]", "word 0x228 in [5, 4]; expected the least and the largest number of 32 bits, signed"),
        ("word 0x228 in [1]", "expected the least and the largest"),
        ("word 0x228 in [0, 2147483648]", "expected the least and the largest"),
        ("word 0x228", "Expected '='"),
        ("word 0x228 = 1, word 0x228 in [1, 2]", "word 0x228 is stated twice"),
        ("pointer 0x210 align 0 bytes 16", "align 0; no address is a multiple of 0 bytes"),
        ("noalias> #x", "expected nothing more"),
        ("colour", "here:1"),
    ],
)
def test_what_is_wrong_is_refused(text: str, problem: str) -> None:
    with pytest.raises(TranslationError) as error:
        parse_facts(text, "here")
    assert problem in str(error.value)


@pytest.mark.parametrize(("word", "number"), [(0, 0), (0x7FFFFFFF, 2**31 - 1), (0x80000000, -(2**31)), (0xFFFFFFFF, -1), (-1, -1)])
def test_an_exact_word_is_a_range_of_one_signed_number(word: int, number: int) -> None:
    assert KernelFacts(words=((0x228, word),)).word(0x228) == WordRange(0x228, number, number)
    assert KernelFacts(words=((0x228, word),)).word(0x22C) is None
