"""Floating-point immediates: their bits, and the text that nvdisasm gives them.

nvdisasm prints 20 significant digits, in exponent form from 1e9 on, and drops the payload of a NaN. sassir writes the
payload: `+QNAN(0x7fc00000)`.
"""

from __future__ import annotations

import math
import re
import struct
from functools import cache

WIDTHS = {"f16": 16, "bf16": 16, "f32": 32, "f64": 32}
"""Encoded bits of each format. A 64-bit immediate has its low half zero and only its high half encoded."""

_NAN = re.compile(r"[-+][QS]NAN\((0x[0-9a-f]+)\)")
_PLAIN = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]\d+)?")


def _value(kind: str, bits: int) -> float:
    match kind:
        case "f16":
            return struct.unpack("<e", bits.to_bytes(2, "little"))[0]
        case "bf16":
            return struct.unpack("<f", (bits << 16).to_bytes(4, "little"))[0]
        case "f64":
            return struct.unpack("<d", (bits << 32).to_bytes(8, "little"))[0]
        case _:
            return struct.unpack("<f", bits.to_bytes(4, "little"))[0]


def _bits(kind: str, value: float) -> int:
    match kind:
        case "f16":
            return int.from_bytes(struct.pack("<e", value), "little")
        case "bf16":
            return int.from_bytes(struct.pack("<f", value), "little") >> 16
        case "f64":
            return int.from_bytes(struct.pack("<d", value), "little") >> 32
        case _:
            return int.from_bytes(struct.pack("<f", value), "little")


_QUIET = {"f16": 1 << 9, "bf16": 1 << 6, "f32": 1 << 22, "f64": 1 << 19}


@cache
def format_float(kind: str, bits: int) -> str:
    """The text of `bits` in format `kind`; a NaN carries its bits in parentheses."""
    value = _value(kind, bits)
    if math.isnan(value):
        sign = "-" if bits >> WIDTHS[kind] - 1 else "+"
        return f"{sign}{'Q' if bits & _QUIET[kind] else 'S'}NAN({bits:#x})"
    if math.isinf(value):
        return f"{'-' if value < 0 else '+'}INF"
    if value == 0:
        return "-0.0" if math.copysign(1, value) < 0 else "0"
    return f"{value:.20e}" if abs(value) >= 1e9 else f"{value:.20g}"


@cache
def parse_float(kind: str, text: str) -> int | None:
    """The bits of `text` in format `kind`; None when it is no number, or one that the format rounds."""
    if nan := _NAN.fullmatch(text):
        bits = int(nan[1], 16)
        return bits if bits < 1 << WIDTHS[kind] else None
    if text in ("+INF", "-INF"):
        return _bits(kind, float(text))
    if not _PLAIN.fullmatch(text):
        return None
    try:
        bits = _bits(kind, float(text))
    except OverflowError:
        return None
    return bits if _value(kind, bits) == float(text) else None
