"""A form compiled for speed: each component of the text becomes two dictionaries, filled as values are met.

Decoding maps the word bits of a component to its text; encoding maps the text back to candidates of word bits. Both are
pure functions of the form, so their results are kept: real code uses few distinct operands.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sassir.asm.control import SCOREBOARDS
from sassir.asm.operand import Operand
from sassir.encoders.floats import WIDTHS, format_float, parse_float
from sassir.encoders.form import Choice, Condition, Form, Hole, Number, Part, Place, Token, choice_state, gather, scatter

Bits = tuple[int, int]
"""(value, mask): word bits that a piece of text decides, in place, and which bits those are."""

_INTEGER = re.compile(r"-?0x[0-9a-f]+")
_DISPLACEMENT = re.compile(r"\.([-+]0x[0-9a-f]+)")
_FLOAT = re.compile(r"[-+][QS]NAN\(0x[0-9a-f]+\)|[-+]INF|-?\d+(?:\.\d+)?(?:e[-+]\d+)?")
_REGISTER = re.compile(r"(UR|UP|SB|R|P|B|INVALID)(\d+|Z|T)")
ABSENT = Operand.of("")
"""An operand that the form hides."""
FOREIGN = Operand.of("<not of this form>")


class Component:
    """The mnemonic or one operand of a form."""

    def __init__(self, form: Form, parts: tuple[Part, ...]) -> None:
        self.form, self.parts = form, parts
        self.mask = self._bits()
        self.operands: dict[int, Operand] = {}
        self.encodings: dict[object, tuple[Bits, ...]] = {}

    def _bits(self) -> int:
        """All word bits that the text depends on."""
        mask = 0
        names: set[str] = set()
        for part in self.parts:
            if isinstance(part, Hole):
                names.add(part.number)
            elif isinstance(part, Place):
                choice = self.form.choices[part.choice]
                for selector in choice.selectors:
                    if isinstance(selector, Condition):
                        names.add(selector.number)
                    else:
                        mask |= 1 << selector
                names |= {t.number for strings in choice.states.values() for t in strings[part.slot] if isinstance(t, Hole)}
        for name in names:
            mask |= sum(1 << b for b in self.form.numbers[name].bits)
        return mask

    # -- word to text ---------------------------------------------------------------------------------------------

    def operand(self, word: int) -> Operand:
        """The operand; ABSENT when the form hides it in this word, FOREIGN when the word is not of this form."""
        key = word & self.mask
        found = self.operands.get(key)
        if found is None:
            text = self.text(key)
            found = self.operands[key] = FOREIGN if text is None else Operand.parse(text)
        return found

    def text(self, word: int) -> str | None:
        """The text of the component; None when the word is not of this form."""
        pieces: list[str] = []
        for token in self._tokens(word):
            if token is None:
                return None
            if isinstance(token, str):
                pieces.append(token)
                continue
            number = self.form.numbers[token.number]
            if gather(word, number.bits) in number.excluded:
                return None
            pieces.append(show(number, token.kind, word))
        return "".join(pieces)

    def _tokens(self, word: int) -> Iterator[Token | None]:
        for part in self.parts:
            if isinstance(part, Place):
                choice = self.form.choices[part.choice]
                strings = choice.states.get(choice_state(word, choice, self.form.numbers))
                if strings is None:
                    yield None
                    return
                yield from strings[part.slot]
            else:
                yield part

    # -- text to word ---------------------------------------------------------------------------------------------

    def encode(self, key: object, text: str) -> tuple[Bits, ...]:
        """Every way to spell `text` (registers filled in), the preferred first; empty when this form cannot."""
        found = self.encodings.get(key)
        if found is None:
            unique = dict.fromkeys((bits, mask) for bits, mask in self._match(0, text, 0, 0) if self._agrees(bits, text))
            found = self.encodings[key] = tuple(unique)
        return found

    def _agrees(self, bits: int, text: str) -> bool:
        """Special values have their own text: what was matched must print the same again."""
        return self.text(bits) == text

    def _match(self, index: int, text: str, bits: int, mask: int) -> Iterator[tuple[int, int]]:
        if index == len(self.parts):
            if not text:
                yield bits, mask
            return
        part = self.parts[index]
        if isinstance(part, Place):
            choice = self.form.choices[part.choice]
            for state, strings in choice.states.items():
                value, decides = state_bits(choice, state, self.form.numbers)
                if not (bits ^ value) & mask & decides:
                    yield from self._match_tokens(index, strings[part.slot], text, bits | value, mask | decides)
        else:
            yield from self._match_tokens(index, (part,), text, bits, mask)

    def _match_tokens(self, index: int, tokens: tuple[Token, ...], text: str, bits: int, mask: int) -> Iterator[tuple[int, int]]:
        for i, token in enumerate(tokens):
            if isinstance(token, str):
                if not text.startswith(token):
                    return
                text = text[len(token) :]
                continue
            for length, raw in read(self.form.numbers[token.number], token.kind, text):
                number = self.form.numbers[token.number]
                field, value = scatter((1 << len(number.bits)) - 1, number.bits), scatter(raw, number.bits)
                if not (bits ^ value) & mask & field:
                    yield from self._match_tokens(index, tokens[i + 1 :], text[length:], bits | value, mask | field)
            return
        yield from self._match(index + 1, text, bits, mask)


def state_bits(choice: Choice, state: int, numbers: dict[str, Number]) -> Bits:
    """The word bits that a state of a choice decides. A condition that does not hold decides nothing."""
    mask = value = 0
    for i, selector in enumerate(reversed(choice.selectors)):
        digit = state >> i & 1
        if isinstance(selector, Condition):
            if digit:
                bits = numbers[selector.number].bits
                mask |= scatter((1 << len(bits)) - 1, bits)
                value |= scatter(selector.value, bits)
        else:
            mask |= 1 << selector
            value |= digit << selector
    return value, mask


def show(number: Number, kind: str, word: int) -> str:
    """The text of a number in the word."""
    raw = gather(word, number.bits)
    if kind in WIDTHS:
        return format_float(kind, raw)
    if kind in ("int", "pc"):
        if number.signed and raw >> len(number.bits) - 1:
            raw -= 1 << len(number.bits)
        value = raw * number.scale + number.offset
        return f"{value:#x}" if kind == "int" else f".{value:+#x}"
    index = number.offset + number.scale * raw
    if index == (1 << len(number.bits)) - 1 and kind in ("R", "UR", "P", "UP"):
        return kind + ("Z" if kind.endswith("R") else "T")
    if kind == "SB" and index >= SCOREBOARDS:
        return f"INVALID{index}"
    return f"{kind}{index}"


def read(number: Number, kind: str, text: str) -> Iterator[tuple[int, int]]:
    """(length, bits) of the number that `text` starts with, if it is one of this kind that the bits can hold."""
    width = len(number.bits)
    if kind in WIDTHS:
        if (match := _FLOAT.match(text)) and (raw := parse_float(kind, match[0])) is not None:
            yield match.end(), raw
        return
    if kind in ("int", "pc"):
        match = (_INTEGER if kind == "int" else _DISPLACEMENT).match(text)
        if match is None:
            return
        value, remainder = divmod(int(match[1] if kind == "pc" else match[0], 16) - number.offset, number.scale)
        low = -(1 << width - 1) if number.signed else 0
        if remainder == 0 and low <= value < low + (1 << width):
            yield match.end(), value & (1 << width) - 1
        return
    match = _REGISTER.match(text)
    if match is None or match[1] not in (kind, "INVALID" if kind == "SB" else kind):
        return
    full = (1 << width) - 1
    index = int(match[2]) if match[2].isdigit() else full
    raw = (index - number.offset) * number.scale
    if 0 <= raw <= full and show(number, kind, scatter(raw, number.bits)) == match[0]:
        yield match.end(), raw
