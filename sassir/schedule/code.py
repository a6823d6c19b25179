"""A kernel as the assigner of control codes sees it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sassir.analysis.cfg import Cfg
from sassir.schedule.effects import Effects
from sassir.translate.shape import members


class Code(NamedTuple):
    """Instructions in their final order, and the blocks they form."""

    effects: Sequence[Effects]
    """By line."""
    blocks: Sequence[range]
    """The lines of each block."""
    cfg: Cfg
    """Edges between blocks; none from a call of unknown code to the place where it comes back."""
    leaving: frozenset[int]
    """Blocks that end with a jump to unknown code: a call of another section, or a return to one."""
    weights: Sequence[int]
    """How often each block is expected to run: ten times for each loop around it."""
