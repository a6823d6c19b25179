"""What is known about the launches of a kernel: `#sass.facts<…>`, and which of it a pass relied on.

    #sass.facts<block = [256, 1, 1], grid = [2112, 1, 1], shared = 0, word 0x210 = 0x1000, pointer 0x218 align 256 bytes 0x4000, noalias>
    #sass.facts<word 0x228 in [1, 4096], pointer 0x218 align 16>

Offsets are those of constant bank 0, where a parameter lies. Facts hold for every launch that the kernel is used for; who
states them has to make sure of that, or to test them at each launch and run the original where one fails.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.ir import Attribute, Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import ParseError
from xdsl.utils.hints import isa

from sassir.dialect.operations import KernelOp
from sassir.errors import TranslationError

Dim3 = tuple[int, int, int]
SMALLEST, LARGEST = -(1 << 31), (1 << 31) - 1
"""Of the signed numbers of 32 bits."""
FACTS = "sass.facts"
USED = "sass.used_facts"


class Pointer(NamedTuple):
    """A parameter that is the address of a buffer in global memory."""

    offset: int
    """Where in constant bank 0."""
    align: int
    """The address is a multiple of this many bytes."""
    nbytes: int | None = None
    """The kernel accesses nothing beyond this many bytes from the address; None: not known."""


class WordRange(NamedTuple):
    """A 32-bit word of the parameters that is, as a signed number, one from `low` to `high`."""

    offset: int
    """Where in constant bank 0."""
    low: int
    high: int

    @property
    def use(self) -> str:
        """How a use of it is recorded; see `record_use`."""
        return f"range {self.offset:#x}"

    def __str__(self) -> str:
        return f"[{self.low}, {self.high}]"


@dataclass(frozen=True)
class KernelFacts:
    """Facts about the launches of one kernel. What is absent is not known."""

    block: Dim3 | None = None
    """Threads of a block."""
    grid: Dim3 | None = None
    """Blocks of the grid."""
    shared: int | None = None
    """Bytes of dynamic shared memory."""
    words: tuple[tuple[int, int], ...] = ()
    """Byte offset in constant bank 0 and the 32-bit word there, of parameters passed by value."""
    ranges: tuple[WordRange, ...] = ()
    """Of words that are not known exactly."""
    pointers: tuple[Pointer, ...] = ()
    noalias: bool = False
    """The buffers of different pointer parameters do not overlap."""
    contract: bool = False
    """A product and a sum may be rounded once."""
    ftz: bool = False
    """Denormals may become zero."""
    approx: bool = False
    """Division, square root and elementary functions may be the hardware's approximations."""

    def word(self, offset: int) -> WordRange | None:
        """What the word at `offset` can be; None if there is no fact about it."""
        for place, value in self.words:
            if place == offset:
                number = (value - SMALLEST & 0xFFFFFFFF) + SMALLEST
                return WordRange(offset, number, number)
        return next((known for known in self.ranges if known.offset == offset), None)


FLAGS = ("noalias", "contract", "ftz", "approx")
"""The facts that hold or are not known."""


