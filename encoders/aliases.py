"""Modifiers that stand for no bits.

nvdisasm names what an integer multiply-add is used for: `IMAD.MOV` when a factor is zero (or 1 with nothing added),
`IMAD.IADD` when it is 1, `IMAD.SHL` when it is a power of two and nothing is added; not where an operand is uniform, and
not for a factor of 65536. The rule was read off nvdisasm 13.5, all forms and all powers of two.
"""

from __future__ import annotations

from sassir.asm.operand import ZERO_REGISTERS, Operand

ALIASED = "IMAD"
ALIASES = frozenset({"MOV", "SHL", "IADD"})
_PLAIN = frozenset({(), ("U32",)})
_SHIFTS = frozenset(1 << i for i in range(1, 31) if i != 16)


def add_alias(modifiers: tuple[str, ...], operands: tuple[Operand, ...]) -> tuple[str, ...]:
    """The modifiers of an IMAD with the alias that its operands call for."""
    if modifiers not in _PLAIN or len(operands) != 4 or any(r.startswith("UR") for o in operands for r in o.registers):
        return modifiers
    _, a, b, c = operands
    added = not _is_zero(c)
    if _is_zero(a) or _is_zero(b) or b.integer == 0 or (b.integer == 1 and not added):
        return "MOV", *modifiers
    if b.integer == 1:
        return "IADD", *modifiers
    return ("SHL", *modifiers) if not added and b.integer in _SHIFTS else modifiers


def drop_alias(modifiers: tuple[str, ...]) -> tuple[str, ...]:
    """The modifiers that have bits."""
    return tuple(m for m in modifiers if m not in ALIASES)


def _is_zero(operand: Operand) -> bool:
    return operand.is_register and operand.registers[0] in ZERO_REGISTERS
