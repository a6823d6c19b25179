"""Moves, selections, and predicates as bits of a register."""

from __future__ import annotations

from typing import Any

from sassir.isa.semantics.bits import U32, ZERO, select
from sassir.isa.semantics.definition import Binary, Form, Ternary, Unary, instruction
from sassir.isa.semantics.single import flush


@instruction("MOV UMOV", "u32", "u32 imm?")
@instruction("MOV.64 UMOV.64 MOV64IUR", "u64", "u64")
def mov(form: Form) -> Unary:
    """d = a"""
    if form.immediates:
        raise form.refusal("a move of some bytes is not modelled")
    return lambda a: a


@instruction("SEL USEL", "u32", "u32 u32 p")
@instruction("SEL.64 USEL.64", "u64", "u64 u64 p")
def sel(form: Form) -> Ternary:
    """d = p ? a : b"""
    return lambda a, b, p: select(p, a, b)


@instruction("FSEL UFSEL", "f32", "f32 f32 p", modifiers="FTZ")
def fsel(form: Form) -> Ternary:
    """d = p ? a : b"""
    if form.has("FTZ"):
        return lambda a, b, p: flush(select(p, a, b))
    return lambda a, b, p: select(p, a, b)


_PARTS = {"": 0, "B1": 8, "B2": 16, "B3": 24}


@instruction("P2R UP2UR", "u32", "pr u32 imm", modifiers="B1 B2 B3")
def p2r(form: Form) -> Binary:
    """d = a with the bits of a byte that the mask b chooses replaced by the predicates"""
    place = form.choose(_PARTS, 0)
    chosen = [i for i in range(7) if form.immediates[0] >> i & 1]
    kept = U32(~sum(1 << place + i for i in chosen) & 0xFFFFFFFF)

    def evaluate(predicates: tuple[Any, ...], a: Any) -> Any:
        result = a & kept
        for i, p in zip(chosen, predicates, strict=True):
            result = result | U32(1 << place + i) * p
        return result

    return evaluate


@instruction("R2P UR2UP", "pr", "bytes imm")
def r2p(form: Form) -> Unary:
    """The predicates that the mask b chooses = the bits of a byte of a"""
    chosen = [i for i in range(7) if form.immediates[0] >> i & 1]
    return lambda a: tuple([a >> i & 1 != ZERO for i in chosen])
