"""What is known about the launches of a kernel: `#sass.facts<…>`, and which of it a pass relied on.

    #sass.facts<block = [256, 1, 1], grid = [2112, 1, 1], shared = 0, word 0x210 = 0x1000, pointer 0x218 align 256 bytes 0x4000, noalias>

Offsets are those of constant bank 0, where a parameter lies. Facts hold for every launch that the kernel is used for; who
states them has to make sure of that, or to test them at each launch and run the original where one fails.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.ir import Attribute, Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.hints import isa

from sassir.dialect.operations import KernelOp

Dim3 = tuple[int, int, int]
FACTS = "sass.facts"
USED = "sass.used_facts"


class Pointer(NamedTuple):
    """A parameter that is the address of a buffer in global memory."""

    offset: int
    """Where in constant bank 0."""
    align: int
    """The address is a multiple of this many bytes."""
    nbytes: int
    """The kernel accesses nothing beyond this many bytes from the address."""


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
    pointers: tuple[Pointer, ...] = ()
    noalias: bool = False
    """The buffers of different pointer parameters do not overlap."""
    contract: bool = False
    """A product and a sum may be rounded once."""
    ftz: bool = False
    """Denormals may become zero."""
    approx: bool = False
    """Division, square root and elementary functions may be the hardware's approximations."""


_FLAGS = ("noalias", "contract", "ftz", "approx")


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
        pointers: list[Pointer] = []

        def item() -> None:
            key = parser.parse_keyword_in((*_FLAGS, "block", "grid", "shared", "word", "pointer"))
            if key in _FLAGS:
                flags.add(key)
            elif key == "shared":
                parser.parse_punctuation("=")
                shared.append(parser.parse_integer())
            elif key == "word":
                offset = parser.parse_integer()
                parser.parse_punctuation("=")
                words.append((offset, parser.parse_integer()))
            elif key == "pointer":
                offset = parser.parse_integer()
                parser.parse_keyword("align")
                align = parser.parse_integer()
                parser.parse_keyword("bytes")
                pointers.append(Pointer(offset, align, parser.parse_integer()))
            else:
                parser.parse_punctuation("=")
                sizes = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
                if len(sizes) != 3:
                    parser.raise_error(f"{key} has {len(sizes)} sizes; expected three")
                dimensions[key] = (sizes[0], sizes[1], sizes[2])

        parser.parse_comma_separated_list(parser.Delimiter.ANGLE, item)
        return KernelFacts(
            dimensions.get("block"),
            dimensions.get("grid"),
            shared[0] if shared else None,
            tuple(words),
            tuple(pointers),
            *[flag in flags for flag in _FLAGS],
        )

    def print_parameter(self, printer: Printer) -> None:
        facts = self.data
        parts = [f"{key} = {list(sizes)}" for key, sizes in (("block", facts.block), ("grid", facts.grid)) if sizes is not None]
        parts += [f"shared = {facts.shared}"] if facts.shared is not None else []
        parts += [f"word {offset:#x} = {value:#x}" for offset, value in facts.words]
        parts += [f"pointer {p.offset:#x} align {p.align} bytes {p.nbytes:#x}" for p in facts.pointers]
        parts += [flag for flag in _FLAGS if getattr(facts, flag)]
        printer.print_string(f"<{', '.join(parts)}>")


def facts_of(kernel: KernelOp) -> KernelFacts:
    """The facts that `kernel` carries; none if it carries no attribute."""
    found = kernel.attributes.get(FACTS)
    return found.data if isinstance(found, FactsAttr) else KernelFacts()


def record_use(kernel: KernelOp, uses: Iterable[str]) -> None:
    """Add to the facts that the code of `kernel` now relies on: `block`, `word 0x210`, …; the certificate lists them."""
    kernel.attributes[USED] = ArrayAttr([StringAttr(use) for use in sorted({*used_facts(kernel), *uses})])


def used_facts(kernel: KernelOp) -> tuple[str, ...]:
    """The facts that the code of `kernel` relies on, sorted."""
    found = kernel.attributes.get(USED)
    return tuple([use.data for use in found if isinstance(use, StringAttr)]) if isa(found, ArrayAttr[Attribute]) else ()
