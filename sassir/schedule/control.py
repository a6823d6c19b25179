"""Give every instruction of a kernel its control code, from nothing: scoreboards, waits, stall counts, yield, operand reuse."""

from __future__ import annotations

from collections.abc import Sequence

from sassir.analysis.cfg import Cfg
from sassir.asm.control import SCOREBOARDS, Control
from sassir.asm.instruction import Instruction
from sassir.machine import Machine
from sassir.schedule.code import Code
from sassir.schedule.effects import effects
from sassir.schedule.reuse import find_reuse, marked
from sassir.schedule.scoreboards import Chooser
from sassir.schedule.stalls import Stalls
from sassir.schedule.waits import Waits

LONGEST = 15
LONGEST_KEEPING = 11
"""The largest stall count, and the largest with which the warp may stay selected."""


def assign(
    instructions: Sequence[Instruction], blocks: Sequence[range], successors: Sequence[Sequence[int]], calls: frozenset[int], machine: Machine
) -> list[Instruction]:
    """`instructions` with their control codes; `blocks` divides them. Behind a block in `calls`, code that is not known runs first.

    Raises SchedulingError for an instruction whose registers or latencies are not known.
    """
    forwarding = [[] if b in calls else [*out] for b, out in enumerate(successors)]
    cfg = Cfg(forwarding, [0, *[s for b in calls for s in successors[b]]])
    instructions = [i._replace(operands=tuple([o.without_reuse() for o in i.operands])) for i in instructions]
    facts = [effects(instruction, machine) for instruction in instructions]
    leaving = frozenset(
        b for b, block in enumerate(blocks) if block and not forwarding[b] and (b in calls or instructions[block[-1]].mnemonic == "RET")
    )
    code = Code(facts, blocks, cfg, leaving, loop_weights(cfg))
    signals = Chooser(code).run()
    waits = Waits(code, signals).run()
    stalls = Stalls(code, signals, waits, machine).run()
    controls: list[Control] = []
    for line, instruction in enumerate(instructions):
        stall = min(stalls[line], LONGEST)
        mask = tuple(s for s in range(SCOREBOARDS) if waits[line] >> s & 1)
        controls.append(Control(stall, stall > LONGEST_KEEPING or stall >= 4, *signals[line], mask))
    written = [e.written for e in facts]
    marks: dict[int, list[int]] = {}
    for block in blocks:
        marks |= find_reuse(instructions, controls, written, block, machine.arch)
    return [
        i._replace(control=c, operands=tuple([marked(o) if k in marks.get(line, ()) else o for k, o in enumerate(i.operands)]))
        for line, (i, c) in enumerate(zip(instructions, controls, strict=True))
    ]


def loop_weights(cfg: Cfg) -> list[int]:
    """Ten for each loop around a block: natural loops, by back edges to a dominator."""
    weights = [1] * len(cfg.successors)
    idom = cfg.dominators
    rank = {b: i for i, b in enumerate(cfg.order)}
    for b in cfg.order:
        for header in cfg.successors[b]:
            if rank[header] <= rank[b] and _dominates(header, b, idom):
                for member in _loop(header, b, cfg):
                    weights[member] *= 10
    return weights


def _dominates(a: int, b: int, idom: Sequence[int]) -> bool:
    while b != a and b >= 0:
        b = idom[b]
    return b == a


def _loop(header: int, tail: int, cfg: Cfg) -> set[int]:
    """The blocks that reach `tail` without passing `header`, and the header."""
    members = {header, tail}
    work = [tail] if tail != header else []
    while work:
        for p in cfg.predecessors[work.pop()]:
            if p not in members:
                members.add(p)
                work.append(p)
    return members
