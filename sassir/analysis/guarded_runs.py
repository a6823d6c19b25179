"""Operations in a row, in a loop, each with a fast way and a slow one: inlined division, square root, reciprocal.

The compiler tests the operands of each and branches. Both ways meet again:

    start:  …  BSSY B0, join  …  if (unusual operand) call the slow routine, else the fast way  →  meeting:  BSYNC B0  →  join:  …

A run is a chain of these where the join of one is the start of the next. What lies between can run before it is known which way is
taken, as long as it has no effect, and no load from an address that the slow way decides. Stores can wait until all is known, if no
load behind them may read what they write.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from xdsl.ir import Block, Operation, SSAValue

from sassir.analysis.calls import Calls, match_calls
from sassir.analysis.cfg import Cfg
from sassir.analysis.effects import effects
from sassir.analysis.flow import Flow, flow_of
from sassir.analysis.loops import loops_of
from sassir.analysis.memory import UNCHANGING, access, may_overlap, orders_memory
from sassir.analysis.pointers import pointers_of
from sassir.dialect import internals
from sassir.dialect.edges import decides, forwarded
from sassir.dialect.facts import KernelFacts, facts_of
from sassir.dialect.instruction import SassBranch, SassInstruction
from sassir.dialect.operations import KernelOp, LabelOp, NextOp
from sassir.dialect.registers import UP, UR, B, file_of

_ENDS = frozenset({"BPT", "EXIT", "KILL"})


class Guard(NamedTuple):
    """One operation with a fast and a slow way."""

    start: Block
    branch: SassBranch
    """Ends `start`."""
    barrier: SassInstruction
    """The BSSY in `start`."""
    fast: int
    """The successor of the branch that is the fast way."""
    between: Block | None
    """What runs on the fast way only; None if that leads to `meeting` at once."""
    cold: tuple[Block, ...]
    """What runs on the slow way only, the routine aside."""
    meeting: Block
    """Ends with BSYNC."""
    join: Block


class GuardedRun(NamedTuple):
    """Guards one behind the other, at least one."""

    guards: tuple[Guard, ...]
    loop: frozenset[Block]
    """The innermost loop around them."""
    decided: frozenset[SSAValue]
    """What depends on which way was taken; the results of the fast ways among it."""
    waiting: tuple[Operation, ...]
    """The stores between the guards, in order."""

    @property
    def trace(self) -> list[Block]:
        """The blocks behind the first start on the fast ways, up to the last meeting."""
        found: list[Block] = []
        for i, guard in enumerate(self.guards):
            found += [guard.start] if i else []
            found += [guard.between] if guard.between is not None else []
            found.append(guard.meeting)
        return found

    @property
    def barriers(self) -> set[SSAValue]:
        """The convergence barriers of the guards, and what they are called on the fast ways."""
        found: set[SSAValue] = set()
        for guard in self.guards:
            found.add(guard.barrier.results[0])
            end = guard.branch if guard.between is None else guard.between.last_op
            if guard.between is not None:
                found |= {a for a, v in zip(guard.between.args, passed(guard.branch, guard.between), strict=True) if v in found}
            found |= {a for a, v in zip(guard.meeting.args, passed(end, guard.meeting), strict=True) if v in found}
        return found


def guarded_runs(kernel: KernelOp) -> list[GuardedRun]:
    """The longest runs in the innermost loops of `kernel`. No two share a block, but a join may be the next run's start."""
    search, facts = _Search(kernel), facts_of(kernel)
    guards = {guard.start: guard for guard in search.guards()}
    if not guards:
        return []
    pointers = pointers_of(kernel.body, facts)
    found: list[GuardedRun] = []
    while guards:
        start, guard = next(iter(guards.items()))
        run, decided, waiting = [guards.pop(start)], search.decided(guard, frozenset()), list[Operation]()
        while (following := guards.get(run[-1].join)) is not None:
            stores = _stores_to_wait(following, decided, waiting, facts, pointers)
            if stores is None:
                break
            waiting += stores
            run.append(guards.pop(following.start))
            decided = search.decided(following, decided)
        found.append(GuardedRun(tuple(run), search.loop_of(start), decided, tuple(waiting)))
    return found


def _stores_to_wait(
    guard: Guard, decided: frozenset[SSAValue], waiting: Sequence[Operation], facts: KernelFacts, pointers: Mapping[SSAValue, int]
) -> list[Operation] | None:
    """The stores in front of a guard that have to wait, if all else there may run early; None if something may not."""
    stores: list[Operation] = []
    for op in [op for op in before_last(guard.start) if op is not guard.barrier]:
        if may_wait(op):
            stores.append(op)
        elif not runs_early(op, decided) or any(not may_pass(op, store, facts, pointers) for store in (*waiting, *stores)):
            return None
    return stores