@irdl_attr_definition
class FactsAttr(Data[KernelFacts]):
    """`#sass.facts<block = [256, 1, 1], noalias>`."""

    name = "sass.facts"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> KernelFacts:
        flags: set[str] = set()
        dimensions: dict[str, Dim3] = {}
        shared: list[int] = []
        words: list[tuple[int, int]] = []
        ranges: list[WordRange] = []
        pointers: list[Pointer] = []

        def item() -> None:
            key = parser.parse_keyword_in((*FLAGS, "block", "grid", "shared", "word", "pointer"))
            if key in FLAGS:
                flags.add(key)
            elif key == "shared":
                parser.parse_punctuation("=")
                shared.append(parser.parse_integer())
            elif key == "word":
                offset = parser.parse_integer()
                if parser.parse_optional_keyword("in"):
                    ranges.append(_parse_range(parser, offset))
                else:
                    parser.parse_punctuation("=")
                    words.append((offset, parser.parse_integer() & 0xFFFFFFFF))
            elif key == "pointer":
                offset = parser.parse_integer()
                parser.parse_keyword("align")
                align = parser.parse_integer(allow_negative=False)
                if not align:
                    parser.raise_error(f"pointer {offset:#x} align 0; no address is a multiple of 0 bytes")
                sized = parser.parse_optional_keyword("bytes")
                pointers.append(Pointer(offset, align, parser.parse_integer() if sized else None))
            else:
                parser.parse_punctuation("=")
                sizes = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
                if len(sizes) != 3:
                    parser.raise_error(f"{key} has {len(sizes)} sizes; expected three")
                dimensions[key] = (sizes[0], sizes[1], sizes[2])

        parser.parse_comma_separated_list(parser.Delimiter.ANGLE, item)
        offsets = sorted([place for place, *_ in (*words, *ranges)])
        if twice := [a for a, b in pairwise(offsets) if a == b]:
            parser.raise_error(f"word {twice[0]:#x} is stated twice")
        return KernelFacts(
            dimensions.get("block"),
            dimensions.get("grid"),
            shared[0] if shared else None,
            tuple(words),
            tuple(ranges),
            tuple(pointers),
            *[flag in flags for flag in FLAGS],
        )

    def print_parameter(self, printer: Printer) -> None:
        facts = self.data
        parts = [f"{key} = {list(sizes)}" for key, sizes in (("block", facts.block), ("grid", facts.grid)) if sizes is not None]
        parts += [f"shared = {facts.shared}"] if facts.shared is not None else []
        parts += [f"word {offset:#x} = {value:#x}" for offset, value in facts.words]
        parts += [f"word {known.offset:#x} in {known}" for known in facts.ranges]
        sizes = {p: "" if p.nbytes is None else f" bytes {p.nbytes:#x}" for p in facts.pointers}
        parts += [f"pointer {p.offset:#x} align {p.align}{size}" for p, size in sizes.items()]
        parts += [flag for flag in FLAGS if getattr(facts, flag)]
        printer.print_string(f"<{', '.join(parts)}>")


def _parse_range(parser: AttrParser, offset: int) -> WordRange:
    """`[low, high]`, behind `word 0x228 in`."""
    ends = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
    if len(ends) != 2 or not SMALLEST <= ends[0] <= ends[1] <= LARGEST:
        parser.raise_error(f"word {offset:#x} in {ends}; expected the least and the largest number of 32 bits, signed")
    return WordRange(offset, ends[0], ends[1])


def parse_facts(text: str, where: str) -> KernelFacts:
    """What stands between the angle brackets of `#sass.facts<…>`; `where` names the text. Raises TranslationError."""
    context = Context()
    context.load_attr_or_type(FactsAttr)
    try:
        parser = Parser(context, f"#{FACTS}<{text}>", where)
        found = parser.parse_attribute()
        if parser.pos != len(parser.lexer.input.content) or not isinstance(found, FactsAttr):
            parser.raise_error("expected nothing more")
    except ParseError as error:
        raise TranslationError(str(error).strip()) from error
    return found.data


def facts_of(kernel: KernelOp) -> KernelFacts:
    """The facts that `kernel` carries; none if it carries no attribute."""
    found = kernel.attributes.get(FACTS)
    return found.data if isinstance(found, FactsAttr) else KernelFacts()


def record_use(kernel: KernelOp, uses: Iterable[str]) -> None:
    """Add to the facts that the code of `kernel` now relies on: `block`, `word 0x210`, `range 0x228`, …; the certificate lists them."""
    kernel.attributes[USED] = ArrayAttr([StringAttr(use) for use in sorted({*used_facts(kernel), *uses})])


def drop_use(kernel: KernelOp, uses: Container[str]) -> None:
    """The code of `kernel` does not rely on these facts after all."""
    kernel.attributes[USED] = ArrayAttr([StringAttr(use) for use in used_facts(kernel) if use not in uses])


def used_facts(kernel: KernelOp) -> tuple[str, ...]:
    """The facts that the code of `kernel` relies on, sorted."""
    found = kernel.attributes.get(USED)
    return tuple([use.data for use in found if isinstance(use, StringAttr)]) if isa(found, ArrayAttr[Attribute]) else ()
