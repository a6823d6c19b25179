"""The natural loops of a kernel, by its blocks: they stay valid while a pass adds others."""

from __future__ import annotations

from typing import NamedTuple

from xdsl.ir import Block, Region

from sassir.analysis.flow import flow_of
from sassir.analysis.loops import Loops


class RegionLoop(NamedTuple):
    """One loop; see `Loop`."""

    header: Block
    blocks: frozenset[Block]
    latches: tuple[Block, ...]
    preheader: Block | None
    innermost: bool


def region_loops(region: Region) -> list[RegionLoop]:
    """The natural loops of a region, inner ones before those around them."""
    blocks, _, cfg = flow_of(region)
    return [
        RegionLoop(
            blocks[loop.header],
            frozenset([blocks[b] for b in loop.blocks()]),
            tuple([blocks[b] for b in loop.latches]),
            None if loop.preheader is None else blocks[loop.preheader],
            not loop.inner,
        )
        for loop in reversed(Loops(cfg).loops)
    ]
