"""Listings: whose they are, and what their lines say. `sassir.asm.assemble` makes a program of one."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterable
from functools import cache
from typing import Any, NamedTuple

import zstandard
from lark import Lark, Token

from sassir.asm.parse import Statement, StatementReader, parse, refusal
from sassir.errors import ListingError
from sassir.grammars import load

OWN_LABEL = re.compile(r"\.L\d+")
"""Labels that the printer made up for branch targets; they do not outlive the listing."""

_OWN = re.compile(r"\s*(//[^\n]*\s*)*\.arch\b")
_CUOBJDUMP = re.compile(r"^\s*(code for sm_|Fatbin (elf|ptx) code:|Function\s*:)", re.MULTILINE)
_CODE_SECTION = re.compile(r"\.section\s+\.text\.([^,\n]*).*|Function\s*:\s*(\S*)\s*")
_ARCH_FLAG = re.compile(r"(?<!VIRTUAL_SM\()EF_CUDA_SM(\d+)")
_OLD_SM = re.compile(r"(?:code for\s+sm_|\.target\s+sm_|(?<!VIRTUAL_SM\()EF_CUDA_SM)([2-6]\d)\b")


class Code(NamedTuple):
    """A line of code."""

    statement: Statement
    address: int | None
    """Where the instruction is, or in sassir's listing, where it was in the original file."""
    word: int | None
    """Its encoding, where the listing has it."""


class Label(NamedTuple):
    """A name for the next line of code."""

    name: str
    line: int


class Section(NamedTuple):
    """Code of one section of a file."""

    name: str
    """Without `.text.`."""
    number: int | None
    """ELF section index; sassir's listing has it."""
    lines: tuple[Code | Label, ...]

    @property
    def code(self) -> tuple[Code, ...]:
        """The lines that are code."""
        return tuple([line for line in self.lines if isinstance(line, Code)])


class Listing(NamedTuple):
    """A listing for one architecture."""

    where: str
    text: str
    arch: str
    sections: tuple[Section, ...]
    own: bool
    """It is sassir's, whose text says all that is in the words; NVIDIA's tools leave things out."""
    container: bytes | None
    """The file that the code came from; only sassir's listing carries it."""

    def refusal(self, message: str, statement: Statement) -> ListingError:
        """The error that names a line of this listing."""
        return refusal(message, self.text, self.where, statement.line, statement.column)


class _Arch(NamedTuple):
    """What follows is for this architecture."""

    name: str


class _Heading(NamedTuple):
    """What follows is in this section; None: one that holds no code."""

    name: str | None


_Item = _Arch | _Heading | Label | Code | None


class _ListingReader(StatementReader):
    """Callbacks of the listing grammars."""

    def ADDRESS(self, token: Token) -> int:  # noqa: N802
        return int(token.strip("/* \t"), 16)

    def INDEX(self, token: Token) -> int:  # noqa: N802
        return int(token.partition("=")[2])

    def SYMBOL(self, token: str) -> str:  # noqa: N802
        return json.loads(token) if token.startswith('"') else str(token)

    def LABEL(self, token: Token) -> Label:  # noqa: N802
        return Label(self.SYMBOL(token[:-1]), token.line or 0)

    def TARGET(self, token: Token) -> _Arch:  # noqa: N802
        return _Arch(token.split()[-1])

    def FLAGS(self, token: Token) -> _Arch | None:  # noqa: N802
        match = _ARCH_FLAG.search(token)
        return _Arch(f"sm_{match[1]}{'a' if 'EF_CUDA_ACCELERATORS' in token else ''}") if match else None

    def SECTION(self, token: Token) -> _Heading:  # noqa: N802
        match = _CODE_SECTION.fullmatch(token)
        return _Heading(match[1] or match[2]) if match else _Heading(None)

    HALF, ARCH = ADDRESS, TARGET

    def line(self, parts: list[Any]) -> Code:
        control, address, statement, *halves = parts
        word = halves[1] << 64 | halves[0] if halves and halves[0] is not None else None
        return Code(statement._replace(control=control) if control else statement, address, word)

    def function(self, parts: list[Any]) -> Section:
        name, index, *lines = parts
        return Section(name, index, tuple(lines))

    def own(self, parts: list[Any]) -> tuple[_Arch, tuple[Section, ...], Token | None]:
        arch, *sections, container = parts
        return arch, tuple(sections), container

    def listing(self, parts: list[Any]) -> list[_Item]:
        return parts


