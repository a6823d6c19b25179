"""How an operand becomes a value: registers, constants and immediates, with the operand's own modifiers applied.

The types that a definition asks for:

    u32 u64     integer; -x negates, ~x complements
    c32         the same as uint64, so that sums keep their carries: -x is 2^32 - x
    raw         u32 before its - or ~, which the builder applies (`Form.prefix`, PREFIXES)
    f32         floating point; -x and |x| change the sign bit
    n32 f64     floating point; -x and |x| change the sign of a number and leave a NaN as it is
    h2 b2       two halves, two bfloat16: a pair of f32 arrays, low and high; x.H0_H0 and x.H1_H1 take one twice, x.F32 a single
    f32x2       a pair of f32 arrays from two registers, low and high; x.F32x2.LO_HI swaps them, x.F32 takes one register twice
    h1          one half as an f32 array: x or x.H1
    bytes       u32 with the part that is chosen: x.B1, x.H1; see `part`
    fragment    as many registers as the instruction says
    p           predicate; !p complements it
    pr          the predicates that the instruction's mask chooses, as a tuple
    imm         integer immediate: not a value, but for the builder
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from sassir.asm.operand import ZERO_REGISTERS, Operand, float_bits
from sassir.isa.semantics import bits
from sassir.isa.semantics.bits import F16, F32, F64, U32, U64
from sassir.isa.semantics.evaluator import Constant, Register, Source

Read = Callable[[tuple[Any, ...]], Any]
"""From the arrays of all sources to the value of one operand."""
Step = Callable[[Any], Any]

_SHAPE = re.compile(r"([-~!]?)(\|?)(\$|cx?\[.*\]\[.*?\])((?:\.\w+)*)\|?((?:\.\w+)*)")
_CONSTANT = re.compile(r"c(x?)\[(0x[0-9a-f]+|\$)\]\[(\$?)\+?(-?0x[0-9a-f]+)?\]")
_NAN = re.compile(r"[-+][QS]NAN\((0x[0-9a-f]+)\)")
_FLOATS = {"f32": 32, "n32": 32, "f32x2": 32, "f64": 64, "h1": 16, "h2": 16, "b2": 16}
WORDS = {"u64": 2, "f32x2": 2, "f64": 2}
"""How many 32-bit registers a type takes, if not one."""


_SIGN = U32(1 << 31)


class UnreadableError(ValueError):
    """An operand that has no value of the type asked for."""


class Parts(NamedTuple):
    """An operand taken apart."""

    prefix: str
    absolute: bool
    select: str
    """What follows the register: `H0_H0`."""
    words: list[Source | Any]
    """For each word a source, or its known value."""


def take_apart(operand: Operand, kind: str, count: int) -> Parts:
    """The parts of an operand of type `kind` and `count` words. Raises UnreadableError."""
    operand = operand.without_reuse()
    if kind in _FLOATS and (operand.float is not None or operand.integer is not None):
        return Parts("", False, "", _immediate_float(operand, kind))
    if operand.integer is not None and kind not in _FLOATS:
        return Parts("", False, "", _known(operand.integer, count))
    shape = _SHAPE.fullmatch(operand.template)
    if shape is None:
        raise UnreadableError(f"the operand {operand} has no value")
    prefix, bar, place, inner, outer = shape.groups()
    if kind == "f32x2" and (inner or outer) == ".F32":
        count = 1
    words = _register(operand.registers[0], count) if place == "$" else _constant(operand, place, count)
    return Parts(prefix, bool(bar), (inner or outer)[1:], words)


def _known(value: int, count: int) -> list[Any]:
    return [U32(value >> 32 * i & 0xFFFFFFFF) for i in range(count)]


def _immediate_float(operand: Operand, kind: str) -> list[Any]:
    """A 64-bit immediate has its low word zero; text loses the payload of a NaN, except as sassir writes it."""
    width = _FLOATS[kind]
    if nan := _NAN.fullmatch(operand.template):
        return _known(int(nan[1], 16) << (32 if width == 64 else 0), WORDS.get(kind, 1))
    value = float(operand.template)
    if kind == "b2":
        return _known(float_bits(value, 32) >> 16, 1)
    return _known(float_bits(value, width), WORDS.get(kind, 1))


def _register(name: str, count: int) -> list[Any]:
    if name in ZERO_REGISTERS:
        return [np.True_ if name in ("PT", "UPT") else bits.ZERO] * count
    file, number = name.rstrip("0123456789"), int(name.lstrip("URP"))
    return [Register(f"{file}{number + i}") for i in range(count)]


def _constant(operand: Operand, place: str, count: int) -> list[Any]:
    found = _CONSTANT.fullmatch(place)
    if found is None:
        raise UnreadableError(f"the operand {operand} is no constant")
    bindless, bank, base, offset = found[1] == "x", found[2], found[3], int(found[4] or "0", 16)
    if bindless != (bank == "$") or (bindless and base):
        raise UnreadableError(f"the operand {operand} is not a constant with one register")
    register = operand.registers[0] if operand.registers else None
    return [Constant(None if bindless else int(bank, 16), offset + 4 * i, register) for i in range(count)]


def reader(parts: Parts, kind: str, sources: list[Source]) -> Read:
    """How to read the operand's value; what has to be handed in for it is appended to `sources`. Raises UnreadableError."""
    fetch: list[Read] = []
    for word in parts.words:
        if isinstance(word, Register | Constant):
            fetch.append(itemgetter(len(sources)))
            sources.append(word)
        else:
            fetch.append(_always(word))
    steps = _steps(parts, kind)
    read = _chain(_gather(fetch, kind), steps)
    return read if any(isinstance(w, Register | Constant) for w in parts.words) else _always(read(()))


