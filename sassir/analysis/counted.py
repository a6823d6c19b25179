"""Counted loops: one place where they start again, and a comparison of a counter with a number that stays the same."""

from __future__ import annotations

from typing import NamedTuple

from xdsl.ir import Block, BlockArgument, SSAValue

from sassir.analysis.arguments import Argument, arguments
from sassir.analysis.propagation import Propagation
from sassir.analysis.ranges import COMPLEMENT, LARGEST, LARGEST_SIGNED, MIRROR, Range
from sassir.analysis.region_loops import RegionLoop
from sassir.asm.operand import Operand
from sassir.dialect.edges import decides, forwarded
from sassir.dialect.instruction import SassBranch, SassInstruction


class CountedLoop(NamedTuple):
    """A loop whose only latch goes back while `tested relation bound` holds; `tested` grows by `step` with every iteration."""

    loop: RegionLoop
    latch: SassBranch
    """A guarded BRA; one of its two successors is the header."""
    compare: SassInstruction
    """The ISETP that decides."""
    counter: BlockArgument
    """The argument of the header that counts."""
    tested: SSAValue
    """What is compared: the counter, or its next value."""
    ahead: int
    """What `tested` is more than the counter: 0, or `step`."""
    step: int
    relation: str
    """`LT`, `LE`, `GT`, `GE` or `NE`, as it holds while the loop goes on."""
    signed: bool
    bound: Argument
    """A value from outside of the loop, an immediate or RZ."""
    trips: int | None
    """How often the loop runs each time it is entered, if that is known."""


def counted_loop(loop: RegionLoop, known: Propagation) -> CountedLoop | None:
    """How `loop` counts; None if it does so in no way that is understood."""
    if len(loop.latches) != 1:
        return None
    latch = loop.latches[0].last_op
    if latch is None or not decides(latch) or latch.guard is None:
        return None
    compare = latch.guard.owner
    if not isinstance(compare, SassInstruction) or compare.MNEMONIC != "ISETP" or compare.parent not in loop.blocks:
        return None
    if compare.guard is not None or compare.constant_guard is not None or compare.modifiers is None:
        return None
    name, *modifiers = compare.modifiers.data.split(".")
    operands = arguments(compare)
    first, second, third = [a for a in operands if not a.written][:3]
    if name not in COMPLEMENT or "EX" in modifiers or third.text != "PT" or operands[0].results != (latch.guard,):
        return None
    if (latch.successors[0] is loop.header) == (latch.unless is not None):
        name = COMPLEMENT[name]
    signed = "U32" not in modifiers
    for tested, other, relation in ((first, second, name), (second, first, MIRROR[name])):
        bound = _invariant(loop, other, known)
        found = _counter(loop, latch, tested, known) if bound is not None else None
        if bound is not None and found is not None and _fits(relation, found[2]):
            counter, ahead, step = found
            trips = _trips(loop, counter, ahead, step, relation, signed, bound, known)
            return CountedLoop(loop, latch, compare, counter, tested.values[0], ahead, step, relation, signed, bound, trips)
    return None


def _fits(relation: str, step: int) -> bool:
    """The counter moves towards the bound."""
    return relation == "NE" or (relation in ("LT", "LE") and step > 0) or (relation in ("GT", "GE") and step < 0)


def _invariant(loop: RegionLoop, bound: Argument, known: Propagation) -> Argument | None:
    """The bound as something that can be written outside of the loop; None if it changes in there."""
    number = _number(bound, known)
    if number is not None:
        return Argument(Operand.parse(f"{number & LARGEST:#x}"), (), (), False)
    if bound.constant is not None:
        return bound
    return bound if bound.text == "$" and len(bound.values) == 1 and home(bound.values[0]) not in loop.blocks else None


def home(value: SSAValue) -> Block:
    """The block that defines a value."""
    block = value.owner if isinstance(value.owner, Block) else value.owner.parent
    assert block is not None
    return block