@cache
def _parser(name: str, start: str) -> Lark:
    return load("instruction", "line", name, start=start, transformer=_ListingReader())


def read_listing(text: str, where: str = "<listing>", arch: str | None = None) -> Listing:
    """Read what `nvdisasm -c` (with or without -hex), `cuobjdump -sass`, CuAssembler or sassir print.

    `arch` chooses one of several architectures, or says which it is when the listing does not. Raises ListingError, with line and
    column, for text that is no such listing, and when the architecture is unknown, not the one asked for, or not one of several.
    """
    if old := _OLD_SM.search(text):
        remedy = "sassir reads sm_75 and later; list only those (cuobjdump -sass -arch sm_80)"
        raise refusal(f"sm_{old[1]} has another instruction format; {remedy}", text, where, *_position(text, old.start()))
    if _OWN.match(text):
        found, sections, trailer = parse(_parser("sassir", "own"), text, where)
        container = _container(trailer, text, where) if trailer else None
        return Listing(where, text, _choose([found.name], arch, where), sections, True, container)
    name = "cuobjdump" if _CUOBJDUMP.search(text) else "nvdisasm"
    found = _by_arch(parse(_parser(name, "listing"), text, where))
    if not any(found.values()):
        raise ListingError(f"{where}: no instructions in it; expected the output of nvdisasm -c, of cuobjdump -sass, or of sassir")
    stated = [a for a in found if a]
    chosen = _choose(stated, arch, where) if stated else arch
    if chosen is None:
        raise ListingError(f"{where}: the listing does not say its architecture; put a line such as `.target sm_90` first, or give --arch")
    return Listing(where, text, chosen, tuple(found[chosen if stated else ""]), False, None)


def _choose(found: list[str], wanted: str | None, where: str) -> str:
    if wanted not in (None, *found):
        raise ListingError(f"{where}: no code for {wanted} in it; it has {', '.join(found)}")
    if wanted is None and len(found) > 1:
        raise ListingError(f"{where}: code for several architectures; choose one of {', '.join(found)} with --arch")
    return wanted or found[0]


def _by_arch(items: Iterable[_Item]) -> dict[str, list[Section]]:
    """The code sections of each architecture; `""` where the listing does not say it."""
    found: dict[str, list[Section]] = {}
    arch, name, lines = "", "", list[Code | Label]()

    def finish() -> None:
        if name is not None and any(isinstance(line, Code) for line in lines):
            first = next((line.name for line in lines if isinstance(line, Label)), "")
            found.setdefault(arch, []).append(Section(name or first, None, tuple(lines)))
        lines.clear()

    for item in items:
        match item:
            case _Arch():
                finish()
                arch = item.name
            case _Heading():
                finish()
                name = item.name
            case Label() if item.name.startswith(".text."):
                pass  # the section's own symbol
            case Label() | Code():
                lines.append(item)
            case None:
                pass
    finish()
    return found


def _container(trailer: Token, text: str, where: str) -> bytes:
    try:
        return zstandard.ZstdDecompressor().decompress(base64.b64decode("".join(trailer.split()[1:]), validate=True))
    except (binascii.Error, zstandard.ZstdError) as error:
        message = f"the file behind .container is damaged ({error}); take that part from the listing as sassir wrote it"
        raise refusal(message, text, where, trailer.line or 0, trailer.column or 0) from error


def _position(text: str, at: int) -> tuple[int, int]:
    return text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
