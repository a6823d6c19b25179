"""Find forms whose text other forms share."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from sassir.encoders.form import Form
from sassir.encoders.notation import print_form
from sassir.encoders.random_words import random_word
from sassir.encoders.table import Table
from sassir.errors import EncodingError

WORDS = 10_000


def mark_ambiguous(arch: str, forms: list[Form]) -> list[Form]:
    """The forms, marked where a random word of theirs decodes to a text that encodes to another word.

    `forms` are in the order in which the encoder tries them. nvdisasm's text does not distinguish such words; the decoder then
    looks at every word of the form, and notes which reading is meant.
    """
    names = [f"{form.mnemonic}.{form.opcode:x}.{i}" for i, form in enumerate(forms)]
    table, rng = Table(arch, {name: print_form(name, form) for name, form in zip(names, forms, strict=True)}), Random(arch)
    found: set[str] = set()
    for word in [*(f.example for f in forms), *(random_word(table, rng) for _ in range(WORDS))]:
        instruction = table.decode(word)
        try:
            same = table.encode(instruction) == word
        except EncodingError:
            continue
        if not same:
            found.add(table.identify(word) or "")
    return [replace(form, ambiguous=name in found) for name, form in zip(names, forms, strict=True)]
