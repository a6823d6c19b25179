"""nv.info: what the driver has to know of a kernel, as a list of tagged attributes.

An attribute is u8 format, u8 number, then two bytes: the value itself, or (format SVAL) the length of the payload that follows.
`.nv.compat` is written the same way, with numbers of its own.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import NamedTuple

from sassir.cubin.attribute_kinds import KINDS, Kind, Payload
from sassir.cubin.elf import take
from sassir.errors import ContainerError

SHT_NV_INFO = 0x70000000


class Format(IntEnum):
    """How the value of an attribute is stored (NVIDIA's EIFMT)."""

    NVAL = 1
    """No value."""
    BVAL = 2
    """One byte and a padding byte."""
    HVAL = 3
    """16 bits."""
    SVAL = 4
    """A length and that many bytes."""


class Attribute(NamedTuple):
    """One attribute, kept as its bytes: what nobody changes is written back as it was."""

    id: int
    format: Format
    data: bytes
    """The two bytes behind the number, or the payload of an SVAL."""

    @property
    def kind(self) -> Kind | None:
        """Its row of the table; None for a number the table lacks."""
        return KINDS.get(self.id)

    @property
    def name(self) -> str:
        """`EXIT_INSTR_OFFSETS`; a number the table lacks is written `0x6b`."""
        return self.kind.name if self.kind else f"{self.id:#04x}"

    @property
    def number(self) -> int:
        """The bytes as one little-endian number (for BVAL only the first counts)."""
        return self.data[0] if self.format is Format.BVAL else int.from_bytes(self.data, "little")

    @property
    def words(self) -> tuple[int, ...]:
        """The payload as u32 numbers. Raises ContainerError when it is not made of whole ones."""
        if len(self.data) % 4:
            raise ContainerError(f"attribute {self.name} has {len(self.data)} bytes, not a multiple of 4")
        return struct.unpack(f"<{len(self.data) // 4}I", self.data)

    def with_words(self, words: tuple[int, ...]) -> Attribute:
        """The same attribute with another payload of u32 numbers."""
        return self._replace(data=struct.pack(f"<{len(words)}I", *words))


class SymbolValue(NamedTuple):
    """REGCOUNT, FRAME_SIZE, MIN_STACK_SIZE, MAX_STACK_SIZE: a value of one function, in the `.nv.info` of the whole file."""

    symbol: int
    value: int


class Parameter(NamedTuple):
    """KPARAM_INFO: one kernel parameter, `offset` and `size` in bytes from the start of the parameter area."""

    ordinal: int
    offset: int
    size: int


class ParameterBank(NamedTuple):
    """PARAM_CBANK: where the parameter area lies in constant bank 0; `symbol` is that of the bank's section."""

    symbol: int
    offset: int
    size: int


class IndirectBranch(NamedTuple):
    """INDIRECT_BRANCH_TARGETS: code offset of one BRX and of everything it can jump to."""

    offset: int
    reserved: int
    targets: tuple[int, ...]


Decoded = int | tuple[int, ...] | SymbolValue | Parameter | ParameterBank | tuple[IndirectBranch, ...] | bytes | None

_STRUCTS = {
    Payload.SYMBOL_VALUE: struct.Struct("<II"),
    Payload.PARAMETER: struct.Struct("<IHHI"),
    Payload.PARAMETER_BANK: struct.Struct("<IHH"),
}


def read_attributes(data: bytes, where: str = "nv.info") -> tuple[Attribute, ...]:
    """All attributes of one section. Raises ContainerError for one that is cut short or has an unknown format."""
    attributes: list[Attribute] = []
    position = 0
    while position < len(data):
        tag, number, low, high = take(data, position, 4, f"attribute {len(attributes)}", where)
        if tag not in Format.__members__.values():
            raise ContainerError(f"{where}: attribute {len(attributes)} at {position:#x} has the unknown format {tag}; expected 1 to 4")
        value = bytes((low, high))
        position += 4
        if tag == Format.SVAL:
            value = take(data, position, low | high << 8, f"the payload of attribute {len(attributes)}", where)
            position += len(value)
        attributes.append(Attribute(number, Format(tag), value))
    return tuple(attributes)


def write_attributes(attributes: tuple[Attribute, ...]) -> bytes:
    """The bytes of a section; the inverse of `read_attributes`."""
    out = bytearray()
    for attribute in attributes:
        out += bytes((attribute.format, attribute.id))
        if attribute.format is Format.SVAL:
            out += struct.pack("<H", len(attribute.data))
        out += attribute.data
    return bytes(out)


def decode(attribute: Attribute) -> Decoded:
    """The payload as the table describes it; bytes where it does not. Raises ContainerError when the payload contradicts the table."""
    payload = attribute.kind.payload if attribute.kind else Payload.OTHER
    match payload:
        case Payload.FLAG:
            return None
        case Payload.NUMBER:
            return attribute.number
        case Payload.SYMBOL_VALUE:
            return SymbolValue(*_fields(attribute, payload))
        case Payload.PARAMETER:
            _, ordinal, offset, packed = _fields(attribute, payload)
            return Parameter(ordinal, offset, packed >> 18)
        case Payload.PARAMETER_BANK:
            return ParameterBank(*_fields(attribute, payload))
        case Payload.BRANCH_TARGETS:
            return indirect_branches(attribute)
        case Payload.OTHER | Payload.OFFSETS_OTHER:
            return attribute.data
        case _:
            return attribute.words


def indirect_branches(attribute: Attribute) -> tuple[IndirectBranch, ...]:
    """The branches of an INDIRECT_BRANCH_TARGETS attribute. Raises ContainerError when a list is longer than the payload."""
    words = attribute.words
    branches: list[IndirectBranch] = []
    position = 0
    while position < len(words):
        count = words[position + 2] if position + 2 < len(words) else len(words)
        end = position + 3 + count
        if end > len(words):
            raise ContainerError(f"attribute {attribute.name} is cut short in branch {len(branches)}")
        branches.append(IndirectBranch(words[position], words[position + 1], words[position + 3 : end]))
        position = end
    return tuple(branches)


def with_branches(attribute: Attribute, branches: tuple[IndirectBranch, ...]) -> Attribute:
    """The same INDIRECT_BRANCH_TARGETS attribute with other branches."""
    return attribute.with_words(tuple([word for b in branches for word in (b.offset, b.reserved, len(b.targets), *b.targets)]))


def _fields(attribute: Attribute, payload: Payload) -> tuple[int, ...]:
    layout = _STRUCTS[payload]
    if len(attribute.data) != layout.size:
        raise ContainerError(f"attribute {attribute.name} has {len(attribute.data)} bytes, expected {layout.size}: {payload.value}")
    return layout.unpack(attribute.data)
