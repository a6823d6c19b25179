"""Copies of a counted loop in a row: all of its iterations, or several at a time."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple, Protocol

from xdsl.ir import Block, SSAValue

from sassir.analysis.counted import CountedLoop
from sassir.analysis.region_loops import RegionLoop
from sassir.dialect.edges import forwarded
from sassir.dialect.instruction import SassBranch, SassInstruction
from sassir.dialect.operations import KernelOp
from sassir.dialect.registers import R
from sassir.rewrite.build import addition, instruction, signed
from sassir.rewrite.clone import Values, clone_blocks, definitions_first, join_across_calls, join_definitions, operands_of
from sassir.rewrite.flow import enter_at
from sassir.rewrite.layout import branch, drop_terminator, jump, redirect, replace_terminator


class Latched(Protocol):
    """A loop that one guarded BRA continues or leaves."""

    @property
    def loop(self) -> RegionLoop:
        """Its blocks."""
        ...

    @property
    def latch(self) -> SassBranch:
        """The branch."""
        ...


class _Copy(NamedTuple):
    """One iteration."""

    header: Block
    latch: Block
    values: Values
    """From the values of the original loop to those of the copy."""
    again: list[SSAValue]
    """What the latch passes to the header of the next iteration."""
    done: list[SSAValue]
    """What the latch passes to the block behind the loop."""


def unroll_completely(kernel: KernelOp, counted: Latched, trips: int) -> None:
    """Put copies in front of a loop that always runs `trips` times, and let the loop itself be the last iteration."""
    copies = _copies(kernel, counted, trips - 1)
    done = forwarded(counted.latch)[_directions(counted)[1]]
    replace_terminator(counted.loop.latches[0], jump(_exit(counted), done))
    if not copies:
        return
    enter_at(copies[0].header, counted.loop.header, counted.loop.blocks)
    _connect(copies)
    replace_terminator(copies[-1].latch, jump(counted.loop.header, copies[-1].again))
    _join(kernel, counted, copies)


def unroll_evenly(kernel: KernelOp, counted: CountedLoop, factor: int) -> None:
    """Run `factor` iterations between two tests of a loop that always runs a multiple of so many times: the last one tests."""
    copies = _copies(kernel, counted, factor - 1)
    enter_at(copies[0].header, counted.loop.header, counted.loop.blocks)
    _connect(copies)
    replace_terminator(copies[-1].latch, jump(counted.loop.header, copies[-1].again))
    redirect(counted.loop.latches[0], counted.loop.header, copies[0].header)
    _join(kernel, counted, copies)


def unroll(kernel: KernelOp, counted: CountedLoop, factor: int, arch: str) -> None:
    """Run `factor` iterations between two tests for as long as so many are due; the rest runs in the original loop.

    The distance from the counter to the bound, which must be at least that of the last of them, is taken modulo 2³²: it is
    exact while the loop's own test holds, and that is part of the new one, so that nothing is assumed about wrapping around.
    """
    header, latch = counted.loop.header, counted.latch
    copies = _copies(kernel, counted, factor)
    entry = Block(arg_types=[a.type for a in header.args])
    kernel.body.insert_block_before(entry, copies[0].header)
    enter_at(entry, header, counted.loop.blocks)
    start = entry.args[counted.counter.index]
    if counted.ahead:
        entry.add_op(first := addition("$R", signed(counted.ahead), [start], arch))
        start = first.results[0]
    entry.add_op(own := _own_test(counted, start))
    enough = _test(entry, counted, start, own.results[0], factor - 2, arch)
    entry.add_op(branch(enough, copies[0].header, entry.args, header, entry.args))
    _connect(copies)
    last = copies[-1]
    rest = Block()
    kernel.body.insert_block_after(rest, last.latch)
    assert latch.guard is not None
    own_guard = last.values[latch.guard]
    negated = (latch.successors[0] is header) == (latch.unless is not None)
    drop_terminator(last.latch)
    enough = _test(last.latch, counted, last.values.get(counted.tested, counted.tested), own_guard, factor - 1, arch, negated)
    last.latch.add_op(branch(enough, copies[0].header, last.again, rest, []))
    if negated:
        rest.add_op(branch(own_guard, _exit(counted), last.done, header, last.again))
    else:
        rest.add_op(branch(own_guard, header, last.again, _exit(counted), last.done))
    _join(kernel, counted, copies)


def _copies(kernel: KernelOp, counted: Latched, count: int) -> list[_Copy]:
    """Copies of the loop in front of it, in the order in which they are to run; each still ends with its own test."""
    blocks = [b for b in kernel.body.blocks if b in counted.loop.blocks]
    place = blocks[0].prev_block
    assert place is not None
    again, done = (forwarded(counted.latch)[i] for i in _directions(counted))
    order = definitions_first(kernel, blocks)
    found: list[_Copy] = []
    for _ in range(count):
        values: Values = {}
        made = clone_blocks(kernel, blocks, place, values, order)
        place = made[blocks[-1]]
        latch = made[counted.loop.latches[0]]
        found.append(_Copy(made[counted.loop.header], latch, values, operands_of(values, again), operands_of(values, done)))
    return found


def _join(kernel: KernelOp, counted: Latched, copies: list[_Copy]) -> None:
    """Let the uses of values behind or in the copies get what control brings there."""
    values = [copy.values for copy in copies]
    if counted.loop.calls:
        join_across_calls(kernel, values)
    else:
        join_definitions(kernel, values)


def _connect(copies: list[_Copy]) -> None:
    for this, following in pairwise(copies):
        replace_terminator(this.latch, jump(following.header, this.again))


def _directions(counted: Latched) -> tuple[int, int]:
    """Which successor of the latch is the header, and which leads out of the loop."""
    i = list(counted.latch.successors).index(counted.loop.header)
    return i, 1 - i


def _exit(counted: Latched) -> Block:
    return counted.latch.successors[_directions(counted)[1]]


def _own_test(counted: CountedLoop, tested: SSAValue) -> SassInstruction:
    """The loop's own comparison of `tested` with the bound: true while it goes on."""
    sign = "" if counted.signed else ".U32"
    text, values = _bound(counted)
    return instruction(f"ISETP.{counted.relation}{sign}.AND =P, PT, $R, {text}, PT", [tested, *values])


def _test(
    block: Block, counted: CountedLoop, tested: SSAValue, own: SSAValue, more: int, arch: str, negated: bool = False
) -> SSAValue:
    """Add to `block`: the loop goes on (`own`) after a value `tested`, and so it does for the `more` next ones."""
    text, values = _bound(counted)
    if counted.step > 0:
        distance = addition("-$R", text, [tested, *values], arch)
    elif counted.bound.integer is not None:
        distance = addition("$R", signed(-counted.bound.integer), [tested], arch)
    else:
        distance = addition("$R", f"-{text}", [tested, *values], arch)
    relation = "GE" if counted.relation in ("LE", "GE") else "GT"
    guard = "!$P" if negated else "$P"
    reach = more * abs(counted.step)
    test = instruction(f"ISETP.{relation}.U32.AND =P, PT, $R, {reach:#x}, {guard}", [distance.results[0], own])
    block.add_ops([distance, test])
    return test.results[0]


def _bound(counted: CountedLoop) -> tuple[str, tuple[SSAValue, ...]]:
    """The bound as an operand."""
    if counted.bound.integer is not None:
        return ("RZ" if counted.bound.integer == 0 else signed(counted.bound.integer)), ()
    if counted.bound.values:
        return ("$R" if isinstance(counted.bound.values[0].type, R) else "$UR"), counted.bound.values
    return counted.bound.text, ()
