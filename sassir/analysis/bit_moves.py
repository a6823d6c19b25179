"""Where instructions that only move bits put them, asked of their semantics."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from sassir.analysis.folding import plan
from sassir.analysis.ranges import WORD_BITS
from sassir.dialect.template import TemplateAttr


@cache
def bit_moves(mnemonic: str, modifiers: str, template: TemplateAttr, arch: str) -> Sequence[int | tuple[int, int]] | None:
    """For each bit of the result 0, 1, or which value read it is a bit of, by position, and which.

    None if the semantics is not known, other things are read, or a bit is none of these. To find out, every bit that is read gets
    a code of its own, and the instruction runs once for each bit of the codes.
    """
    found = plan(mnemonic, modifiers, template, arch)
    if found is None or len(found.results) != 1 or not all(isinstance(place, int) for place in found.reads):
        return None
    runs = (WORD_BITS * len(found.reads) + 1).bit_length()
    values = [
        np.array([sum([(WORD_BITS * i + k + 1 >> run & 1) << k for k in range(WORD_BITS)]) for run in range(runs)], np.uint32)
        for i in range(len(found.reads))
    ]
    (result,) = [np.broadcast_to(found.evaluator.evaluate(*values)[k], (runs,)) for k in found.results]
    codes = [sum([(int(result[run]) >> k & 1) << run for run in range(runs)]) for k in range(WORD_BITS)]
    places = {WORD_BITS * i + k + 1: (place, k) for i, place in enumerate(found.reads) if isinstance(place, int) for k in range(WORD_BITS)}
    origins: dict[int, int | tuple[int, int]] = {0: 0, (1 << runs) - 1: 1, **places}
    bits = [origins.get(code) for code in codes]
    return [bit for bit in bits if bit is not None] if None not in bits else None
