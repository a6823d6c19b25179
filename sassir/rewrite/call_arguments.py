"""Values that a call hands through its function although nobody needs them behind.

In SSA form all callers share the arguments of a function, and what one of them still needs behind its call is handed through for
all. For the others that is a value which stays alive for nothing, often around a whole loop.
"""

from __future__ import annotations

from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from sassir.analysis.calls import Calls, match_calls
from sassir.analysis.effects import effects
from sassir.analysis.flow import flow_of
from sassir.dialect import internals
from sassir.dialect.edges import forwarded, own_operands, pass_values
from sassir.dialect.operations import KernelOp, UndefinedOp
from sassir.dialect.registers import SassRegister
from sassir.translate.shape import members


def pass_only_needed(kernel: KernelOp) -> int:
    """Let no call pass what nobody needs in its function or behind it. Returns the number of values that are now undefined."""
    need = _Need(kernel)
    dropped = 0
    for caller, first in need.callee.items():
        call = caller.last_op
        assert call is not None
        passed = [*forwarded(call)[0]]
        for i, argument in enumerate(first.args):
            if (caller, argument) not in need.passed and isinstance(argument.type, SassRegister) and argument.type.number is None:
                caller.insert_op_before(undefined := UndefinedOp.of(argument.type), call)
                passed[i] = undefined.value
                dropped += 1
        pass_values(call, [passed])
    return dropped


class _Need:
    """What anything with an effect depends on, each call seen by itself: marked backwards from the effects."""

    def __init__(self, kernel: KernelOp) -> None:
        flow = flow_of(kernel.body)
        calls = match_calls(flow)
        self.callee = {flow.blocks[b]: flow.blocks[first] for b, first in calls.callee.items()}
        self.passed: set[tuple[Block, SSAValue]] = set()
        """Calls, by their block, and the arguments that must get the value passed."""
        self._values: set[SSAValue] = set()
        self._work: list[tuple[SSAValue, Block]] = []
        """Values, and where they are read."""
        self._callers = {first: _callers_behind(first, calls) for first in set(calls.callee.values())}
        self._flow = flow
        self._sources: dict[SSAValue, list[tuple[SSAValue, Block]]] = {}
        for block in flow.blocks:
            for op in block.ops:
                if op is block.last_op:
                    self._read(own_operands(op), block)
                    for successor, values in zip(op.successors, forwarded(op), strict=False):
                        for argument, value in zip(successor.args, values, strict=False):
                            self._sources.setdefault(argument, []).append((value, block))
                elif not op.results or not effects(op).droppable:
                    self._read(internals.operands(op), block)
        while self._work:
            self._mark(*self._work.pop())

    def _read(self, values: tuple[SSAValue, ...], block: Block) -> None:
        self._work += [(value, block) for value in values]

    def _mark(self, value: SSAValue, block: Block) -> None:
        """`value` is needed in `block`."""
        home = value.owner
        number = self._flow.number
        if isinstance(home, Block) and number[home] in self._callers:
            for b in members(self._callers[number[home]][number[block]]):
                caller = self._flow.blocks[b]
                if (caller, value) not in self.passed:
                    self.passed.add((caller, value))
                    self._work += [(passed, before) for passed, before in self._sources[value] if before is caller]
            self._work += [(v, b) for v, b in self._sources[value] if b not in self.callee and value not in self._values]
            self._values.add(value)
        elif value not in self._values:
            self._values.add(value)
            if isinstance(value, BlockArgument):
                self._work += self._sources.get(value, [])
            elif isinstance(home, Operation) and home.parent is not None and home is not home.parent.last_op:
                self._read(internals.operands(home), home.parent)


def _callers_behind(first: int, calls: Calls) -> list[int]:
    """For each block the calls of the function (as bits, by block) from which control may have come back last; all in functions."""
    everyone = sum(1 << b for b, to in calls.callee.items() if to == first)
    main = calls.reached(0)
    found = [0 if b in main else everyone for b in range(len(calls.successors))]
    work = [b + 1 for b in members(everyone)]
    for b in members(everyone):
        found[b + 1] |= 1 << b
    while work:
        b = work.pop()
        behind = 0 if everyone >> b & 1 else found[b]
        for s in calls.successors[b]:
            if behind & ~found[s]:
                found[s] |= behind
                work.append(s)
    return found
