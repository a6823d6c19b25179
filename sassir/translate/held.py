"""Registers that must keep what is in them, although no operand of the instruction says so.

- A call to code of another section holds what that reads, and what is read when it has come back: it may leave it as it is.
  If it is not known what it reads, that is every register that was written on some way to the call.
- Warpgroup matrix instructions (HGMMA) read and write their registers while later instructions run. They are held until
  `WARPGROUP.DEPBAR.LE gsb0, 0x0` has waited for them, or the thread ends.
"""

from __future__ import annotations

from collections.abc import Sequence

from sassir.analysis.cfg import Cfg
from sassir.asm.instruction import Instruction
from sassir.asm.program import Function
from sassir.dialect.registers import R
from sassir.translate.callees import Callees
from sassir.translate.flow import Flow, reads_and_writes

_ASYNCHRONOUS = frozenset({"BGMMA", "HGMMA", "IGMMA", "QGMMA"})
_VECTOR = (1 << R.COUNT) - 1 << R.FIRST


def may_hold(instruction: Instruction) -> bool:
    """An instruction of a kind that can hold registers."""
    return instruction.mnemonic in ("CALL", "EXIT") or _waits(instruction)


def held_registers(function: Function, flow: Flow, callees: Callees | None) -> dict[int, int]:
    """By line, the registers (as bits) that it holds besides its operands. `callees`: the functions that it may call."""
    held: dict[int, int] = {}
    code = [line.instruction for line in function.lines]
    if any(c.mnemonic in _ASYNCHRONOUS for c in code):
        held |= _running(code, flow)
    if flow.calling:
        written = _reaching(flow, [shape.write_set for shape in flow.shapes], [False] * len(code))
        calls = {block: flow.blocks[block][-1] for block in flow.calling}
        for line in calls.values():
            known = callees.reads(flow.linked.get(line)) if callees is not None else None
            held[line] = held.get(line, 0) | (written[line] if known is None else known)
        live = Cfg(flow.successors, [0]).live_in(*reads_and_writes(function, flow, held))
        for block, line in calls.items():
            for back in flow.successors[block]:
                held[line] |= live[back]
    return {line: registers for line, registers in held.items() if registers}


def _running(code: Sequence[Instruction], flow: Flow) -> dict[int, int]:
    """For each line that waits or ends the thread, the registers of matrix instructions that may still run."""
    started = [(s.read_set | s.write_set) & _VECTOR if c.mnemonic in _ASYNCHRONOUS else 0 for c, s in zip(code, flow.shapes, strict=True)]
    all_done = [_waits(c) and c.operands[-1].integer == 0 for c in code]
    reaching = _reaching(flow, started, all_done)
    return {i: reaching[i] for i, c in enumerate(code) if _waits(c) or c.mnemonic == "EXIT"}


def _waits(instruction: Instruction) -> bool:
    return instruction.mnemonic == "WARPGROUP" and "DEPBAR" in instruction.modifiers


def _reaching(flow: Flow, given: Sequence[int], cleared: Sequence[bool]) -> list[int]:
    """What of the registers that lines give can come to each line, past no line that clears all."""
    at_end: list[int] = []
    clears: list[int] = []
    for block in flow.blocks:
        registers = 0
        for i in block:
            registers = (0 if cleared[i] else registers) | given[i]
        at_end.append(registers)
        clears.append(-1 if any(cleared[i] for i in block) else 0)
    predecessors = Cfg(flow.successors, [0]).predecessors
    ends = Cfg(predecessors, []).live_in(at_end, clears)
    found: list[int] = []
    for b, block in enumerate(flow.blocks):
        registers = 0
        for other in predecessors[b]:
            registers |= ends[other]
        for i in block:
            found.append(registers)
            registers = (0 if cleared[i] else registers) | given[i]
    return found
