"""Run one operation on known values, through the same functions that the emulator uses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from sassir.dialect.instruction import SassInstruction
from sassir.dialect.sample import sample, sample_registers
from sassir.dialect.template import TemplateAttr
from sassir.errors import SemanticsError
from sassir.isa.semantics import Constant, Evaluator, Register, semantics
from sassir.isa.semantics.evaluator import Array


class Plan(NamedTuple):
    """How to evaluate an operation."""

    evaluator: Evaluator
    reads: tuple[int | Constant, ...]
    """For each source of the evaluator, which of the values read it is, or the word of constant memory."""
    kinds: tuple[type[np.generic], ...]
    """And its type: a predicate or a word."""
    results: tuple[int, ...]
    """For each result of the operation, which of the evaluator's it is."""


ReadConstant = Callable[[int, int], int | None]
"""The word at a bank and byte offset of constant memory; None if it is not known."""


_MANTISSA, _EXPONENT = (1 << 23) - 1, 0xFF << 23


def _is_exact(op: SassInstruction, reads: Sequence[int | None]) -> bool:
    """The semantics of MUFU holds to within an ulp only; but the reciprocal of a power of two has no error."""
    word = reads[0] if len(reads) == 1 else None
    if op.modifiers is None or op.modifiers.data != "RCP" or word is None:
        return False
    return not word & _MANTISSA and 0 < word & _EXPONENT < _EXPONENT


def fold(op: SassInstruction, reads: Sequence[int | None], constant: ReadConstant, arch: str) -> tuple[int, ...] | None:
    """The results of an operation, its guard aside, for the values `reads`. None if one that matters, or the semantics, is not known."""
    if op.MNEMONIC == "MUFU" and not _is_exact(op, reads):
        return None
    found = fold_lanes(op, reads, constant, arch)
    return None if found is None else tuple([int(np.broadcast_to(result, (1,))[0]) for result in found])


def fold_lanes(op: SassInstruction, reads: Sequence[Array | int | None], constant: ReadConstant, arch: str) -> tuple[Array, ...] | None:
    """Like `fold` for many threads at once: arrays with a value for each of them, or one for all. MUFU to within an ulp."""
    how = plan(op.MNEMONIC, op.modifiers.data if op.modifiers is not None else "", op.template, arch)
    if how is None:
        return None
    words = [reads[place] if isinstance(place, int) else _word(place, constant) for place in how.reads]
    known = [word for word in words if word is not None]
    if len(known) < len(words):
        return None
    values = [np.atleast_1d(np.asarray(word, kind)) for word, kind in zip(known, how.kinds, strict=True)]
    found = how.evaluator.evaluate(*values)
    return tuple([found[k] for k in how.results])


def _word(place: Constant, constant: ReadConstant) -> int | None:
    return None if place.bank is None or place.base is not None else constant(place.bank, place.offset)


@cache
def plan(mnemonic: str, modifiers: str, template: TemplateAttr, arch: str) -> Plan | None:
    """How to evaluate an operation, its guard aside; None if that is not modelled, or needs the other lanes. Cached."""
    data = template.data
    if data.visible != len(data.holes):
        return None
    try:
        evaluator = semantics(sample(mnemonic, modifiers, template), arch)
    except SemanticsError:
        return None
    read: dict[str, int] = {}
    written: list[str] = []
    for hole, first in zip(data.holes, sample_registers(template), strict=True):
        number = int(first[len(hole.file) :])
        names = [f"{hole.file}{number + k}" for k in range(hole.width)]
        if hole.reads:
            read |= {name: len(read) + k for k, name in enumerate(names)}
        if hole.writes:
            written += names
    reads: list[int | Constant] = []
    for source in evaluator.sources:
        if isinstance(source, Register) and source.name in read:
            reads.append(read[source.name])
        elif isinstance(source, Constant):
            reads.append(source)
        else:
            return None
    if evaluator.warp or not set(written) <= set(evaluator.results):
        return None
    kinds = [np.bool_ if isinstance(s, Register) and s.name.lstrip("U")[0] == "P" else np.uint32 for s in evaluator.sources]
    return Plan(evaluator, tuple(reads), tuple(kinds), tuple([evaluator.results.index(name) for name in written]))
