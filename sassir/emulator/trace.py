"""Looking on while a kernel runs: every instruction of chosen threads, or every change of chosen registers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from sassir import isa
from sassir.asm.instruction import INSTRUCTION_BYTES, Instruction
from sassir.asm.operand import ZERO_REGISTERS, register_file
from sassir.emulator.address import following
from sassir.emulator.batch import Batch, Step
from sassir.emulator.lanes import Lanes

Observer = Callable[[Batch, int, Lanes], None]
"""Called after, or before, an instruction: the batch, the place of the instruction, the lanes that executed it (before its guard)."""


UNDEFINED = "undefined"
"""What is shown of a register that was never written."""


class Trace:
    """Writes lines such as `block 0 thread 3  0x01a0  FADD R4, R4, R5    R4 = 0x40490fdb (3.1415927)`."""

    def __init__(self, write: Callable[[str], None], block: int, threads: Sequence[int], watch: Sequence[str] = ()) -> None:
        """`block` by its number in the grid, `threads` by their number in it. With `watch`, only changes of these registers are written."""
        self._write = write
        self._block = block
        self._threads = threads
        self._watch = tuple(watch)
        self._last: dict[tuple[int, str], str] = {}

    def __call__(self, batch: Batch, place: int, lanes: Lanes) -> None:
        """See `Observer`."""
        for thread in self._threads:
            lane = batch.lane(self._block, thread)
            if lane is not None and lanes.flags.reshape(-1)[lane]:
                self._show(batch, place, thread, lane)

    def _show(self, batch: Batch, place: int, thread: int, lane: int) -> None:
        instruction = batch.kernel.code[place]
        names = self._watch or written(instruction)
        values = {name: show(batch, name, lane) for name in names}
        if self._watch:
            values = {name: text for name, text in values.items() if self._last.get((thread, name), UNDEFINED) != text}
            self._last |= {(thread, name): text for name, text in values.items()}
            if not values:
                return
        results = "  ".join([f"{name} = {text}" for name, text in values.items()])
        self._write(f"block {self._block} thread {thread:<4} {INSTRUCTION_BYTES * place:#06x}  {instruction.text:<48} {results}".rstrip())


def observed(batch: Batch, place: int, step: Step, observer: Observer) -> Step:
    """The step, after which the observer is called."""

    def run(lanes: Lanes) -> bool | None:
        result = step(lanes)
        observer(batch, place, lanes)
        return result

    return run


def announced(batch: Batch, place: int, step: Step, observer: Observer) -> Step:
    """The step, before which the observer is called."""

    def run(lanes: Lanes) -> bool | None:
        observer(batch, place, lanes)
        return step(lanes)

    return run


def written(instruction: Instruction) -> tuple[str, ...]:
    """The registers that an instruction writes, in order."""
    roles = isa.roles(instruction)
    if roles is None:
        return ()
    first = [(instruction.operands[i].registers[hole], width) for i, hole, width in roles.writes]
    names = [following(name, k) for name, width in first if name not in ZERO_REGISTERS for k in range(width)]
    return (*names, *roles.implicit_writes)


def show(batch: Batch, name: str, lane: int) -> str:
    """The value of a register in one lane, as bits and as a number."""
    registers = batch.registers
    shape = batch.flow.everyone.flags.shape
    if register_file(name) == "B":
        return f"{int(batch.flow.register(name).mask.reshape(-1)[lane]):#010x}"
    slot = registers.slot(name)
    if not np.broadcast_to(registers.defined[slot], shape).reshape(-1)[lane]:
        return UNDEFINED
    value = np.broadcast_to(registers.values[slot], shape).reshape(-1)[lane : lane + 1]
    if value.dtype == np.bool_:
        return str(bool(value[0]))
    return f"{int(value[0]):#010x} ({value.copy().view(np.float32)[0]})"
