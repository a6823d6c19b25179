"""Calls inside of a kernel, matched with the returns that belong to them.

In SSA form every RET leads to all places where a call of its function comes back, since the graph knows no call stack. Here a
call leads to the block behind it, and a RET nowhere.
"""

from __future__ import annotations

from typing import NamedTuple

from sassir.analysis.cfg import Cfg
from sassir.analysis.flow import Flow
from sassir.dialect.instruction import SassBranch


class Calls(NamedTuple):
    """By block number."""

    successors: list[list[int]]
    """Where control goes next, with calls as one step."""
    callee: dict[int, int]
    """For the blocks that end in a call of a function of this kernel, its first block."""
    callers: dict[int, list[int]]
    """For the blocks that end in a RET, those that end in a call which it returns from."""

    def reached(self, first: int, into: bool = False) -> set[int]:
        """The blocks to which control comes from block `first`, with calls as one step, or also `into` what they call."""
        seen: set[int] = set()
        work = [first]
        while work:
            block = work.pop()
            if block not in seen:
                seen.add(block)
                work += self.successors[block]
                work += [self.callee[block]] if into and block in self.callee else []
        return seen

    @property
    def cfg(self) -> Cfg:
        """The graph of the code that the entry reaches, with calls as one step; functions are no part of it."""
        reached = self.reached(0)
        return Cfg([targets if b in reached else [] for b, targets in enumerate(self.successors)], [0])


def match_calls(flow: Flow) -> Calls:
    """The calls without guard whose function returns to the block behind them.

    Any other call is a branch, and then a RET of its function goes wherever its edges lead.
    """
    ends = [block.last_op for block in flow.blocks]
    edges = [[flow.number[s] for s in op.successors] if op is not None else [] for op in ends]
    branches = {b: op for b, op in enumerate(ends) if isinstance(op, SassBranch)}
    calls = {b: edges[b][0] for b, op in branches.items() if op.MNEMONIC == "CALL" and len(op.successors) == 1 and not op.produces}
    returns = {b for b, op in branches.items() if op.MNEMONIC == "RET"}
    places = {place for b in returns for place in edges[b]}
    successors = [[b + 1] if b in calls and b + 1 in places else targets for b, targets in enumerate(edges)]
    of_function = {first: [b for b in _reached(first, successors) if b in returns] for first in dict.fromkeys(calls.values())}
    callee = {b: first for b, first in calls.items() if any(b + 1 in edges[end] for end in of_function[first])}
    callers: dict[int, list[int]] = {end: [] for end in returns}
    for b, first in callee.items():
        for end in of_function[first]:
            callers[end].append(b)
    for b in calls.keys() - callee.keys():
        successors[b] = edges[b]
    for end, before in callers.items():
        if {*edges[end]} <= {b + 1 for b in before}:
            successors[end] = []
    return Calls(successors, callee, callers)


def _reached(start: int, successors: list[list[int]]) -> set[int]:
    seen: set[int] = set()
    work = [start]
    while work:
        block = work.pop()
        if block not in seen:
            seen.add(block)
            work += successors[block]
    return seen
