"""The table files, and which architecture reads which.

A file holds the forms of one architecture as their difference from the file it extends: `extends sm_80`, `drop ID` for
a form that is gone, and the blocks of forms that are new or different.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from sassir.encoders.form import Form
from sassir.encoders.notation import print_form
from sassir.encoders.table import Table
from sassir.errors import EncodingError

CHAIN = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120")
"""Architectures with a table of their own, in order of age: each file extends its predecessor's."""

_TABLE_OF = {"87": "86", "101": "100", "103": "100", "110": "100", "121": "120"}
ARCHITECTURES = tuple(sorted((f"sm_{n}" for n in (*(a[3:] for a in CHAIN), *_TABLE_OF)), key=lambda a: int(a[3:])))
"""Every architecture there is a table for; the suffixes `a` and `f` change no encoding."""


def _base(arch: str) -> str:
    number = arch.removeprefix("sm_").rstrip("af")
    return f"sm_{_TABLE_OF.get(number, number)}"


def has_table(arch: str) -> bool:
    """There is an encoding table for the architecture."""
    return _base(arch) in CHAIN


def base_architecture(arch: str) -> str:
    """The architecture whose table `arch` uses: sm_90 for sm_90a. Raises EncodingError when there is none."""
    if not has_table(arch):
        raise EncodingError(f"no encoding table for {arch}; there are tables for {', '.join(ARCHITECTURES)}")
    return _base(arch)


def table(arch: str, where: str | None = None) -> Table:
    """Encoder and decoder of an architecture such as `sm_90a`. Raises EncodingError, with the file `where`, when there is no table."""
    try:
        return _load(base_architecture(arch))
    except EncodingError as error:
        if where is None:
            raise
        raise error.at(where) from error


@cache
def _load(base: str) -> Table:
    return Table(base, blocks(base))


@cache
def blocks(base: str) -> dict[str, str]:
    """Identifier and text of every form, in the order of the files."""
    text = files("sassir.encoders.tables").joinpath(f"{base}.txt").read_text("utf-8")
    head, *forms = text.split("\n\nform ")
    result: dict[str, str] = {}
    for line in head.splitlines():
        word, _, rest = line.partition(" ")
        if word == "extends":
            result |= blocks(rest)
        elif word == "drop":
            del result[rest]
    for body in forms:
        result[body.partition("\n")[0]] = "form " + body.rstrip("\n")
    return result


def print_table(arch: str, forms: list[Form], parent: dict[str, str] | None, evidence: list[str]) -> str:
    """The table file of `arch`: `forms`, in the order in which the encoder tries them, as a difference from `parent`."""
    old = {_body(block): identifier for identifier, block in (parent or {}).items()}
    ids: dict[int, str] = {}
    for i, form in enumerate(forms):
        same = old.get(_body(print_form("", form)))
        if same and _stem(form) == same.rpartition(".")[0]:
            ids[i] = same
    taken = set(ids.values())
    added: list[str] = []
    for i, form in enumerate(forms):
        if i in ids:
            continue
        k = 1
        while f"{_stem(form)}.{k}" in taken:
            k += 1
        taken.add(f"{_stem(form)}.{k}")
        added.append(print_form(f"{_stem(form)}.{k}", form))
    head = [f"# Encoding forms of {arch}. Made by `sassir mine-encodings`; do not edit. Notation: encoders/notation.py."]
    head += [f"# {line}" for line in evidence]
    if parent is not None:
        head.append(f"extends {CHAIN[CHAIN.index(arch) - 1]}")
        head += [f"drop {identifier}" for identifier in parent if identifier not in taken]
    return "\n\n".join(["\n".join(head), *added]) + "\n"


def _stem(form: Form) -> str:
    return f"{form.mnemonic}.{form.opcode:x}"


def _body(block: str) -> str:
    """What makes two forms the same: all but identifier and example."""
    return "\n".join(line for line in block.splitlines()[1:] if not line.startswith("  word"))
