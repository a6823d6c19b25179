"""Make instructions, and change the operands of one, as text with values in its holes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from xdsl.dialects.builtin import StringAttr, UnitAttr
from xdsl.ir import Attribute, SSAValue

from sassir.dialect import internals
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.operations import operation_class
from sassir.dialect.registers import FILES
from sassir.dialect.sample import sample
from sassir.dialect.template import TemplateAttr
from sassir.encoders import table
from sassir.errors import EncodingError, TranslationError


def instruction(
    text: str, reads: Sequence[SSAValue] = (), guard: SSAValue | None = None, unless: bool = False, kept: Sequence[SSAValue] = ()
) -> SassInstruction:
    """The instruction written as `text`, `IADD3 =R, $R, 0x10, RZ`, with `reads` in its reading holes from left to right.

    Its results are free registers, which a guarded one shares with the `kept` values. Raises TranslationError for an
    unknown mnemonic. Whether an architecture has the instruction, `encodable` tells.
    """
    name, _, operands = text.partition(" ")
    mnemonic, *modifiers = name.split(".")
    op = operation_class(mnemonic, tuple(modifiers))
    if op is None:
        raise TranslationError(f"`{text}`: no instruction is called {mnemonic}")
    template = TemplateAttr.of(operands)
    properties: dict[str, Attribute] = {"template": template}
    if modifiers:
        properties["modifiers"] = StringAttr(".".join(modifiers))
    if unless:
        properties["unless"] = UnitAttr()
    values = [*reads, *([guard, *kept] if guard is not None else [])]
    results = [FILES[file].free() for file in template.data.write_files]
    return op.create(operands=values, properties=properties, result_types=results)


_SUMS = ("IADD3 =R, {}, {}, RZ", "IADD3 =R, PT, PT, {}, {}, RZ")
"""How the architectures write a sum of two: to sm_90, from sm_100 on."""


def addition(a: str, b: str, reads: Sequence[SSAValue], arch: str) -> SassInstruction:
    """`a` + `b`, texts of operands with `reads` in their holes; numbers are signed. Raises TranslationError if `arch` has no such sum."""
    for form in _SUMS:
        op = instruction(form.format(a, b), reads)
        if encodable(op, arch):
            return op
        op.erase()
    raise TranslationError(f"{arch} has no instruction for the sum of {a} and {b}")


def signed(number: int) -> str:
    """A word as the signed number that immediates of sums are written as."""
    number &= 0xFFFFFFFF
    return f"{number - (1 << 32) if number >> 31 else number:#x}"


def rewritten(op: SassInstruction, name: str, arguments: Sequence[str], reads: Sequence[SSAValue]) -> SassInstruction:
    """A copy of `op` (no branch) with another name, other operand texts and values; its guard and kept values stay.

    The texts keep the writing holes of `op`, since its results keep their types.
    """
    mnemonic, *modifiers = name.split(".")
    kind = operation_class(mnemonic, tuple(modifiers))
    if kind is None:
        raise TranslationError(f"no instruction is called {mnemonic}")
    _, separator, hidden = op.template.text.partition("; ")
    properties = dict(op.properties) | {"template": TemplateAttr.of(", ".join(arguments) + separator + hidden)}
    properties.pop("modifiers", None)
    properties.pop("control", None)
    if modifiers:
        properties["modifiers"] = StringAttr(".".join(modifiers))
    rest = internals.operands(op)[len(op.reads) :]
    return kind.create(operands=[*reads, *rest], properties=properties, result_types=[r.type for r in op.results])


def name_of(op: SassInstruction) -> str:
    """Mnemonic and modifiers as written."""
    return op.MNEMONIC if op.modifiers is None else f"{op.MNEMONIC}.{op.modifiers.data}"


def arguments_of(op: SassInstruction) -> list[str]:
    """The operands as text with holes; hidden holes are left out."""
    shown = op.template.text.partition("; ")[0]
    return shown.split(", ") if shown else []


def encodable(op: SassInstruction, arch: str) -> bool:
    """Whether `arch` has an instruction with this name and these kinds of operands."""
    return _encodable(op.MNEMONIC, op.modifiers.data if op.modifiers is not None else "", op.template, arch)


@cache
def _encodable(mnemonic: str, modifiers: str, template: TemplateAttr, arch: str) -> bool:
    try:
        table(arch).encode(sample(mnemonic, modifiers, template))
    except EncodingError:
        return False
    return True
