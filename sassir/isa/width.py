"""How many consecutive 32-bit registers an operand takes, by the modifiers of its instruction.

The table rows give a width as a number or as the name of a rule of this file. Most rules list the modifiers that matter;
matrix fragments, textures and masked vectors follow a formula. Source of all: life ranges of nvdisasm 13.5 (`-lrm narrow`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from sassir.asm.operand import Operand


class UnknownFormError(ValueError):
    """An instruction whose modifiers or operands do not tell a width."""


class Use(NamedTuple):
    """One operand in its instruction: what a width may depend on."""

    modifiers: str
    """Between dots: `.E.64.`"""
    operands: Sequence[Operand]
    operand: Operand

    def has(self, *modifiers: str) -> bool:
        """Whether one of the modifiers (or of the neighbours, `F32.F64`) is there."""
        return any(f".{modifier}." in self.modifiers for modifier in modifiers)


Rule = Callable[[Use], int]

# The widest modifier present counts; neighbours are written with a dot. `=` is the width without any, 1 if not given.
# fmt: off
BY_MODIFIER = """
address    E=2
bulk.from  G.G=2 S.G=2
bulk.to    =2 COUNTED=4
compare    =2 64=4 U64=4 S64=4
cells      1D=1 1D_ARRAY=2 2D=2 2D_ARRAY=3 3D=3
ctaid      =2 X=1 Y=1 Z=1
dims       1D=1 2D=2 3D=3 4D=4 5D=5 2D.GATHER4=5 2D.SCATTER4=5
f64        F64=2
f64_from   BF16.F64=2 F16.F64=2 F32.F64=2
f64_to     F64.BF16=2 F64.F16=2 F64.F32=2
int64      S64=2 U64=2
lanes      =4 2CTA=8
matrices   2=2 4=4 MT1616=2 MT1616.2=4
pair       2CTA.AND=2 2CTA.CAS=2 2CTA.OR=2
pixel      =4 R=1 RG=2
ram        AB=2
size       64=2 F64=2 S64=2 SD64=2 U64=2 F32x2=2 F16x4=2 BF16x4=2 E4M3x8=2 E5M2x8=2 96=3 128=4 F32x4=4 F16x8=4 BF16x8=4 E4M3x16=4 E5M2x16=4
special    =2 32=1
transpose  M832=2 M864=2
unpack     =2 S8=1 U8=1 S16=1 U16=1 64=4
"""
# fmt: on


def _by_modifier(line: str) -> tuple[str, Rule]:
    """Compile one line of `BY_MODIFIER`."""
    name, *entries = line.split()
    widths = {modifier: int(width) for modifier, width in (entry.split("=") for entry in entries)}
    default = widths.pop("", 1)
    return name, lambda use: max((width for modifier, width in widths.items() if use.has(modifier)), default=default)


_SHAPE = re.compile(r"\.(?:(\d+)x(\d+)x(\d+)|(8|16)(8)(\d+))\.")


def _fragment(part: str, bits: int) -> Rule:
    """The share of one lane in matrix a (m × k), b (k × n) or c (m × n), of elements of `bits` bits.

    A warp holds the matrix together, a warpgroup where m is 64. Sparse: half of a is kept. An element is wider or
    narrower than its instruction's usual one where a modifier says so.
    """

    def rule(use: Use) -> int:
        shape = _SHAPE.search(use.modifiers)
        if shape is None:
            raise UnknownFormError(f"a matrix instruction without a shape: {use.modifiers}")
        m, n, k = (int(x) for x in shape.groups() if x)
        element = bits
        if part == "c" and use.has("F16"):
            element = 16
        elif part != "c" and use.has("TF32"):
            element = 32
        elif part != "c" and bits == 8 and use.has("S4", "U4") and not use.has("S8", "U8"):
            element = 4
        if part == "a" and use.has("SP"):
            k //= 2
        lanes = 128 if m == 64 else 32
        elements = {"a": m * k, "b": k * n, "c": m * n}[part]
        return max(1, elements * element // (32 * lanes))

    return rule


_REPEAT = re.compile(r"\.x(\d+)\.")
_LINE = re.compile(r"16dp(\d+)bit")


def _tensor_line(use: Use) -> int:
    """Tensor memory: `.16dp128bit.x4` is four times 128 bits for 16 of the 32 lanes."""
    repeat, line = _REPEAT.search(use.modifiers), _LINE.search(use.modifiers)
    return (int(repeat[1]) if repeat else 1) * (max(1, int(line[1]) // 64) if line else 1)


_DIMENSIONS = {"1D": 1, "2D": 2, "3D": 3, "CUBE": 3, "ARRAY_1D": 1, "ARRAY_2D": 2, "ARRAY_3D": 3, "ARRAY_CUBE": 3}


def _dimensions(use: Use) -> int:
    return next((_DIMENSIONS[operand.text] for operand in use.operands if operand.text in _DIMENSIONS), 0)


def _array(use: Use) -> bool:
    """There is an array index among the coordinates; with .UAI it is in a uniform register."""
    return not use.has("UAI") and any(operand.text.startswith("ARRAY") for operand in use.operands)


def _coordinates(use: Use) -> int:
    return _dimensions(use) + _array(use)


def _bindless(use: Use) -> bool:
    """The handle is in a vector register."""
    return use.has("B")


def _gathers_bindless(use: Use) -> bool:
    """TLD4 names its component first, which may be .B too: `TLD4.B.B`."""
    return "B" in [modifier for modifier in use.modifiers.split(".") if modifier not in ("", "SCR")][1:]


def _shared_out(first: Rule, second: Rule, part: int) -> Rule:
    """Two source groups of a texture; with .SCR their registers are dealt to both as evenly as possible."""

    def rule(use: Use) -> int:
        words = [first(use), second(use)]
        if use.has("SCR"):
            total = sum(words)
            words = [(total + 1) // 2, total // 2]
        return max(1, words[part])

    return rule


def _place(use: Use) -> int:
    """Coordinates, with the clamp of the level of detail."""
    return _coordinates(use) + use.has("LC")


def _sampling(bindless: Callable[[Use], bool]) -> Rule:
    """Bindless handle, level or bias, one or two offsets, depth reference, sample."""
    return lambda use: bindless(use) + use.has("LB", "LL") + use.has("AOFFI") + 2 * use.has("PTP") + use.has("DC") + use.has("MS")


def _gradient_place(use: Use) -> int:
    """TXD: array index, offset and clamp share one register."""
    return _dimensions(use) + use.has("B") + (_array(use) or use.has("AOFFI", "LC"))


def _gradients(use: Use) -> int:
    return 2 * _dimensions(use)


def _query(use: Use) -> int:
    """TXQ.B takes a handle and, unless the texture type is asked for, a level."""
    return 2 if use.has("B") and all(operand.text != "TEX_HEADER_TEXTURE_TYPE" for operand in use.operands) else 1


def _handle(bindless: Callable[[Use], bool]) -> Rule:
    """The first uniform register: texture and sampler, unless a vector register already has them."""

    def rule(use: Use) -> int:
        uniform = [operand for operand in use.operands if operand.registers and operand.registers[0].startswith("UR")]
        return 2 if use.operand is uniform[0] and (len(uniform) > 1 or not bindless(use)) else 1

    return rule


def _mask(use: Use) -> int:
    """Component mask of a texture: the last operand, all four where it is not written.

    TXQ has the number of its texture before it, unless .B took that from a register.
    """
    names = (i for i, operand in enumerate(use.operands) if operand.text in _DIMENSIONS or operand.text.startswith("TEX_HEADER"))
    named = next(names, None)
    if named is None:
        raise UnknownFormError(f"a texture instruction without coordinates: {use.operands}")
    numbers = 2 if use.operands[named].text not in _DIMENSIONS and not use.has("B") else 0
    mask = use.operands[-1].integer if len(use.operands) - named - 1 > numbers else None
    return 15 if mask is None else mask


def _texels(high: bool) -> Rule:
    """The components chosen, two to a register in half precision: the first two registers are one group, the rest the other."""

    def rule(use: Use) -> int:
        components = _mask(use).bit_count()
        words, most = ((components + 1) // 2, 1) if use.has("F16") else (components, 2)
        return max(1, words - most if high else min(words, most))

    return rule


def _masked(high: bool) -> Rule:
    """256-bit access: one mask bit a register (all if absent), the low four for one group, the high four for the other."""

    def rule(use: Use) -> int:
        mask = next((operand.integer for operand in use.operands if operand.integer is not None), 0xFF)
        return max(1, (mask >> 4 if high else mask & 15).bit_count())

    return rule


RULES: dict[str, Rule] = {
    **dict(map(_by_modifier, BY_MODIFIER.strip().splitlines())),
    **{f"{part}.{bits}": _fragment(part, bits) for part in "ab" for bits in (1, 4, 8, 16, 64)},
    **{f"c.{bits}": _fragment("c", bits) for bits in (32, 64)},
    "coords": lambda use: RULES["cells"](use) - (use.has("UAI") and use.has("1D_ARRAY", "2D_ARRAY")),
    "foot.a": _shared_out(lambda use: _coordinates(use) + 1, lambda use: int(use.has("B")), 0),
    "foot.b": _shared_out(lambda use: _coordinates(use) + 1, lambda use: int(use.has("B")), 1),
    "gdesc": lambda use: 2 if use.operand.template.startswith("gdesc") else 1,
    "grad.a": _gradient_place,
    "grad.b": _gradients,
    "handle": _handle(_bindless),
    "handle4": _handle(_gathers_bindless),
    "mask.hi": _masked(high=True),
    "mask.lo": _masked(high=False),
    "packed": lambda use: 2 if "F32x2" in use.operand.template else 1,
    "query": _query,
    "tensor": _tensor_line,
    "texel.hi": _texels(high=True),
    "texel.lo": _texels(high=False),
    "tex.a": _shared_out(_place, _sampling(_bindless), 0),
    "tex.b": _shared_out(_place, _sampling(_bindless), 1),
    "tex4.a": _shared_out(_place, _sampling(_gathers_bindless), 0),
    "tex4.b": _shared_out(_place, _sampling(_gathers_bindless), 1),
}
"""By the name that the table rows use."""


def rule_of(text: str) -> Rule:
    """The rule of a width in a table row: a number, a name, or a name plus a number (`dims+2`)."""
    name, _, more = text.partition("+")
    if name.isdigit():
        constant = int(name)
        return lambda use: constant
    rule, extra = RULES[name], int(more or "0")
    return (lambda use: rule(use) + extra) if extra else rule
