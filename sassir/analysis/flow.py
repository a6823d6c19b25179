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


_Targets = tuple[Sequence[Block], bool]
"""Where control goes from a block, and whether code of another section runs before."""
_newest: list[tuple[Flow, list[_Targets]]] = []
"""The graph that was asked for last, with where control goes from each block: passes ask one after the other, and few change it."""


def flow_of(region: Region) -> Flow:
    """The graph of `region`. Its roots are the entry, and every block that is entered when code of another section comes back.

    It is the same object as before, and not to be changed, as long as blocks and branches are the same.
    """
    blocks = list(region.blocks)
    ends = [_targets(block.last_op) for block in blocks]
    for flow, known in _newest:
        if (flow.blocks, known) == (blocks, ends):
            return flow
    number = {block: i for i, block in enumerate(blocks)}
    roots = dict.fromkeys([0, *[number[s] for targets, comes_back in ends if comes_back for s in targets]] if blocks else [])
    successors = [[] if comes_back else [number[s] for s in targets] for targets, comes_back in ends]
    flow = Flow(blocks, number, Cfg(successors, [*roots]))
    _newest[:] = [(flow, ends)]
    return flow


def _targets(last: Operation | None) -> _Targets:
    successors = internals.successors(last) if last is not None else ()
    return successors, bool(successors) and isinstance(last, SassBranch) and last.produces


def turning_points(region: Region) -> set[Block]:
    """Blocks to which control goes back: each cycle has one, so that nothing grows for ever that does not grow there."""
    blocks, _, cfg = flow_of(region)
    rank = {b: i for i, b in enumerate(cfg.order)}
    return {blocks[s] for b in cfg.order for s in cfg.successors[b] if rank[s] <= rank[b]}