def may_wait(op: Operation) -> bool:
    """Whether `op` is a plain store, which may come later than what is known not to touch the same memory."""
    found = access(op, {})
    return found is not None and found.writes and not op.results and not orders_memory(op)


def may_pass(op: Operation, store: Operation, facts: KernelFacts, pointers: Mapping[SSAValue, int]) -> bool:
    """Whether `op`, which runs early, may come before a store that it was behind."""
    if not effects(op).loads - UNCHANGING:
        return True
    load, before = access(op, pointers), access(store, pointers)
    return load is not None and before is not None and not may_overlap(load, before, facts)


def runs_early(op: Operation, decided: Collection[SSAValue]) -> bool:
    """Whether `op` may run before it is known that the values `decided` are right: its results can then be thrown away.

    It does nothing but to compute them, loads from no address that may be wrong, and writes no uniform register, which other
    threads of the warp would see.
    """
    if isinstance(op, LabelOp):
        return True
    if not isinstance(op, SassInstruction) or op.link is not None or op.place is not None:
        return False
    does = effects(op)
    if not does.droppable or does.warp or does.clock or any(file_of(r) in (UR.FILE, UP.FILE, B.FILE) for r in op.results):
        return False
    return not does.loads or not any(value in decided for value in (*op.reads, op.guard))


def before_last(block: Block) -> Iterator[Operation]:
    """The operations of a block before its last one."""
    return (op for op in block.ops if op is not block.last_op)


def depending(ops: Iterable[Operation], values: Collection[SSAValue]) -> frozenset[SSAValue]:
    """`values`, and the results of those of `ops`, which are in order, that depend on one of them."""
    found = set(values)
    for op in ops:
        if not found.isdisjoint(internals.operands(op)):
            found.update(op.results)
    return frozenset(found)


