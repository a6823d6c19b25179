"""Where the threads of a warp may be in different places of the code.

A branch whose predicate differs between threads splits the warp, until all parts meet again: at the first block that every
path comes to and that follows a BSYNC. Which values differ is a forward analysis (Karrenberg and Hack, Improving
Performance of OpenCL on CPUs, 2012; Sampaio et al., Divergence Analysis, 2013); here every value that is made while the
warp is split counts as different.
"""

from __future__ import annotations

import re

from xdsl.ir import Operation, Region, SSAValue

from sassir.analysis.cfg import Cfg
from sassir.analysis.effects import effects
from sassir.analysis.flow import flow_of
from sassir.dialect.edges import own_operands
from sassir.dialect.instruction import SassBranch, SassInstruction
from sassir.dialect.operations import COLLECTIVE
from sassir.dialect.registers import P, R, file_of

_OF_THREADS = (R.FILE, P.FILE)
_OF_THE_CTA = re.compile(r"SRZ|SR_(?:N?CTAID|NTID|SMEMSZ|SWIN(?:HI|LO)|Cga\w+)(?:\.[XYZ])?")
"""Special registers that are equal in all threads of a CTA."""


class Divergence:
    """Which values differ between the threads of a warp (`varying`), and in which blocks the warp may be split (`split`)."""

    def __init__(self, region: Region) -> None:
        self._flow = flow = flow_of(region)
        reverse: list[list[int]] = [[] for _ in flow.blocks]
        for block, targets in enumerate(flow.cfg.successors):
            for target in targets:
                reverse[target].append(block)
        self._postdominators = Cfg(reverse, [b for b, targets in enumerate(flow.cfg.successors) if not targets]).dominators
        self._ends: dict[int, int] = {}
        """For each block where the warp may be split, the block where it is together again; -1 for none."""
        self.varying: set[SSAValue] = set()
        self._work: list[SSAValue] = []
        for root in flow.cfg.roots:
            self._vary(flow.blocks[root].args)
        for block in flow.blocks:
            for op in block.ops:
                if isinstance(op, SassInstruction) and _differs(op):
                    self._vary(op.results)
                    self._branch(op)
        while self._work:
            for use in self._work.pop().uses:
                self._reach(use.operation, use.index)

    @property
    def split(self) -> frozenset[int]:
        """The numbers of the blocks, in layout order, where some threads of a warp may run without the others."""
        return frozenset(self._ends)

    def _vary(self, values: tuple[SSAValue, ...]) -> None:
        for value in values:
            if value not in self.varying and file_of(value) in _OF_THREADS:
                self.varying.add(value)
                self._work.append(value)

    def _reach(self, op: Operation, index: int) -> None:
        """Operand `index` of `op` varies."""
        if op.parent is None or op is not op.parent.last_op:
            self._vary(op.results)
            return
        own = len(own_operands(op))
        if index >= own:
            arguments = [argument for block in op.successors for argument in block.args]
            self._vary((arguments[index - own],))
        else:
            self._branch(op)

    def _branch(self, op: Operation) -> None:
        """The threads of a warp go different ways from `op`, if there are several."""
        if len(op.successors) < 2 or op.parent is None:
            return
        end = self._end(self._flow.number[op.parent])
        if end >= 0:
            self._vary(self._flow.blocks[end].args)
        work = [self._flow.number[s] for s in op.successors]
        passed: set[int] = set()
        while work:
            b = work.pop()
            if b == end or b in passed or b < 0:
                continue
            passed.add(b)
            if b in self._ends:
                work.append(self._ends[b])
                continue
            self._ends[b] = end
            self._vary(self._flow.blocks[b].args)
            for inner in self._flow.blocks[b].ops:
                self._vary(inner.results)
            work += self._flow.cfg.successors[b]

    def _end(self, block: int) -> int:
        """Where a warp that was split at the end of `block` is together again."""
        end = self._postdominators[block]
        while end >= 0 and not all(self._synchronises(b) for b in self._flow.cfg.predecessors[end]):
            end = self._postdominators[end]
        return end

    def _synchronises(self, block: int) -> bool:
        last = self._flow.blocks[block].last_op
        return isinstance(last, SassInstruction) and last.MNEMONIC == "BSYNC"


def _differs(op: SassInstruction) -> bool:
    """The results differ between threads even if no operand does, or the branch always splits the warp."""
    if isinstance(op, SassBranch):
        return COLLECTIVE[0] == op.MNEMONIC
    if op.MNEMONIC == "VOTE":
        return False
    arguments = op.template.data.arguments
    special = next((a.template for a in arguments if a.template.startswith("SR")), None)
    return not effects(op).pure if special is None else _OF_THE_CTA.fullmatch(special) is None
