"""Identities: an operation that only hands on one of its operands, or that a simpler one replaces."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from sassir.analysis.arguments import Argument, arguments
from sassir.dialect.instruction import SassInstruction
from sassir.rewrite.build import encodable


def replace(op: SassInstruction, values: Sequence[SSAValue]) -> None:
    """Use `values` in place of the results of `op`, and drop it."""
    for result, value in zip(op.results, values, strict=True):
        result.replace_all_uses_with(value)
    op.detach()
    op.erase()


def put_in_place(op: SassInstruction, new: SassInstruction) -> None:
    """Put `new`, with the same results, in place of `op`."""
    assert op.parent is not None
    op.parent.insert_op_before(new, op)
    replace(op, new.results)


def exchange(op: SassInstruction, new: SassInstruction, arch: str) -> bool:
    """`put_in_place`, or drop `new` if `arch` has no such instruction. Returns whether it has."""
    if not encodable(new, arch):
        new.erase()
        return False
    put_in_place(op, new)
    return True


def without_guard(op: SassInstruction) -> SassInstruction:
    """A copy of `op` that always executes."""
    properties = {k: v for k, v in op.properties.items() if k not in ("unless", "constant_guard", "control")}
    return type(op).create(operands=op.reads, properties=properties, result_types=[r.type for r in op.results])


def copied_values(op: SassInstruction) -> Sequence[SSAValue] | None:
    """The values that `op` only copies; None if it computes something."""
    if op.MNEMONIC not in _COPIES or op.guard is not None or op.constant_guard is not None:
        return None
    if op.template.data.visible != len(op.template.data.holes):
        return None
    operands = arguments(op)
    results = [a for a in operands if a.results]
    copied = _copied(op, [a for a in operands if not a.written]) if len(results) == 1 else None
    return copied.values if copied is not None and _same_file(copied, results[0]) else None


_COPIES = frozenset({"FSEL", "IADD", "IADD3", "IMAD", "MOV", "SEL", "SHF", "UIADD3", "UIMAD", "UMOV", "USEL", "VIADD"})
"""The instructions that `_copied` knows."""


def _copied(op: SassInstruction, sources: Sequence[Argument]) -> Argument | None:
    """The operand that is the result, whatever the others are."""
    modifiers = set(op.modifiers.data.split(".")) if op.modifiers is not None else set[str]()
    texts = [a.text for a in sources]
    match op.MNEMONIC:
        case "MOV" | "UMOV":
            return sources[0]
        case "IMAD" | "UIMAD" if not modifiers - {"MOV", "U32", "S32", "IADD", "SHL"}:
            return _sum_or_product(sources)
        case "IADD3" | "UIADD3" | "IADD" | "VIADD" if not modifiers:
            terms = [a for a in sources if a.text not in _ZERO]
            return terms[0] if len(terms) == 1 else None
        case "SEL" | "USEL" | "FSEL" if not modifiers:
            return {"PT": sources[0], "UPT": sources[0], "!PT": sources[1], "!UPT": sources[1]}.get(texts[2])
        case "SHF" if texts[1] in _ZERO and modifiers == {"R", "U32", "HI"}:
            return sources[2]
        case _:
            return None


def _sum_or_product(sources: Sequence[Argument]) -> Argument | None:
    """The operand that a b + c is where one factor is 0 or 1."""
    a, b, c = sources
    if a.text in _ZERO or b.text in _ZERO:
        return c
    if c.text not in _ZERO:
        return None
    return a if b.text == "0x1" else b if a.text == "0x1" else None


_ZERO = ("RZ", "URZ", "0x0")


def _same_file(source: Argument, result: Argument) -> bool:
    return source.text in ("$", "$.reuse") and [v.type for v in source.values] == [r.type for r in result.results]
