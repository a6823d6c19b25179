"""One operand of an instruction: assembly text with holes for its registers.

`-|R4|.H0_H0` is the template `-|$|.H0_H0` filled with R4; `desc[UR6][R2.64+0x10]` is `desc[$][$.64+0x10]` filled with
UR6 and R2. The template keeps every modifier that the hardware knows, also the ones that no table names yet, and
renaming a register never touches it. Zero registers (RZ, URZ, PT, UPT) are registers like the others.

Operands are interned: equal operands are the same object, so comparing and hashing them costs nothing.
"""

from __future__ import annotations

import re
import struct
from functools import cached_property
from typing import ClassVar, Self

HOLE = "$"
REGISTER = re.compile(r"(?<![\w.@])(?:UR(?:\d+|Z)|UP(?:\d+|T)|R(?:\d+|Z)|P(?:\d+|T)|B\d+)(?!\w)")
ZERO_REGISTERS = frozenset({"RZ", "URZ", "PT", "UPT"})

_INTEGER = re.compile(r"[-+]?0x[0-9a-f]+|[-+]?\d+")
_FLOAT = re.compile(r"[-+]?(?:\d+(?:\.\d*)?(?:e[-+]?\d+)?|INF)")
_NAN = re.compile(r"([-+]?)[QS]NAN(?:\((0x[0-9a-f]+)\))?")
_CONSTANT = re.compile(r"[-~]?\|?c\[(0x[0-9a-f]+)\]\[(?:(\$)(?:\+|(?=\])))?([-+]?0x[0-9a-f]+)?\]\|?.*")
_TARGET = re.compile(r"\.([-+]0x[0-9a-f]+)")


def register_file(name: str) -> str:
    """The file of a register name: R, UR, P, UP or B."""
    return name.rstrip("0123456789ZT") if name not in ZERO_REGISTERS else name[:-1]


class Operand:
    """An interned operand. Build it with `Operand.of` or `Operand.parse`; never change it."""

    __slots__ = ("__dict__", "registers", "template", "text")
    _pool: ClassVar[dict[tuple[str, tuple[str, ...]], Operand]] = {}

    template: str
    registers: tuple[str, ...]
    text: str

    @classmethod
    def of(cls, template: str, registers: tuple[str, ...] = ()) -> Self:
        """The operand whose template's holes, from left to right, are filled by `registers`."""
        found = cls._pool.get((template, registers))
        if found is None:
            pieces = template.split(HOLE)
            if len(pieces) != len(registers) + 1:
                raise ValueError(f"{template!r} has {len(pieces) - 1} holes, got {registers}")
            found = object.__new__(cls)
            found.template, found.registers = template, registers
            found.text = pieces[0] + "".join(r + p for r, p in zip(registers, pieces[1:], strict=True))
            cls._pool[template, registers] = found
        return found  # type: ignore[return-value]

    @classmethod
    def parse(cls, text: str) -> Self:
        """The operand that prints as `text`."""
        return cls.of(REGISTER.sub(HOLE, text), tuple(REGISTER.findall(text)))

    def __repr__(self) -> str:
        return f"Operand({self.text!r})"

    def __str__(self) -> str:
        return self.text

    def __reduce__(self) -> tuple[object, tuple[str, tuple[str, ...]]]:
        return Operand.of, (self.template, self.registers)

    def with_registers(self, *registers: str) -> Operand:
        """The same operand on other registers."""
        return Operand.of(self.template, registers)

    def without_reuse(self) -> Operand:
        """The operand without its operand-cache marks, which belong to one schedule."""
        return Operand.of(self.template.replace(".reuse", ""), self.registers)

    @cached_property
    def negated(self) -> bool:
        """The value is negated (`-R4`), or the predicate complemented (`!P0`)."""
        return self.template.startswith(("-$", "-|", "-c", "!"))

    @cached_property
    def inverted(self) -> bool:
        """The bits are complemented (`~R4`)."""
        return self.template.startswith("~")

    @cached_property
    def absolute(self) -> bool:
        """The absolute value is taken (`|R4|`)."""
        return "|" in self.template

    @cached_property
    def reuse(self) -> bool:
        """The register is kept in the operand cache for the next instruction."""
        return ".reuse" in self.template

    @cached_property
    def is_register(self) -> bool:
        """A plain register with modifiers, not an address."""
        return len(self.registers) == 1 and "[" not in self.template

    @cached_property
    def integer(self) -> int | None:
        """The value of an integer immediate."""
        return int(self.template, 0) if _INTEGER.fullmatch(self.template) else None

    @cached_property
    def float(self) -> float | None:
        """The value of a floating-point immediate; a NaN loses its payload here, not in the text."""
        if nan := _NAN.fullmatch(self.template):
            return float(f"{nan[1]}nan")
        return float(self.template) if _FLOAT.fullmatch(self.template) else None

    @cached_property
    def constant(self) -> tuple[int, int] | None:
        """Bank and byte offset of a constant-memory operand `c[0x0][0x160]`; the register of an indexed one is in `registers`."""
        match = _CONSTANT.fullmatch(self.template)
        return (int(match[1], 16), int(match[3] or "0", 16)) if match else None

    @cached_property
    def displacement(self) -> int | None:
        """Bytes from this instruction to the target `.+0x40` of a branch."""
        match = _TARGET.fullmatch(self.template)
        return int(match[1], 16) if match else None


def target(displacement: int) -> Operand:
    """The operand that names the place `displacement` bytes after the instruction's own address."""
    return Operand.of(f".{displacement:+#x}")


def float_bits(value: float, width: int) -> int:
    """The IEEE bits of `value` in 16, 32 or 64 bits."""
    code, integer = {16: ("<e", "<H"), 32: ("<f", "<I"), 64: ("<d", "<Q")}[width]
    return struct.unpack(integer, struct.pack(code, value))[0]
