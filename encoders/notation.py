"""The text of the encoding tables: one block a form, its fields from high to low bit.

    form FSETP.20b.1
      word    0x00fe80003f2d0000000060700720b
      text    FSETP<m79><m80><m75>, {P83}, {P86}, <m72><m73>{R31}<m73>, <m63><m62>{R39}<m62>, <m90>{P89}
      90      m90   0= 1=!
      89-87   P89
      79-76   m79   0=.F 1=.LT 2=.EQ …
      104-91  -     0

`{P83}` is a number, `<m79>` a choice (`<m73.1>` its second place). A number's field line says kind, sign, scale and
offset where they are not the plain ones; a choice's lists text by value of its bits; `-` names bits that no text shows,
with the value that ptxas writes; `=` bits that are always so in this form. Conditions stand where a choice has them:
`if I63=0` adds a lowest digit that is 1 when the number's bits have that value.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby

from sassir.encoders.form import Choice, Condition, Form, Hole, Number, Part, Place, Token, gather, opcode_of, scatter

SEPARATOR = ", "
_PLACE = re.compile(r"<(\w+'*)(?:\.(\d+))?>|\{([A-Z]+\d+'*)(?::(\w+))?\}")
_BLANK = "\N{OPEN BOX}"


def print_form(identifier: str, form: Form) -> str:
    """The block of a form."""
    lines = [f"form {identifier}", f"  word    {form.example:#034x}"]
    if form.guard != "P":
        lines.append(f"  guard   {form.guard or 'none'}")
    if form.ambiguous:
        lines.append("  reads   like words of another form")
    lines.append(f"  text    {SEPARATOR.join(''.join(map(_print_part, c)) for c in form.components)}")
    fields: list[tuple[int, str, str]] = []
    for number in form.numbers.values():
        fields.append((number.bits[0], _print_bits(number.bits), f"{number.name} {_print_number(number)}".rstrip()))
    for choice in form.choices.values():
        bits = tuple(s for s in choice.selectors if isinstance(s, int))
        conditions = [f"if {s.number}={s.value:#x}" for s in choice.selectors if isinstance(s, Condition)]
        entries = [f"{state}={';'.join(''.join(map(_print_part, s)) for s in strings)}" for state, strings in sorted(choice.states.items())]
        fields.append((bits[0] if bits else -1, _print_bits(bits) or ".", " ".join([choice.name, *conditions, *entries])))
    for run in runs([b for b, _ in form.fixed]):
        fields.append((run[0], _print_bits(run), f"= {gather(form.fixed_value, run):#x}"))
    for run in runs(form.inert):
        fields.append((run[0], _print_bits(run), f"- {gather(form.default, run):#x}"))
    lines += [f"  {bits:<7} {rest}" for _, bits, rest in sorted(fields, key=lambda f: -f[0])]
    return "\n".join(lines)


def parse_form(block: str) -> Form:
    """The inverse of `print_form`. Raises ValueError on a damaged block."""
    head, *lines = block.splitlines()
    mnemonic = head.split()[1].split(".")[0]
    numbers: dict[str, Number] = {}
    choices: dict[str, Choice] = {}
    fixed: list[tuple[int, int]] = []
    inert: list[int] = []
    default = word = 0
    ambiguous = False
    guard: str | None = "P"
    components: tuple[tuple[Part, ...], ...] = ()
    for line in lines:
        key, _, rest = line.strip().partition(" ")
        rest = rest.strip()
        match key:
            case "word":
                word = int(rest, 16)
            case "reads":
                ambiguous = True
            case "guard":
                guard = None if rest == "none" else rest
            case "text":
                components = tuple(tuple(_parse_parts(c)) for c in rest.split(SEPARATOR))
            case _:
                bits = _parse_bits(key)
                name, *words = rest.split(" ")
                if name == "=":
                    value = scatter(int(words[0], 16), bits)
                    fixed += [(b, value >> b & 1) for b in bits]
                elif name == "-":
                    inert += bits
                    default |= scatter(int(words[0], 16), bits)
                elif "=" in rest:
                    choices[name] = _parse_choice(name, bits, words)
                else:
                    numbers[name] = _parse_number(name, bits, words)
    return Form(mnemonic, opcode_of(word), guard, components, numbers, choices, tuple(fixed), tuple(inert), default, word, ambiguous)


def _print_part(part: Part | Token) -> str:
    if isinstance(part, Place):
        return f"<{part.choice}.{part.slot}>" if part.slot else f"<{part.choice}>"
    if isinstance(part, Hole):
        return f"{{{part.number}}}" if part.kind == _usual_kind(part.number) else f"{{{part.number}:{part.kind}}}"
    return part.replace(" ", _BLANK)


def _usual_kind(name: str) -> str:
    """The kind that a number's name already says."""
    letters = name.rstrip("'").rstrip("0123456789")
    return {"I": "int", "F": "f32"}.get(letters, letters)


def _parse_parts(text: str) -> Iterator[Part]:
    at = 0
    for match in _PLACE.finditer(text):
        if match.start() > at:
            yield text[at : match.start()].replace(_BLANK, " ")
        choice, index, number, kind = match.groups()
        yield Place(choice, int(index or 0)) if choice else Hole(number, kind or _usual_kind(number))
        at = match.end()
    if at < len(text):
        yield text[at:].replace(_BLANK, " ")


def _parse_choice(name: str, bits: tuple[int, ...], words: list[str]) -> Choice:
    conditions: list[Condition] = []
    while words[0] == "if":
        number, _, value = words[1].partition("=")
        conditions.append(Condition(number, int(value, 16)))
        words = words[2:]
    states: dict[int, tuple[tuple[Token, ...], ...]] = {}
    for word in words:
        state, _, strings = word.partition("=")
        states[int(state)] = tuple(tuple(p for p in _parse_parts(s) if not isinstance(p, Place)) for s in strings.split(";"))
    return Choice(name, (*bits, *conditions), states)


def _print_number(number: Number) -> str:
    words = [number.kind] if number.kind != _usual_kind(number.name) else []
    words += ["signed"] if number.signed else []
    words += [f"scale={number.scale}"] if number.scale != 1 else []
    words += [f"offset={number.offset}"] if number.offset else []
    words += [f"not={v:#x}" for v in number.excluded]
    return " ".join(w.replace("=", ":") for w in words)


def _parse_number(name: str, bits: tuple[int, ...], words: list[str]) -> Number:
    number = Number(name, _usual_kind(name), bits)
    for word in words:
        key, _, value = word.partition(":")
        match key:
            case "signed":
                number = number._replace(signed=True)
            case "scale":
                number = number._replace(scale=int(value))
            case "offset":
                number = number._replace(offset=int(value))
            case "not":
                number = number._replace(excluded=(*number.excluded, int(value, 16)))
            case kind:
                number = number._replace(kind=kind)
    return number


def runs(bits: Iterable[int]) -> Iterator[tuple[int, ...]]:
    """Maximal runs of descending bits."""
    for _, run in groupby(enumerate(bits), lambda pair: pair[0] + pair[1]):
        yield tuple([bit for _, bit in run])


def _print_bits(bits: tuple[int, ...]) -> str:
    return ",".join(f"{run[0]}-{run[-1]}" if run[0] != run[-1] else str(run[0]) for run in runs(bits))


def _parse_bits(text: str) -> tuple[int, ...]:
    bits: list[int] = []
    for run in text.split(",") if text != "." else ():
        high, _, low = run.partition("-")
        bits += range(int(high), int(low or high) - 1, -1)
    return tuple(bits)
