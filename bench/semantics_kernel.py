"""A kernel around one instruction: loads its sources, executes it, stores its results. The code replaces that of a frame."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from semantics_data import LANES

from sassir.asm.control import SCOREBOARDS, Control
from sassir.asm.instruction import Instruction
from sassir.asm.operand import register_file
from sassir.asm.parse import parse_instruction
from sassir.asm.program import Line, Program
from sassir.encoders import table
from sassir.isa.semantics import Constant, Evaluator, Register, semantics
from sassir.machine import machine
from sassir.translate.cubin import read_program, write_cubin

ARCH = "sm_90"
KERNEL = "frame"
FRAME = Path(__file__).parents[1] / "tests" / "cubins" / f"{KERNEL}.{ARCH}.cubin"
THREADS = 256
CONSTANT_BASE = 0x220
"""Where bank 0 holds the words that instructions may read, behind two pointers."""

_EVERYTHING = tuple(range(SCOREBOARDS))
_SETTLE = ("NOP",) * 4
"""Time for a result of fixed latency, and for what crosses from one register file to another."""


class Probe(NamedTuple):
    """One instruction under test."""

    text: str
    instruction: Instruction
    evaluator: Evaluator

    @property
    def registers(self) -> list[str]:
        """The registers that are loaded, each once; the guard is the last one."""
        guard = self.instruction.guard
        names = [s.name for s in self.evaluator.sources if isinstance(s, Register)]
        return list(dict.fromkeys([*names, *(guard.registers if guard is not None else ())]))

    @property
    def constants(self) -> list[Constant]:
        """The constants that are read."""
        return [s for s in self.evaluator.sources if isinstance(s, Constant)]


def probe(text: str) -> Probe:
    """The test of the instruction `text`. Raises SemanticsError where it is not modelled."""
    instruction = parse_instruction(text)
    return Probe(text, instruction, semantics(instruction, ARCH))


def build(test: Probe) -> bytes:
    """The cubin whose kernel stores the words of source k from `in + 4 * (LANES * k + i)`, i the thread, and so for results."""
    program = _frame()
    (frame,) = program.functions
    leave = next(line for line in frame.lines if line.instruction.mnemonic == "EXIT")
    ending = frame.lines[frame.lines.index(leave) :]
    loop = next(line for line in ending if line.instruction.mnemonic == "BRA")
    pad = next(line for line in ending if line.instruction.mnemonic == "NOP")
    body = [Line(i, None) for i in _body(test)]
    padding = [pad._replace(origin=None)] * (-(len(body) + 2) % 8)
    lines = (*body, leave, loop, *padding)
    return write_cubin(program._replace(functions=(frame._replace(lines=lines),)))


@cache
def _frame() -> Program:
    return read_program(FRAME.read_bytes())


def _body(test: Probe) -> Iterator[Instruction]:
    for text in _prologue(test.registers):
        yield _instruction(text)
    yield _timed(test.instruction)
    for text in (*_SETTLE, *_epilogue(test.evaluator.results)):
        yield _instruction(text)


@cache
def _instruction(text: str) -> Instruction:
    instruction = _timed(parse_instruction(text))
    return instruction._replace(word=table(ARCH).encode(instruction))


def _timed(instruction: Instruction) -> Instruction:
    """With the longest stall, waiting for everything; what finishes late announces it."""
    timing = machine(ARCH).timing(instruction)
    write = 0 if timing.writes_late and timing.writers else None
    read = 0 if timing.reads_late and write is None else None
    return instruction._replace(control=Control(15, True, write, read, _EVERYTHING))


def _prologue(registers: Sequence[str]) -> Iterator[str]:
    """R4 and R6: addresses of this thread in the two arrays. Predicates and uniform registers are made from words too."""
    yield from ("S2R R0, SR_TID.X", "S2R R2, SR_CTAID.X", "ULDC.64 UR4, c[0x0][0x208]", f"IMAD R0, R2, {THREADS:#x}, R0")
    for pair, place in ((4, 0x210), (6, 0x218)):
        yield from (f"MOV R8, c[0x0][{place:#x}]", f"MOV R9, c[0x0][{place + 4:#x}]", *_SETTLE)
        yield f"IMAD.WIDE.U32 R{pair}, R0, 0x4, R8"
    for k, name in enumerate(registers):
        file = register_file(name)
        target = name if file == "R" else "R10"
        yield from (f"LDG.E {target}, desc[UR4][R4.64{_offset(k)}]", *_SETTLE)
        if file == "UR":
            yield from (f"R2UR {name}, R10", *_SETTLE)
        elif file == "P":
            yield from ("LOP3.LUT R10, R10, 0x1, RZ, 0xc0, !PT", f"ISETP.NE.U32.AND {name}, PT, R10, RZ, PT")
        elif file == "UP":
            yield from ("R2UR UR10, R10", *_SETTLE, "ULOP3.LUT UR10, UR10, 0x1, URZ, 0xc0, !UPT", *_SETTLE)
            yield from (f"UISETP.NE.U32.AND {name}, UPT, UR10, URZ, UPT", *_SETTLE)
    yield from _SETTLE


def _epilogue(results: Sequence[str]) -> Iterator[str]:
    for k, name in enumerate(results):
        file = register_file(name)
        if file == "UR":
            yield from (f"MOV R10, {name}", *_SETTLE)
        elif file == "P":
            yield from (f"SEL R10, RZ, 0x1, !{name}", *_SETTLE)
        elif file == "UP":
            yield from (f"USEL UR10, URZ, 0x1, !{name}", *_SETTLE, "MOV R10, UR10", *_SETTLE)
        yield f"STG.E desc[UR4][R6.64{_offset(k)}], {name if file == 'R' else 'R10'}"


def _offset(k: int) -> str:
    return f"+{4 * LANES * k:#x}" if k else ""
