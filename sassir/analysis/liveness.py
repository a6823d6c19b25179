"""Which values are still read, at the start and the end of each block and between its operations.

From each use upwards until the definition (Boissinot et al., Computing Liveness Sets for SSA-Form Programs, 2010): linear
in the sizes of the resulting sets. A block argument lives from the start of its block; what a branch forwards is read there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from sassir.analysis.flow import Flow
from sassir.dialect import internals
from sassir.dialect.registers import FILES, file_of


class Liveness:
    """The live values of a kernel, by the numbers of the blocks in `flow`; only those of some register files, if that is asked."""

    def __init__(self, flow: Flow, files: Collection[str] = tuple(FILES)) -> None:
        self.flow = flow
        self.live_in: list[set[SSAValue]] = [set() for _ in flow.blocks]
        """Values from other blocks that are read in a block or behind it."""
        self.live_out: list[set[SSAValue]] = [set() for _ in flow.blocks]
        """Values that are read behind a block. What its branch forwards is read in the block itself."""
        for b, block in enumerate(flow.blocks):
            ops, live = internals.operations(block), self.live_in[b]
            own = {*block.args, *[result for op in ops for result in op.results]}
            for op in ops:
                for value in internals.operands(op):
                    if value not in own and value not in live and file_of(value) in files:
                        self._come_from(b, value)

    def _come_from(self, block: int, value: SSAValue) -> None:
        """`value` is read in `block`, but made in another one."""
        above = home(value)
        made = self.flow.number.get(above) if above is not None else None
        self.live_in[block].add(value)
        work = [block]
        while work:
            for other in self.flow.cfg.predecessors[work.pop()]:
                self.live_out[other].add(value)
                if other != made and value not in self.live_in[other]:
                    self.live_in[other].add(value)
                    work.append(other)

    def backwards(self, block: int) -> Iterator[tuple[Operation, set[SSAValue]]]:
        """The operations of a block from the last to the first, each with the values live right behind it.

        The set is one object that changes from step to step; copy it to keep it.
        """
        live = set(self.live_out[block])
        op = self.flow.blocks[block].last_op
        while op is not None:
            yield op, live
            live.difference_update(op.results)
            live.update(internals.operands(op))
            op = op.prev_op


def home(value: SSAValue) -> Block | None:
    """The block in which a value is made."""
    if type(value) is OpResult:
        return value.op.parent
    return value.block if type(value) is BlockArgument else None
