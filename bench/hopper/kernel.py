"""Kernels of a few lines of SASS: assembled, put into the template cubin, run in a process of their own.

All threads have the same data, so that a predicate or an address is the same in the whole warp:

| register | holds |
|---|---|
| R0, R1 | thread, stack |
| R2:R3 | where this thread's results go |
| R4 … R31 | data: halves, singles, doubles and integers alike are ordinary numbers |
| R56:R57 | zeroed global memory |
| c[0x0][0x228], c[0x0][0x22c] | 0, 0xc0 |
| UR4:UR5 | memory descriptor |
| UR12, UR13 | 0x40, 0x80 |
| shared memory | 4 bytes a thread: the thread times 0x01010101, plus 16 KiB of zeros behind |
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sassir.asm.control import Control
from sassir.asm.instruction import Instruction
from sassir.asm.parse import parse_instruction
from sassir.asm.program import Function, Line, Program
from sassir.encoders import table
from sassir.gpu.worker import Worker
from sassir.launch import Buffer, Launch
from sassir.launch.records import Scalar, Step
from sassir.translate.cubin import read_program, write_cubin

ARCH = "sm_90a"
TEMPLATE = Path(__file__).with_name("probe.sm_90a.cubin")
THREADS = 128
"""One warp for each of the four schedulers of an SM."""
MOST_THREADS = 512
"""Four warps for each scheduler."""
SLOT_BYTES = 8 * MOST_THREADS
"""The results of all threads at one place of the kernel: a pair of registers each."""
SHARED = 32 << 10


def sass(text: str, stall: int = 1, *, write: int | None = None, read: int | None = None, wait: Iterable[int] = ()) -> Instruction:
    """One instruction with its control code. A stall count above 11 exists only with yield."""
    return _parse(text)._replace(control=Control(stall, stall > 11 or stall == 0, write, read, tuple(wait)))


@cache
def _parse(text: str) -> Instruction:
    """The instruction, checked to have a word."""
    instruction = parse_instruction(text, text)
    table(ARCH).encode(instruction._replace(control=Control(1)))
    return instruction


def pause(cycles: int) -> list[Instruction]:
    """NOPs that take this many cycles."""
    return [sass("NOP", min(15, cycles - start)) for start in range(0, cycles, 15)]


def repeat(count: int, body: Sequence[Instruction]) -> list[Instruction]:
    """A loop. The first rounds fetch the code; at the last one it is in the instruction cache, and distances are what they say."""
    back = -16 * (len(body) + 2)
    step = [sass("IADD3 R62, R62, -0x1, RZ", 5), sass("ISETP.NE.AND P6, PT, R62, RZ, PT", 13)]
    return [sass(f"MOV R62, {count:#x}", 5), *body, *step, sass(f"@P6 BRA .{back:+#x}", 5)]


def address(register: str, offset: int) -> str:
    """The address of an operand, as it is written."""
    return f"[{register}+{offset:#x}]" if offset else f"[{register}]"


def store(slot: int, register: str = "R40") -> list[Instruction]:
    """Keep a pair of registers as the thread's result `slot`."""
    return [sass(f"STG.E.64 desc[UR4]{address('R2.64', slot * SLOT_BYTES)}, {register}", 2, read=0), sass("NOP", 2, wait=[0])]


HEAD = [
    sass("LDC R1, c[0x0][0x28]", 2, write=0),
    sass("S2R R0, SR_TID.X", 2, write=0),
    sass("ULDC.64 UR4, c[0x0][0x208]", 5),
    sass("LDC.64 R2, c[0x0][0x210]", 2, write=0),
    sass("LDC.64 R56, c[0x0][0x218]", 2, write=0),
    sass("LDC.64 R58, c[0x0][0x220]", 2, write=0),
    sass("UMOV UR12, 0x40", 12),
    sass("UMOV UR13, 0x80", 12),
    sass("IMAD.WIDE.U32 R2, R0, 0x8, R2", 12, wait=[0]),
    sass("IMAD R60, R0, 0x1010101, RZ", 12),
    sass("IMAD.SHL.U32 R61, R0, 0x4, RZ", 12),
    sass("STS [R61], R60", 2, read=0),
    *[sass(f"STS {address('R61', offset)}, RZ", 2, read=0) for offset in range(0x200, 0x4200, 0x200)],
    *[sass(f"LDG.E.128 R{4 + 4 * k}, desc[UR4]{address('R58.64', 16 * k)}", 2, write=1) for k in range(7)],
    sass("BAR.SYNC 0x0", 6, wait=[0, 1]),
    *pause(30),
]
TAIL = [sass("EXIT", 5)]


def build(body: Sequence[Instruction]) -> bytes:
    """The cubin of the kernel `probe` with this body."""
    program = read_program(TEMPLATE.read_bytes(), str(TEMPLATE))
    (template,) = program.functions
    lines = [Line(instruction, None) for instruction in [*HEAD, *body, *TAIL]]
    return write_cubin(Program(program.arch, (Function(template.name, template.section, tuple(lines), {}),), program.container))


def run(worker: Worker, body: Sequence[Instruction], slots: int, threads: int = THREADS, zeros: int = 4096) -> NDArray[Any]:
    """The results of one block by slot, thread and word, with so many bytes of zeroed global memory. Raises LaunchError."""
    out = Buffer("out", "u32", (slots, MOST_THREADS, 2), "out", "zeros", (), 0)
    memory = Buffer("zeros", "u32", (zeros // 4,), "scratch", "zeros", (), 0)
    data = Buffer("data", "f16", (56,), "in", "uniform", (0.5, 1.0), 1)
    step = Step("probe", (1, 1, 1), (threads, 1, 1), SHARED, (out, memory, data, Scalar("u32", 0), Scalar("u32", 0xC0)))
    outputs = worker.run(build(body), Launch("probe", {}, (out, memory, data), (), (step,)))
    return np.asarray(outputs["out"])[:, :threads]
