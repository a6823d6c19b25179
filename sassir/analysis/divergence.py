"""Where the threads of a warp may be in different places of the code.

A branch whose predicate differs between threads splits the warp, until all parts meet again: at the first block that every
path comes to, if a BSYNC is before it or a WARPSYNC in it. Which values differ is a forward analysis (Karrenberg and Hack,
Improving Performance of OpenCL on CPUs, 2012; Sampaio et al., Divergence Analysis, 2013); here every value that is made
while the warp is split counts as different.
"""

from __future__ import annotations

import re
from itertools import takewhile

from xdsl.ir import BlockArgument, Operation, Region, SSAValue

from sassir.analysis.calls import match_calls
from sassir.analysis.cfg import Cfg
from sassir.analysis.effects import effects
from sassir.analysis.flow import flow_of
from sassir.dialect import internals
from sassir.dialect.edges import own_operands
from sassir.dialect.instruction import SassBranch, SassInstruction
from sassir.dialect.operations import COLLECTIVE
from sassir.dialect.registers import P, R, file_of

_OF_THREADS = (R.FILE, P.FILE)
_EQUALISING = frozenset({"sass.vote"})
"""Operations that give all threads of the warp the same result, whatever their operands are."""
_ONE_FOR_ALL = frozenset({"constant", "global", "shared"})
"""Memory that all threads of a warp read alike, if from the same address: one access serves all."""
_OF_THE_CTA = re.compile(r"SRZ|SR_(?:N?CTAID|NTID|SMEMSZ|SWIN(?:HI|LO)|Cga\w+)(?:\.[XYZ])?")
"""Special registers that are equal in all threads of a CTA."""


