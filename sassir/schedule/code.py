"""A kernel as the assigner of control codes sees it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sassir.analysis.cfg import Cfg
from sassir.analysis.flow import flow_of
from sassir.analysis.loops import loops_of
from sassir.dialect.instruction import SassBranch, SassInstruction
from sassir.dialect.operations import KernelOp
from sassir.machine import Machine
from sassir.machine.spacing import GROUP_WAIT
from sassir.schedule.effects import Effects, effects

_ITERATIONS = 10
"""How often a loop is expected to go round."""


class Code(NamedTuple):
    """Operations in the order in which they will be emitted, and the blocks they form. A line is a place in that order."""

    ops: Sequence[SassInstruction]
    effects: Sequence[Effects]
    """By line."""
    blocks: Sequence[range]
    """The lines of each block."""
    cfg: Cfg
    """Edges between blocks; none from a call of unknown code to the place where it comes back."""
    leaving: frozenset[int]
    """Blocks that end with a jump to unknown code: a call of another section, or a return to one."""
    weights: Sequence[int]
    """How often each block is expected to run."""

    def filled(self, blocks: Sequence[int]) -> list[int]:
        """The same blocks, but for one without lines those from which control comes to it."""
        found: dict[int, None] = {}
        work = list(blocks)
        for b in work:
            if self.blocks[b]:
                found[b] = None
            else:
                work += [p for p in self.cfg.predecessors[b] if p not in work]
        return list(found)


def code_of(kernel: KernelOp, machine: Machine) -> Code:
    """The code of an allocated kernel. Raises SchedulingError for an operation whose registers or latencies are not known."""
    flow = flow_of(kernel.body)
    ops: list[SassInstruction] = []
    blocks: list[range] = []
    leaving: set[int] = set()
    for b, block in enumerate(flow.blocks):
        start = len(ops)
        ops += [op for op in block.ops if isinstance(op, SassInstruction)]
        blocks.append(range(start, len(ops)))
        last = block.last_op
        if isinstance(last, SassBranch) and not flow.cfg.successors[b] and (last.produces or last.MNEMONIC == "RET"):
            leaving.add(b)
    loops = loops_of(flow.cfg)
    weights = [_ITERATIONS ** loops.depth(b) for b in range(len(blocks))]
    facts = [effects(op, machine) for op in ops]
    for block in blocks:
        _await_before_products(facts, block)
    return Code(ops, facts, blocks, flow.cfg, frozenset(leaving), weights)


def _await_before_products(facts: list[Effects], block: range) -> None:
    """Let WARPGROUP.ARRIVE touch what the products behind it do: late accesses to that are awaited there, as ptxas does."""
    read = written = 0
    for line in reversed(block):
        kind = facts[line].kind
        if kind.timing.group:
            read |= facts[line].read
            written |= facts[line].written
        elif kind.mnemonic == "WARPGROUP":
            if GROUP_WAIT not in kind.spacing.kinds:
                own = facts[line]
                facts[line] = own._replace(read=own.read | read, written=own.written | written, touched=own.touched | read | written)
            read = written = 0