def _counter(loop: RegionLoop, latch: SassBranch, tested: Argument, known: Propagation) -> tuple[BlockArgument, int, int] | None:
    """The counter behind what is tested, how much that is ahead of it, and the step."""
    if tested.text != "$" or len(tested.values) != 1:
        return None
    i = list(latch.successors).index(loop.header)
    for argument, following in zip(loop.header.args, forwarded(latch)[i], strict=True):
        step = difference(following, argument, known)
        if step and tested.values[0] in (argument, following):
            return argument, 0 if tested.values[0] is argument else step, step
    return None


_SUMS = frozenset({"IADD", "IADD3", "IMAD", "UIADD3", "VIADD"})


def difference(value: SSAValue, base: SSAValue, known: Propagation) -> int | None:
    """By how much `value` is more than `base` (modulo 2³², as a signed number); None if that is not a known sum."""
    op = value.owner
    if not isinstance(op, SassInstruction) or op.guard is not None or op.MNEMONIC not in _SUMS:
        return None
    modifiers = op.modifiers.data if op.modifiers is not None else ""
    sources = [a for a in arguments(op) if not a.written]
    if op.MNEMONIC == "IMAD":
        if modifiers != "IADD" or sources[1].text != "0x1":
            return None
        sources = [sources[0], sources[2]]
    elif modifiers:
        return None
    others = [a for a in sources if a.values != (base,) or a.text != "$"]
    if len(others) != len(sources) - 1:
        return None
    total = 0
    for other in others:
        term = _number(other, known)
        if term is None:
            return None
        total += term
    total &= LARGEST
    return total - (LARGEST + 1) if total > LARGEST_SIGNED else total


def _number(argument: Argument, known: Propagation) -> int | None:
    if argument.integer is not None:
        return argument.integer
    if argument.constant is not None:
        return known.constant(*argument.constant)
    if len(argument.values) != 1 or argument.text.lstrip("-") != "$":
        return None
    value = known.range(argument.values[0]).value
    return value if value is None or not argument.text.startswith("-") else -value


TRIPS_LIMIT = 1 << 16
"""Counting stops here."""


def _trips(
    loop: RegionLoop, counter: BlockArgument, ahead: int, step: int, relation: str, signed: bool, bound: Argument, known: Propagation
) -> int | None:
    start = entering(loop, counter, known)
    end = _number(bound, known)
    if start is None or end is None or (start.value is None and (relation == "NE" or max(start.high, end) > LARGEST_SIGNED)):
        return None
    counts = {_count(first + ahead, step, relation, end, signed) for first in start}
    return counts.pop() if len(counts) == 1 else None


def entering(loop: RegionLoop, argument: BlockArgument, known: Propagation) -> Range | None:
    """What an argument of the header can be where the loop is entered; None if it never is."""
    start: Range | None = None
    for block in loop.header.predecessors():
        last = block.last_op
        if block in loop.blocks or block not in known.reached or last is None:
            continue
        for successor, values in zip(last.successors, forwarded(last), strict=False):
            if successor is loop.header:
                found = known.range(values[argument.index])
                start = found if start is None else start.join(found)
    return start


def _count(tested: int, step: int, relation: str, end: int, signed: bool) -> int | None:
    """The iterations from a first tested value on; the nearer that is to the end, the fewer, as long as nothing wraps around."""
    trips = 1
    while trips < TRIPS_LIMIT and _holds(relation, tested, end, signed):
        tested += step
        trips += 1
    return trips if trips < TRIPS_LIMIT and (relation == "NE" or abs(tested) <= LARGEST_SIGNED) else None


def _holds(relation: str, a: int, b: int, signed: bool) -> bool:
    a, b = a & LARGEST, b & LARGEST
    if signed:
        a, b = a ^ (LARGEST_SIGNED + 1), b ^ (LARGEST_SIGNED + 1)
    return {"LT": a < b, "LE": a <= b, "GT": a > b, "GE": a >= b, "NE": a != b}[relation]