class Divergence:
    """Which values differ between the threads of a warp (`varying`), and in which blocks the warp may be split (`split`)."""

    def __init__(self, region: Region) -> None:
        self._flow = flow = flow_of(region)
        self._calls = match_calls(flow)
        self._predecessors: list[list[int]] = [[] for _ in flow.blocks]
        for block, targets in enumerate(self._calls.successors):
            for target in targets:
                self._predecessors[target].append(block)
        exits = [b for b, targets in enumerate(self._calls.successors) if not targets]
        self.postdominators = Cfg(self._predecessors, exits).dominators
        """For each block the next one that every path from it comes to, calls left out; -1 for none."""
        self._ends: dict[int, int] = {}
        """For each block where the warp may be split, the block where it is together again; -1 for none in its function."""
        self._inside: set[int] = set()
        """The blocks of functions that are called where the warp may be split."""
        self._partly: set[int] = set()
        """The blocks in which all of the warp comes together, behind their start."""
        self._gathering = {b for b, block in enumerate(flow.blocks) if any(_gathers(op) for op in block.ops)}
        self.varying: set[SSAValue] = set()
        self._work: list[SSAValue] = []
        self._taken: dict[Operation, tuple[int, list[BlockArgument]]] = {}
        """By terminator: how many operands it reads itself, and the arguments that take the others."""
        for root in flow.cfg.roots:
            self._vary(flow.blocks[root].args)
        for block in flow.blocks:
            for op in block.ops:
                if isinstance(op, SassInstruction) and _differs(op):
                    self._vary(op.results)
                    self._branch(op)
        while self._work:
            for user, index in internals.uses(self._work.pop()):
                self._reach(user, index)

    @property
    def split(self) -> set[int]:
        """The numbers of the blocks, in layout order, where some threads of a warp may run without the others."""
        return self._inside.union(self._ends, self._partly)

    def _vary(self, values: tuple[SSAValue, ...]) -> None:
        for value in values:
            if value not in self.varying and file_of(value) in _OF_THREADS:
                self.varying.add(value)
                self._work.append(value)

    def _reach(self, op: Operation, index: int) -> None:
        """Operand `index` of `op` varies."""
        if op.parent is None or op is not op.parent.last_op:
            if op.name not in _EQUALISING:
                self._vary(op.results)
            return
        if op not in self._taken:
            self._taken[op] = len(own_operands(op)), [argument for block in internals.successors(op) for argument in block.args]
        own, arguments = self._taken[op]
        if index >= own:
            self._vary((arguments[index - own],))
        else:
            self._branch(op)

    def _branch(self, op: Operation) -> None:
        """The threads of a warp go different ways from `op`, if there are several. A RET has one for all that came together."""
        if op.parent is not None and op is op.parent.last_op:
            block = self._flow.number[op.parent]
            if len(self._calls.successors[block]) > 1:
                self._split_behind(block)

    def _split_behind(self, block: int) -> None:
        """The warp is split from the end of `block` on. A split inside of another one ends no later: its blocks are known already."""
        if block in self._ends:
            return
        found, end = self._until_together(block)
        self._ends |= dict.fromkeys(found, end)
        if end >= 0:
            self._vary(self._flow.blocks[end].args)
        if end in self._gathering:
            self._partly.add(end)
            for op in takewhile(lambda op: not _gathers(op), self._flow.blocks[end].ops):
                self._vary(op.results)
        for b in found:
            self._vary_all(b)
            if b in self._calls.callee:
                self._split_inside(self._calls.callee[b])
            for caller in self._calls.callers.get(b, ()):
                self._split_behind(caller)

    def _until_together(self, block: int) -> tuple[list[int], int]:
        """The blocks, not known before, that a split at the end of `block` reaches, and where the warp is together again.

        That is the first block to which all ways lead, if each comes to it through a BSYNC, or there is a WARPSYNC in it.
        """
        end, together = self.postdominators[block], True
        found: list[int] = []
        passed = {-1}
        work = [(s, False) for s in self._calls.successors[block]]
        while work:
            b, synchronised = work.pop()
            if b == end:
                together = together and synchronised
            elif b not in passed:
                passed.add(b)
                if b in self._ends:
                    inner = self._ends[b]
                    if self._is_behind(inner, end):  # not before the split inside of this one is over
                        work, end, together = [*work, (end, False)], inner, True
                    work.append((inner, True))
                else:
                    found.append(b)
                    work += [(s, self._synchronises(b)) for s in self._calls.successors[b]]
            if not work and end >= 0 and not together and end not in self._gathering:
                work, end, together = [(end, False)], self.postdominators[end], True
        return found, end

    def _is_behind(self, block: int, other: int) -> bool:
        """Every path from `other` comes to `block`, which is another one."""
        while other >= 0 and other != block:
            other = self.postdominators[other]
            if other == block:
                return block >= 0
        return False

    def _split_inside(self, first: int) -> None:
        """A function is called while the warp is split."""
        work = [first]
        while work:
            b = work.pop()
            if b not in self._inside:
                self._inside.add(b)
                self._vary_all(b)
                work += self._calls.successors[b]
                if b in self._calls.callee:
                    work.append(self._calls.callee[b])

    def _vary_all(self, block: int) -> None:
        self._vary(self._flow.blocks[block].args)
        for op in self._flow.blocks[block].ops:
            self._vary(op.results)

    def _synchronises(self, block: int) -> bool:
        last = self._flow.blocks[block].last_op
        return isinstance(last, SassInstruction) and last.MNEMONIC == "BSYNC"


def _gathers(op: Operation) -> bool:
    """All threads of the warp wait here for each other."""
    if not isinstance(op, SassInstruction) or COLLECTIVE[0] != op.MNEMONIC or op.guard is not None:
        return False
    return (op.modifiers is not None and op.modifiers.data == "ALL") or op.template.text == "0xffffffff"


def _differs(op: SassInstruction) -> bool:
    """The results differ between threads even if no operand does, or the branch always splits the warp."""
    if isinstance(op, SassBranch):
        return COLLECTIVE[0] == op.MNEMONIC
    if op.name in _EQUALISING:
        return False
    special = next((a.template for a in op.template.data.arguments if a.template.startswith("SR")), None)
    if special is not None:
        return _OF_THE_CTA.fullmatch(special) is None
    does = effects(op)
    return not (does.droppable and does.loads <= _ONE_FOR_ALL) or does.warp or does.clock
