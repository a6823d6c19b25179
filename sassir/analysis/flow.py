"""The control-flow graph of a kernel's region."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from xdsl.ir import Block, Operation, Region

from sassir.analysis.cfg import Cfg
from sassir.dialect import internals
from sassir.dialect.instruction import SassBranch


class Flow(NamedTuple):
    """The blocks of a region in layout order, and the graph over their numbers."""

    blocks: list[Block]
    number: dict[Block, int]
    cfg: Cfg


_newest: list[tuple[Flow, list[Sequence[Block]]]] = []
"""The graph that was asked for last, with where control goes from each block: passes ask one after the other, and few change it."""


def flow_of(region: Region) -> Flow:
    """The graph of `region`. A block that is entered when code of another section comes back has no predecessor: it is a root.

    It is the same object as before, and not to be changed, as long as blocks and branches are the same.
    """
    blocks = list(region.blocks)
    targets = [_targets(block.last_op) for block in blocks]
    for flow, known in _newest:
        if (flow.blocks, known) == (blocks, targets):
            return flow
    number = {block: i for i, block in enumerate(blocks)}
    flow = Flow(blocks, number, Cfg([[number[s] for s in ends] for ends in targets], [0] if blocks else []))
    _newest[:] = [(flow, targets)]
    return flow


def _targets(last: Operation | None) -> Sequence[Block]:
    successors = internals.successors(last) if last is not None else ()
    return () if successors and isinstance(last, SassBranch) and last.produces else successors


def turning_points(region: Region) -> set[Block]:
    """Blocks to which control goes back: each cycle has one, so that nothing grows for ever that does not grow there."""
    blocks, _, cfg = flow_of(region)
    rank = {b: i for i, b in enumerate(cfg.order)}
    return {blocks[s] for b in cfg.order for s in cfg.successors[b] if rank[s] <= rank[b]}
