"""The control-flow graph of a region, and how long it is kept."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import Block, Region

from sassir.analysis.flow import flow_of
from sassir.analysis.loops import loops_of
from sassir.dialect.operations import NextOp

LOOP = """
MOV R0, RZ
IADD3 R0, R0, 0x1, RZ
ISETP.GE.AND P0, PT, R0, R4, PT
@!P0 BRA .-0x20
EXIT
"""


def test_it_is_kept_while_blocks_and_branches_are_the_same(lift: Callable[[str], Region]) -> None:
    region = lift(LOOP)
    flow = flow_of(region)
    assert flow.cfg.successors == [[1], [1, 2], []]
    assert flow_of(region) is flow
    assert loops_of(flow.cfg) is loops_of(flow_of(region).cfg)


def test_a_branch_that_goes_elsewhere_makes_another_one(lift: Callable[[str], Region]) -> None:
    region = lift(LOOP)
    flow = flow_of(region)
    first, _, end = region.blocks
    assert first.last_op is not None
    first.last_op.operands = []
    first.last_op.successors = [end]
    assert flow_of(region).cfg.successors == [[2], [1, 2], []]
    assert flow.cfg.successors[0] == [1]
    assert loops_of(flow_of(region).cfg) is not loops_of(flow.cfg)


def test_a_block_more_makes_another_one(lift: Callable[[str], Region]) -> None:
    region = lift(LOOP)
    flow = flow_of(region)
    region.insert_block_before(Block([NextOp.create(successors=[flow.blocks[2]])]), flow.blocks[2])
    assert flow_of(region).cfg.successors == [[1], [1, 3], [3], []]
    assert len(flow.blocks) == 3