def _always(value: Any) -> Read:
    return lambda arrays: value


def _chain(read: Read, steps: Sequence[Step]) -> Read:
    """`read`, then the steps one after the other."""
    for step in steps:
        read = _then(read, step)
    return read


def _then(read: Read, step: Step) -> Read:
    return lambda arrays: step(read(arrays))


def _gather(fetch: list[Read], kind: str) -> Read:
    if kind in ("pr", "f32x2", "fragment"):
        return lambda arrays: tuple([f(arrays) for f in fetch])
    if len(fetch) == 2:
        low, high = fetch
        return lambda arrays: bits.join(low(arrays), high(arrays))
    return fetch[0]


def _steps(parts: Parts, kind: str) -> list[Step]:
    """From the bits to the value."""
    prefix, absolute, select, _ = parts
    if select and (kind, select) not in _SELECTS:
        raise UnreadableError(f"the selection .{select} is not known here")
    if (absolute and kind not in _FLOATS) or (prefix and kind not in _FLOATS and (kind, prefix) not in PREFIXES):
        raise UnreadableError(f"the modifier {prefix or '|…|'} is not known here")
    steps: list[Step] = []
    if kind == "f32":
        if absolute:
            steps.append(lambda x: x & ~_SIGN)
        if prefix == "-":
            steps.append(lambda x: x ^ _SIGN)
        steps.append(lambda x: x.view(F32))
    elif kind in ("n32", "f64"):
        steps.append(lambda x: x.view(F32 if kind == "n32" else F64))
        steps += [_of_numbers(np.abs)] if absolute else []
        steps += [_of_numbers(np.negative)] if prefix == "-" else []
    elif kind in ("h1", "h2", "b2", "f32x2"):
        steps.append(_SELECTS[kind, select])
        steps += [_each(np.abs, kind)] if absolute else []
        steps += [_each(np.negative, kind)] if prefix == "-" else []
    else:
        if select:
            steps.append(_SELECTS[kind, select])
        if prefix or kind == "c32":
            steps.append(PREFIXES[kind, prefix])
    return steps


def _of_numbers(step: Step) -> Step:
    """The step on everything but NaN."""
    return lambda x: bits.select(x == x, step(x), x)


def _each(step: Step, kind: str) -> Step:
    """The step on every part of a value."""
    return step if kind == "h1" else lambda x: (step(x[0]), step(x[1]))


_CARRY = U64(1 << 32)
PREFIXES: dict[tuple[str, str], Step] = {
    ("u32", ""): bits.same,
    ("u32", "-"): lambda x: bits.ZERO - x,
    ("u32", "~"): lambda x: ~x,
    ("u64", "-"): lambda x: U64(0) - x,
    ("u64", "~"): lambda x: ~x,
    ("c32", "-"): lambda x: _CARRY - x,
    ("c32", "~"): lambda x: (~x).astype(U64),
    ("c32", ""): lambda x: x.astype(U64),
    ("raw", "-"): bits.same,
    ("raw", "~"): bits.same,
    ("p", "!"): lambda x: ~x,
}
"""What stands before an operand, by its type."""


def _half(x: Any) -> Any:
    """The half in the low 16 bits."""
    return x.astype(np.uint16).view(F16).astype(F32)


def _bfloat(x: Any) -> Any:
    """The bfloat16 in the low 16 bits."""
    return (x << 16).view(F32)


def _twice(x: Any) -> tuple[Any, Any]:
    return x, x


_SELECTS: dict[tuple[str, str], Step] = {
    ("h1", ""): _half,
    ("h1", "H1"): lambda x: _half(x >> 16),
    ("h2", ""): lambda x: (_half(x), _half(x >> 16)),
    ("h2", "H0_H0"): lambda x: _twice(_half(x)),
    ("h2", "H1_H1"): lambda x: _twice(_half(x >> 16)),
    ("h2", "F32"): lambda x: _twice(x.view(F32)),
    ("b2", ""): lambda x: (_bfloat(x), (x & 0xFFFF0000).view(F32)),
    ("b2", "H0_H0"): lambda x: _twice(_bfloat(x)),
    ("b2", "H1_H1"): lambda x: _twice((x & 0xFFFF0000).view(F32)),
    ("f32x2", "F32"): lambda x: _twice(x[0].view(F32)),
    ("f32x2", "F32x2.HI_LO"): lambda x: (x[0].view(F32), x[1].view(F32)),
    ("f32x2", "F32x2.LO_HI"): lambda x: (x[1].view(F32), x[0].view(F32)),
    ("fragment", "ROW"): lambda x: x,
    ("fragment", "COL"): lambda x: x,
    ("bytes", "B1"): lambda x: x >> 8,
    ("bytes", "B2"): lambda x: x >> 16,
    ("bytes", "B3"): lambda x: x >> 24,
    ("bytes", "H1"): lambda x: x >> 16,
}
