"""The control-flow graph of a kernel's region."""

from __future__ import annotations

from typing import NamedTuple

from xdsl.ir import Block, Region

from sassir.analysis.cfg import Cfg
from sassir.dialect import internals
from sassir.dialect.instruction import SassBranch


class Flow(NamedTuple):
    """The blocks of a region in layout order, and the graph over their numbers."""

    blocks: list[Block]
    number: dict[Block, int]
    cfg: Cfg


def flow_of(region: Region) -> Flow:
    """The graph of `region`. A block that is entered when code of another section comes back has no predecessor: it is a root."""
    blocks = list(region.blocks)
    number = {block: i for i, block in enumerate(blocks)}
    successors: list[list[int]] = []
    for block in blocks:
        last = block.last_op
        targets = internals.successors(last) if last is not None else ()
        if targets and isinstance(last, SassBranch) and last.produces:
            targets = ()
        successors.append([number[s] for s in targets])
    return Flow(blocks, number, Cfg(successors, [0] if blocks else []))


def turning_points(region: Region) -> set[Block]:
    """Blocks to which control goes back: each cycle has one, so that nothing grows for ever that does not grow there."""
    blocks, _, cfg = flow_of(region)
    rank = {b: i for i, b in enumerate(cfg.order)}
    return {blocks[s] for b in cfg.order for s in cfg.successors[b] if rank[s] <= rank[b]}