class _Search:
    def __init__(self, kernel: KernelOp) -> None:
        self.flow: Flow = flow_of(kernel.body)
        self.calls: Calls = match_calls(self.flow)
        self.cfg = self.calls.cfg
        self.loops = loops_of(self.cfg)
        exits = [b for b, targets in enumerate(self.cfg.successors) if not targets]
        self.postdominators = Cfg(self.cfg.predecessors, exits).dominators

    def loop_of(self, block: Block) -> frozenset[Block]:
        loop = self.loops.innermost[self.flow.number[block]]
        return frozenset([self.flow.blocks[b] for b in loop.blocks()]) if loop is not None else frozenset()

    def guards(self) -> Iterator[Guard]:
        """The guards in innermost loops, in the order of the code."""
        for b, block in enumerate(self.flow.blocks):
            loop = self.loops.innermost[b]
            if loop is not None and not loop.inner and (guard := self._guard(b, block)) is not None:
                yield guard

    def _guard(self, b: int, block: Block) -> Guard | None:
        branch = block.last_op
        end = self.postdominators[b]
        if branch is None or not decides(branch) or end < 0 or branch.successors[0] is branch.successors[1]:
            return None
        ways = [self._way(self.flow.number[s], end) for s in branch.successors]
        slow = [way is not None and any(w in self.calls.callee for w in way) for way in ways]
        if slow[0] == slow[1] or None in ways:
            return None
        fast = slow.index(False)
        short, cold, meeting = ways[fast] or (), ways[1 - fast] or (), self.flow.blocks[end]
        barrier = _barrier(block, meeting)
        if barrier is None or len(short) > 1 or len(self.cfg.predecessors[end]) != 2 or not self._comes_back(cold):
            return None
        join = self._join(meeting, barrier)
        between = self.flow.blocks[short[0]] if short else None
        inner = [*before_last(meeting), *(before_last(between) if between is not None else ())]
        slow_way = tuple([self.flow.blocks[w] for w in cold])
        plain = between is None or _only_goes_on(between.last_op)
        if join is None or not plain or self._slow_end(slow_way) is None or not all(_only_computes(op) for op in inner):
            return None
        return Guard(block, branch, barrier, fast, between, slow_way, meeting, join)

    def _way(self, first: int, end: int) -> tuple[int, ...] | None:
        """The blocks from `first` until `end`, in order, if each has one block before and one behind it."""
        found: list[int] = []
        while first != end:
            if len(self.cfg.successors[first]) != 1 or len(self.cfg.predecessors[first]) != 1:
                return None
            found.append(first)
            first = self.cfg.successors[first][0]
        return tuple(found)

    def _comes_back(self, cold: Iterable[int]) -> bool:
        """No thread ends on a slow way, or in a routine that it calls, and none runs code that is not known."""
        blocks = set(cold).union(*[self.calls.reached(self.calls.callee[b], into=True) for b in cold if b in self.calls.callee])
        ends = [b for b in blocks if not self.calls.successors[b] and b not in self.calls.callers]
        return not ends and not any(_leaves(op) for b in blocks for op in self.flow.blocks[b].ops)

    def _join(self, meeting: Block, barrier: SassInstruction) -> Block | None:
        """Where the threads go on together: behind `meeting`, at the place that the barrier names, and from nowhere else."""
        last = meeting.last_op
        if last is None or len(last.successors) != 1:
            return None
        join = last.successors[0]
        named = any(isinstance(op, LabelOp) and op.private is not None and op.label == barrier.place for op in join.ops)
        return join if named and len(self.cfg.predecessors[self.flow.number[join]]) == 1 and not join.args else None

    def decided(self, guard: Guard, before: frozenset[SSAValue]) -> frozenset[SSAValue]:
        """`before` with the values that the slow way of `guard` gives and that are not those before it, and what depends on them."""
        between = () if guard.between is None else tuple(before_last(guard.between))
        found = set(depending([*before_last(guard.start), *between], before))
        fast = passed(guard.branch if guard.between is None else guard.between.last_op, guard.meeting)
        slow = passed(self._slow_end(guard.cold), guard.meeting)
        for argument, quick, other in zip(guard.meeting.args, fast, slow, strict=True):
            if quick in found or self._before_call(guard, other) is not quick:
                found.add(argument)
        return depending([*before_last(guard.meeting), *before_last(guard.join)], found)

    def _slow_end(self, cold: Sequence[Block]) -> Operation | None:
        """What leads from a slow way to the meeting: a branch, or the RET of a routine; None if it has several."""
        number = self.flow.number[cold[-1]]
        ends = [end for end, callers in self.calls.callers.items() if number in callers] or [number]
        return self.flow.blocks[ends[0]].last_op if len(ends) == 1 else None

    def _before_call(self, guard: Guard, value: SSAValue) -> SSAValue:
        """What `value` was before the routine of the slow way, if that only hands it through.

        In SSA form all callers share the arguments of a function, and what they have in registers is among them.
        """
        calls = [block for block in guard.cold if self.flow.number[block] in self.calls.callee]
        if len(calls) == 1 and calls[0].last_op is not None:
            first = self.flow.blocks[self.calls.callee[self.flow.number[calls[0]]]]
            return next((passed for a, passed in zip(first.args, forwarded(calls[0].last_op)[0], strict=True) if a is value), value)
        return value


def _only_computes(op: Operation) -> bool:
    """It may run where it did not: it does nothing but to compute, and reads no constant outside of its bank."""
    does = effects(op)
    return does.pure and runs_early(op, ()) and not (does.loads and isinstance(op, SassInstruction) and op.reads)


def _only_goes_on(op: Operation | None) -> bool:
    """Control goes to one place, whatever the operands are."""
    return isinstance(op, NextOp) or (
        isinstance(op, SassBranch) and op.MNEMONIC == "BRA" and op.guard is None and op.constant_guard is None and not op.reads
    )


def _leaves(op: Operation) -> bool:
    """A thread may end here, or run code of another section."""
    return isinstance(op, SassInstruction) and (op.MNEMONIC in _ENDS or (isinstance(op, SassBranch) and op.produces))


def passed(terminator: Operation | None, target: Block) -> Sequence[SSAValue]:
    """What the last operation of a block passes to `target`, which is one of its successors."""
    assert terminator is not None
    return forwarded(terminator)[list(terminator.successors).index(target)]


def _barrier(start: Block, meeting: Block) -> SassInstruction | None:
    """The BSSY of `start` for which the BSYNC at the end of `meeting` waits, if `start` has no other."""
    found = [op for op in start.ops if isinstance(op, SassInstruction) and op.MNEMONIC == "BSSY"]
    last = meeting.last_op
    if len(found) != 1 or not isinstance(last, SassInstruction) or last.MNEMONIC != "BSYNC" or last.guard is not None:
        return None
    same = [v.type for v in last.reads] == [r.type for r in found[0].results]
    return found[0] if same and found[0].guard is None else None
