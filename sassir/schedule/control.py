"""Give every operation of an allocated kernel its control code, from the order alone."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from sassir.asm.control import SCOREBOARDS, Control
from sassir.dialect.attributes import ControlAttr
from sassir.dialect.instruction import SassBranch, SassInstruction
from sassir.dialect.operations import INSTRUCTIONS, KernelOp
from sassir.dialect.syntax import written
from sassir.dialect.template import TemplateAttr
from sassir.errors import SchedulingError
from sassir.machine import Machine
from sassir.machine.scoreboards import SIGNAL_DISTANCE
from sassir.schedule.code import Code, code_of
from sassir.schedule.reuse import ReuseFinder, marked
from sassir.schedule.scoreboards import Signals, choose_scoreboards
from sassir.schedule.stalls import LONGEST, find_stalls
from sassir.schedule.waits import find_waits

_LONGEST_KEEPING = 11
"""The largest stall count with which a warp can stay selected."""
_YIELDING = frozenset({"alu", "dispatch", "fma", "fp16", "fp64", "uniform"})
"""Pipes whose instructions give way to other warps when they hold their own for some cycles, as ptxas does."""
_WORTH_YIELDING = 3
_MOST_IDLE = 8
"""NOPs that are put behind one instruction at most; three are enough for the longest fixed latency."""
_DRAINING, _COUNTING = "ERRBAR", "DEPBAR"
"""What lets the pipeline drain behind it, and what always gives way, as ptxas makes them."""


def assign_control(kernel: KernelOp, machine: Machine) -> None:
    """Replace the control codes and operand cache marks of `kernel`, and insert a NOP where no instruction can wait long enough.

    Raises SchedulingError for an operation whose registers or latencies are not known.
    """
    code, stalls = _with_idle(kernel, machine)
    signals = choose_scoreboards(code, stalls)
    waits = find_waits(code, signals)
    _space_signals(code, signals, waits, stalls)
    controls = [_control(code, line, stalls[line], signals[line], waits[line]) for line in range(len(code.ops))]
    marks = _reuse_finder(machine.arch).marks(code, controls)
    for line, op in enumerate(code.ops):
        op.properties["control"] = ControlAttr.of(controls[line])
        if line in marks or ".reuse" in op.template.text:
            op.properties["template"] = marked(op.template, marks.get(line, frozenset[int]()))


def _with_idle(kernel: KernelOp, machine: Machine) -> tuple[Code, list[int]]:
    """The code and its stall counts, with a NOP wherever one is needed."""
    code = code_of(kernel, machine)
    stalls = find_stalls(code, machine)
    for _ in range(_MOST_IDLE):
        too_long = [line for line, stall in enumerate(stalls) if stall > LONGEST]
        if not too_long:
            return code, stalls
        for line in too_long:
            _insert_idle(code.ops[line])
        code = code_of(kernel, machine)
        stalls = find_stalls(code, machine)
    longest = max(stalls)
    op = code.ops[stalls.index(longest)]
    raise SchedulingError(f"`{written(op)}`: what follows must come {longest} cycles later, and no NOP can be put between")


def _insert_idle(op: SassInstruction) -> None:
    """Put a NOP behind an operation, or before it if it ends its block."""
    assert op.parent is not None
    idle = INSTRUCTIONS["NOP"].create(properties={"template": TemplateAttr.of("")})
    if isinstance(op, SassBranch):
        op.parent.insert_op_before(idle, op)
    else:
        op.parent.insert_op_after(idle, op)


@cache
def _reuse_finder(arch: str) -> ReuseFinder:
    return ReuseFinder(arch)


def _space_signals(code: Code, signals: Sequence[Signals], waits: Sequence[int], stalls: list[int]) -> None:
    """A wait sees a signal only some cycles later: lengthen the stall of a signalling line right before one that waits for it."""
    for b, block in enumerate(code.blocks):
        for line in block:
            if waits[line]:
                ends = [] if line > block.start else code.filled(code.cfg.predecessors[b])
                for before in [code.blocks[p][-1] for p in ends] or [line - 1]:
                    if before >= 0 and any([s is not None and waits[line] >> s & 1 for s in signals[before]]):
                        stalls[before] = max(stalls[before], SIGNAL_DISTANCE)


def _control(code: Code, line: int, stall: int, signals: Signals, waits: int) -> Control:
    mnemonic, timing = code.effects[line].kind.mnemonic, code.effects[line].kind.timing
    if mnemonic == _DRAINING:
        stall = 0
    gives_way = not stall or stall > _LONGEST_KEEPING or mnemonic == _COUNTING
    gives_way |= stall >= _WORTH_YIELDING and timing.pipe in _YIELDING
    return Control(stall, gives_way, signals.write, signals.read, tuple([s for s in range(SCOREBOARDS) if waits >> s & 1]))
