"""Give every operation of an allocated kernel its control code, from the order alone."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from sassir.asm.control import SCOREBOARDS, Control
from sassir.dialect.attributes import ControlAttr
from sassir.dialect.instruction import SassBranch
from sassir.dialect.operations import KernelOp, operation_class
from sassir.dialect.syntax import written
from sassir.dialect.template import TemplateAttr
from sassir.errors import SchedulingError
from sassir.machine import Machine
from sassir.schedule.code import Code, code_of
from sassir.schedule.reuse import ReuseFinder, marked
from sassir.schedule.scoreboards import Signals, choose_scoreboards
from sassir.schedule.stalls import LONGEST, find_stalls
from sassir.schedule.waits import find_waits

_SIGNAL_TO_WAIT = 2
"""Cycles from a signal to the first wait that sees it (Huerta et al., MICRO 2025)."""
_LONGEST_KEEPING = 11
"""The largest stall count with which a warp can stay selected."""
_YIELDING = frozenset({"alu", "dispatch", "fma", "fp16", "fp64", "uniform"})
"""Pipes whose instructions give way to other warps when they hold their own for some cycles, as ptxas does."""
_WORTH_YIELDING = 3
_MOST_IDLE = 8
"""NOPs that are put behind one instruction at most; three are enough for the longest fixed latency."""
_DRAINING = "ERRBAR"
"""What lets the pipeline drain behind it, as ptxas always makes it."""


def assign_control(kernel: KernelOp, machine: Machine) -> None:
    """Replace the control codes and operand cache marks of `kernel`, and insert a NOP where no instruction can wait long enough.

    Raises SchedulingError for an operation whose registers or latencies are not known.
    """
    code = code_of(kernel, machine)
    stalls = find_stalls(code, machine)
    for _ in range(_MOST_IDLE):
        if not _insert_idle(code, stalls):
            break
        code = code_of(kernel, machine)
        stalls = find_stalls(code, machine)
    if max(stalls, default=0) > LONGEST:
        op = code.ops[stalls.index(max(stalls))]
        raise SchedulingError(f"`{written(op)}`: what follows must come {max(stalls)} cycles later, and no NOP can be put between")
    signals = choose_scoreboards(code, stalls)
    waits = find_waits(code, signals)
    _space_signals(code, signals, waits, stalls)
    controls = [_control(code, line, stalls[line], signals[line], waits[line]) for line in range(len(code.ops))]
    marks = _reuse_finder(machine.arch).marks(code, controls)
    for line, op in enumerate(code.ops):
        op.properties["control"] = ControlAttr.of(controls[line])
        if line in marks or ".reuse" in op.template.text:
            op.properties["template"] = marked(op.template, marks.get(line, frozenset()))


@cache
def _reuse_finder(arch: str) -> ReuseFinder:
    return ReuseFinder(arch)


def _insert_idle(code: Code, stalls: Sequence[int]) -> bool:
    """Put a NOP behind each line that would have to wait too long, before it if it ends the block; False if there is none."""
    too_long = [line for line, stall in enumerate(stalls) if stall > LONGEST]
    for line in too_long:
        op = code.ops[line]
        idle = operation_class("NOP", ()).create(properties={"template": TemplateAttr.of("")})  # type: ignore[union-attr]
        assert op.parent is not None
        if isinstance(op, SassBranch):
            op.parent.insert_op_before(idle, op)
        else:
            op.parent.insert_op_after(idle, op)
    return bool(too_long)


def _space_signals(code: Code, signals: Sequence[Signals], waits: Sequence[int], stalls: list[int]) -> None:
    """A wait sees a signal only some cycles later: lengthen the stall of a signalling line right before one that waits for it."""
    for b, block in enumerate(code.blocks):
        for line in block:
            if not waits[line]:
                continue
            lines_before = [line - 1] if line > block.start else [code.blocks[p][-1] for p in code.cfg.predecessors[b] if code.blocks[p]]
            for before in lines_before:
                if any([s is not None and waits[line] >> s & 1 for s in signals[before]]):
                    stalls[before] = max(stalls[before], _SIGNAL_TO_WAIT)


def _control(code: Code, line: int, stall: int, signals: Signals, waits: int) -> Control:
    mnemonic, timing = code.effects[line].kind.mnemonic, code.effects[line].kind.timing
    if mnemonic == _DRAINING:
        stall = 0
    gives_way = not stall or stall > _LONGEST_KEEPING or (stall >= _WORTH_YIELDING and timing.pipe in _YIELDING)
    return Control(stall, gives_way, signals.write, signals.read, tuple([s for s in range(SCOREBOARDS) if waits >> s & 1]))
