"""The natural loops of a kernel, by its blocks: they stay valid while a pass adds others."""

from __future__ import annotations

from typing import NamedTuple

from xdsl.ir import Block, Region

from sassir.analysis.calls import match_calls
from sassir.analysis.cfg import Cfg
from sassir.analysis.flow import flow_of
from sassir.analysis.loops import loops_of
from sassir.dialect.instruction import SassBranch


class RegionLoop(NamedTuple):
    """One loop; see `Loop`."""

    header: Block
    blocks: frozenset[Block]
    latches: tuple[Block, ...]
    preheader: Block | None
    innermost: bool

    @property
    def calls(self) -> list[Block]:
        """The blocks that end in a call."""
        return [block for block in self.blocks if isinstance(block.last_op, SassBranch) and block.last_op.MNEMONIC == "CALL"]


def region_loops(region: Region) -> list[RegionLoop]:
    """The natural loops of a region, inner ones before those around them."""
    flow = flow_of(region)
    return _loops(flow.blocks, flow.cfg)


def loops_around_calls(region: Region) -> list[RegionLoop]:
    """The same where a call is one step, so that the function is no part of a loop with the call."""
    flow = flow_of(region)
    return _loops(flow.blocks, match_calls(flow).cfg)


def _loops(blocks: list[Block], cfg: Cfg) -> list[RegionLoop]:
    return [
        RegionLoop(
            blocks[loop.header],
            frozenset([blocks[b] for b in loop.blocks()]),
            tuple([blocks[b] for b in loop.latches]),
            None if loop.preheader is None else blocks[loop.preheader],
            not loop.inner,
        )
        for loop in reversed(loops_of(cfg).loops)
    ]
